/** Formats the queue as `postqueue -p` and `mailq` print it (Postfix showq(8)), byte for byte. */
import type { Clock } from '../../system/clock.ts'
import { queueIdOf } from '../../mail/message.ts'
import type { ListedMessage } from '../../store/queue-reader.ts'
import type { Submission } from '../../queue/intake/maildrop-listing.ts'
import { shownSender } from '../../mail/envelope.ts'
import { delayReason, type DestinationRecords } from '../../presentation/recipient-status.ts'
import { submissionSender } from '../../queue/intake/maildrop-listing.ts'
import { ctime, maskControls } from '../../presentation/text.ts'

export const HEADING = '----Queue ID----- --Size-- ---Arrival Time---- --Sender/Recipient------\n'
export const EMPTY = 'Mail queue is empty\n'

/** Column of recipient addresses. */
const RECIPIENT_COLUMN = 47
const REASON_WIDTH = 76

const mark = ({ queue, forcedExpire }: ListedMessage): string =>
  (queue === 'active' ? '*' : queue === 'hold' ? '!' : '') + (forcedExpire ? '#' : '')

/** Formats a maildrop entry. Its recipients have no reasons; the entry itself may have one. */
export function showqSubmission(submission: Submission, clock: Clock): string {
  const { name, size, arrivedAt, recipients, reason } = submission
  const lines = [
    `${maskControls(name).padEnd(17)} ${String(size).padStart(8)} ${ctime(clock.wall.of(arrivedAt), clock)} ${maskControls(submissionSender(submission))}`,
    ...(reason === null ? [] : [reasonLine(maskControls(reason))]),
    ...recipients.map(recipientLine),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

const reasonLine = (reason: string): string => `${' '.repeat(Math.max(0, REASON_WIDTH - reason.length))}(${reason})`
const recipientLine = (address: string): string => `${' '.repeat(RECIPIENT_COLUMN)}${maskControls(address)}`

/** Formats one message. Recipients with a reason are printed first; a reason that successive recipients share is printed once. */
export function showqMessage(listed: ListedMessage, records: DestinationRecords, clock: Clock): string {
  const { message, recipients } = listed
  const id = `${queueIdOf(message)}${mark(listed)}`.padEnd(17)
  const lines = [
    `${id} ${String(message.size).padStart(8)} ${ctime(clock.wall.of(message.arrivedAt), clock)} ${maskControls(shownSender(message.sender))}`,
  ]
  const entries = recipients.map(({ address }, i) => ({ address, reason: reasonOf(recipients[i], listed, records) }))
  let previous = ''
  for (const { address, reason } of [...entries.filter((one) => one.reason !== null), ...entries.filter((one) => one.reason === null)]) {
    const shown = reason ?? (previous === '' ? '' : 'reason unavailable')
    if (shown !== previous && shown !== '') lines.push(reasonLine(shown))
    previous = shown
    lines.push(recipientLine(address))
  }
  return lines.map((line) => `${line}\n`).join('')
}

function reasonOf(
  recipient: ListedMessage['recipients'][number] | undefined,
  listed: ListedMessage,
  records: DestinationRecords,
): string | null {
  const reason = recipient === undefined ? null : delayReason(recipient, listed, records)
  return reason === null ? null : maskControls(reason)
}

export const footer = (bytes: number, messages: number): string =>
  `\n-- ${Math.floor(bytes / 1024)} Kbytes in ${messages} Request${messages === 1 ? '' : 's'}.\n`
