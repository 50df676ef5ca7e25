/** Mail that has left the queue: a line for each recipient. */
import { instantOf, isoTime, localTime, maskControls } from '../../presentation/text.ts'
import type { DepartedMessageJson } from '../../resources/departed-message-json.ts'
import type { Clock } from '../../system/clock.ts'
import type { Display, Role } from './style.ts'
import { StoryTable, type Column } from './table.ts'

type DepartedRecipient = DepartedMessageJson['recipients'][number]

const COLUMNS: readonly Column[] = [
  { heading: 'LEFT', width: 19 },
  { heading: 'QUEUE ID', width: 15, cut: 'never' },
  { heading: 'OUTCOME', width: 9 },
]

const ROLES: Readonly<Record<string, Role>> = { delivered: 'good', bounced: 'bad', expired: 'bad', removed: 'faint' }

const tableFor = (display: Display): StoryTable => new StoryTable(COLUMNS, 'REPLY', display)

export const historyHeadings = (display: Display): string => tableFor(display).heading

/** The reply, which begins at its code; the reason when there was no reply. */
const replyOf = ({ reply, reason }: DepartedRecipient): string => reply ?? reason ?? ''

/** A recipient as exact tab-separated values. */
export const historyValues = ({ queue_id: id, sender }: DepartedMessageJson, recipient: DepartedRecipient): string =>
  [isoTime(instantOf(recipient.time)), id, recipient.outcome, sender, recipient.address, replyOf(recipient)].map(maskControls).join('\t')

/** A recipient in one line or, on a narrow terminal, in two. */
export function historyLine(
  { queue_id: id, sender }: DepartedMessageJson,
  recipient: DepartedRecipient,
  clock: Clock,
  display: Display,
): string {
  const { time, outcome, address } = recipient
  const cells = [localTime(instantOf(time), clock), id, [outcome, ROLES[outcome] ?? null]] as const
  return tableFor(display).row(cells, { sender, recipient: address, others: 0 }, replyOf(recipient))
}
