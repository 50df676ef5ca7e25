/** Words of conditions that need an operator's attention, for the page and reports by mail. */
import { plural } from './text.ts'

/**
 * `3 notes (warnings and errors) that the process of n1 has logged in the last hour`; `node` is undefined for the only daemon of a
 * queue. The lines of an earlier process are not in memory.
 */
export const loggedNotes = (count: number, node: string | undefined): string =>
  `${plural(count, 'note')} (warnings and errors) that ${node === undefined ? 'this process' : `the process of ${node}`} has logged in the last hour`
