/**
 * The queue as `postqueue -p` and `mailq` print it (postfix showq), byte for byte.
 */
import type { Clock } from '../mail/clock.ts'
import { queueIdOf } from '../queue/message.ts'
import type { ListedMessage } from '../queue/reader.ts'
import { shownSender } from './message-json.ts'
import { delayReason, type DestinationRecords } from './standing.ts'
import { ctime, harmless } from './text.ts'

export const HEADING = '----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------\n'
export const EMPTY = 'Mail queue is empty\n'

/** Where the addresses of recipients begin. */
const RECIPIENT_COLUMN = 47
const REASON_WIDTH = 76

const mark = ({ queue, forcedExpire }: ListedMessage): string =>
  (queue === 'active' ? '*' : queue === 'hold' ? '!' : '') + (forcedExpire ? '#' : '')

/** One message with its recipients; those with a reason come first, and a reason is printed once for all it applies to. */
export function showqMessage(listed: ListedMessage, records: DestinationRecords, clock: Clock): string {
  const { message, recipients } = listed
  const id = `${queueIdOf(message)}${mark(listed)}`.padEnd(17)
  const lines = [`${id} ${String(message.size).padStart(8)} ${ctime(message.arrivedAt, clock)} ${harmless(shownSender(message.sender))}`]
  const told = recipients.map(({ address }, i) => ({ address, reason: reasonOf(recipients[i], records) }))
  let previous = ''
  for (const { address, reason } of [...told.filter((one) => one.reason !== null), ...told.filter((one) => one.reason === null)]) {
    const shown = reason ?? (previous === '' ? '' : 'reason unavailable')
    if (shown !== previous && shown !== '') lines.push(`${' '.repeat(Math.max(0, REASON_WIDTH - shown.length))}(${shown})`)
    previous = shown
    lines.push(`${' '.repeat(RECIPIENT_COLUMN)}${harmless(address)}`)
  }
  return lines.map((line) => `${line}\n`).join('')
}

function reasonOf(recipient: ListedMessage['recipients'][number] | undefined, records: DestinationRecords): string | null {
  const reason = recipient === undefined ? null : delayReason(recipient, records)
  return reason === null ? null : harmless(reason)
}

export const footer = (bytes: number, messages: number): string =>
  `\n-- ${Math.floor(bytes / 1024)} Kbytes in ${messages} Request${messages === 1 ? '' : 's'}.\n`
