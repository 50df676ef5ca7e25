/** Words of conditions that need an operator's attention, for the page and reports by mail. */
import { plural } from './text.ts'

/** `3 notes (warnings and errors) in the log of n1 in the last hour`; `node` is undefined for the only daemon of a queue. */
export const loggedNotes = (count: number, node: string | undefined): string =>
  `${plural(count, 'note')} (warnings and errors) in the log${node === undefined ? '' : ` of ${node}`} in the last hour`
