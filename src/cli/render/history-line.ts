/** Mail that has left the queue: a line for each recipient, or a JSON object for each message. */
import { queueIdOf, type Recipient } from '../../mail/message.ts'
import type { MessageDetails } from '../../store/queue-reader.ts'
import type { Clock } from '../../system/clock.ts'
import { shownSender } from './message-json.ts'
import type { Display, Role } from './style.ts'
import { StoryTable, type Column } from './table.ts'
import { epochSeconds, isoTime, localTime, maskControls } from './text.ts'

const COLUMNS: readonly Column[] = [
  { heading: 'LEFT', width: 19 },
  { heading: 'QUEUE ID', width: 15, cut: 'never' },
  { heading: 'OUTCOME', width: 9 },
]

const ROLES: Readonly<Record<string, Role>> = { delivered: 'good', bounced: 'bad', expired: 'bad', removed: 'faint' }

const tableFor = (display: Display): StoryTable => new StoryTable(COLUMNS, 'REPLY', display)

export const historyHeadings = (display: Display): string => tableFor(display).heading

/** The reply, which begins at its code; the reason when there was no reply. */
const replyOf = ({ last }: Recipient): string => (last === null ? '' : (last.reply ?? last.reason))

/** A recipient as exact tab-separated values. */
export function historyValues({ message }: MessageDetails, recipient: Recipient): string {
  const { state, settledAt = message.createdAt, address } = recipient
  return [isoTime(settledAt), queueIdOf(message), state, shownSender(message.sender), address, replyOf(recipient)]
    .map(maskControls)
    .join('\t')
}

/** A recipient in one line or, on a narrow terminal, in two. */
export function historyLine({ message }: MessageDetails, recipient: Recipient, clock: Clock, display: Display): string {
  const { state, settledAt = message.createdAt, address } = recipient
  const parties = { sender: shownSender(message.sender), recipient: address, others: 0 }
  const cells = [localTime(settledAt, clock), queueIdOf(message), [state, ROLES[state] ?? null]] as const
  return tableFor(display).row(cells, parties, replyOf(recipient))
}

/** One object per message, with the recipients that were selected. */
export const historyJson = ({ message, leftAt }: MessageDetails, recipients: readonly Recipient[]): object => ({
  queue_id: queueIdOf(message),
  arrival_time: Math.floor(message.arrivedAt / 1000),
  left_time: epochSeconds(leftAt ?? message.createdAt),
  message_size: message.size,
  sender: shownSender(message.sender),
  message_id: message.messageId ?? null,
  recipients: recipients.map(({ address, destination, state, settledAt, attempts, last }) => ({
    address,
    destination,
    outcome: state,
    time: epochSeconds(settledAt ?? message.createdAt),
    attempts,
    last_status: last?.status ?? null,
    reply: last?.reply ?? null,
    reason: last?.reason ?? null,
  })),
})
