/** Width and colours of output for people. Colours are those of the terminal's palette (ECMA-48 SGR), so that they fit its background. */
import type { QueueName } from '../../mail/message.ts'
import type { DestinationState } from '../../store/destination-status.ts'

/** Properties of the output. A pipe has the layout of a terminal, without colours. */
export interface Display {
  /** In columns. */
  readonly width: number
  readonly coloured: boolean
}

/** Meaning of a coloured text. The text itself states the meaning, too. */
export type Role = 'heading' | 'good' | 'waiting' | 'bad' | 'stopped' | 'faint'

const SGR: Readonly<Record<Role, number>> = { heading: 1, good: 32, waiting: 33, bad: 31, stopped: 35, faint: 2 }

/** The text in the colour of the role. The text must have no control characters. */
export const painted = (text: string, role: Role | null, { coloured }: Pick<Display, 'coloured'>): string =>
  !coloured || role === null || text === '' ? text : `\u001b[${SGR[role]}m${text}\u001b[0m`

export const roleOfQueue: Readonly<Record<QueueName | 'trash' | 'gone' | 'maildrop', Role | null>> = {
  maildrop: null,
  incoming: null,
  active: 'good',
  deferred: 'waiting',
  scheduled: null,
  hold: 'stopped',
  corrupt: 'bad',
  trash: 'faint',
  gone: 'faint',
}

export const roleOfDestination: Readonly<Record<DestinationState, Role>> = {
  open: 'good',
  throttled: 'waiting',
  dead: 'bad',
  suspended: 'stopped',
}
