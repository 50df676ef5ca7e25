/** Mail that has left the queue: a line for each recipient. */
import { queueIdOf, type Recipient } from '../../mail/message.ts'
import type { MessageDetails } from '../../store/queue-reader.ts'
import type { Clock } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { shownSender } from '../../mail/envelope.ts'
import type { Display, Role } from './style.ts'
import { StoryTable, type Column } from './table.ts'
import { isoTime, localTime, maskControls } from '../../presentation/text.ts'

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
export function historyValues({ message }: MessageDetails, recipient: Recipient, wall: WallView): string {
  const { state, settledAt = message.createdAt, address } = recipient
  return [isoTime(wall.of(settledAt)), queueIdOf(message), state, shownSender(message.sender), address, replyOf(recipient)]
    .map(maskControls)
    .join('\t')
}

/** A recipient in one line or, on a narrow terminal, in two. */
export function historyLine({ message }: MessageDetails, recipient: Recipient, clock: Clock, display: Display): string {
  const { state, settledAt = message.createdAt, address } = recipient
  const parties = { sender: shownSender(message.sender), recipient: address, others: 0 }
  const cells = [localTime(clock.wall.of(settledAt), clock), queueIdOf(message), [state, ROLES[state] ?? null]] as const
  return tableFor(display).row(cells, parties, replyOf(recipient))
}
