/** Words of conditions that need an operator's attention, for the page and reports by mail. */
import { plural } from './text.ts'

/**
 * `3 notes (warnings and errors) that the process of n1 has logged in the last hour`; `node` is undefined for the only daemon of a
 * queue. The lines of an earlier process are not in memory.
 */
export const loggedNotes = (count: number, node: string | undefined): string =>
  `${plural(count, 'note')} (warnings and errors) that ${node === undefined ? 'this process' : `the process of ${node}`} has logged in the last hour`

/** Further limits, after the sentence of the fullest one: `, and by 2 other limits; 1 other limit nearly full`. `found` has it too, and so has `refusing`. */
export function otherLimits({ found, refusing }: { readonly found: number; readonly refusing: number }): string {
  const others = Math.min(Math.max(0, refusing - 1), found - 1)
  const nearly = Math.max(0, found - 1 - others)
  const refused = others === 0 ? '' : `, and by ${plural(others, 'other limit')}`
  return nearly === 0 ? refused : `${refused}${others === 0 ? ', and' : ';'} ${plural(nearly, 'other limit')} nearly full`
}
