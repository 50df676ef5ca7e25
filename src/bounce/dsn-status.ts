/**
 * Writes the second part of a notice, message/delivery-status (RFC 3464; RFC 6533 for mail with SMTPUTF8). The fields and their
 * order are those of Postfix, with mail_name in the X- fields.
 */
import type { QueueTime } from '../system/clock.ts'
import { isOfClient } from '../mail/message-times.ts'
import { isEnhancedStatus } from '../mail/smtp-reply.ts'
import { EXPANDED, isRelayed, queueIdOf, type NoticeDue, type Message, type Recipient } from '../mail/message.ts'
import { isOverdue } from './warning-times.ts'
import { ascii, fold, oneLine } from './text-folding.ts'
import { originalAddress, typedAddress } from './dsn-address.ts'

/** The reporting MTA: the relay that sends the notice. */
export interface ReportingMta {
  readonly myhostname: string
  readonly myorigin: string
  readonly mailName: string
}

export interface StatusFacts {
  readonly kind: NoticeDue
  readonly message: Message
  readonly recipients: readonly Recipient[]
  readonly reportingMta: ReportingMta
  readonly date: (at: QueueTime) => string
  /** Time of the notice. */
  readonly at: QueueTime
}

/** Values of the field Action (RFC 3464 §2.3.3). */
export const NOTICE_ACTIONS = ['failed', 'delayed', 'delivered', 'relayed', 'expanded'] as const
/** Action field (RFC 3464 §2.3.3). */
export type NoticeAction = (typeof NOTICE_ACTIONS)[number]

/** mail_name as the prefix of field names, for example `X-Deferd`. */
export const fieldName = (mailName: string): string => `X-${mailName.replace(/[^A-Za-z0-9!#$%&'*+/=?^_`{|}~-]/g, '-')}`

/** Sender address, with a replacement for the null sender in fields that need an address. */
export const senderShown = (sender: string, reportingMta: ReportingMta): string =>
  sender === '' ? `MAILER-DAEMON@${reportingMta.myhostname}` : sender

/** The Action of a recipient (RFC 3464 §2.3.3): `delivered` only after final delivery, `relayed` after SMTP, `expanded` for an alias. */
export function actionFor(kind: NoticeDue, recipient: Pick<Recipient, 'destination'>): NoticeAction {
  if (kind !== 'success') return kind === 'failure' ? 'failed' : 'delayed'
  if (recipient.destination === EXPANDED) return 'expanded'
  return isRelayed(recipient.destination) ? 'relayed' : 'delivered'
}

const CLASS: Readonly<Record<NoticeDue, string>> = { failure: '5', delay: '4', success: '2' }

/** RFC 3463 §3.5. */
const DELIVERY_TIME_EXPIRED = '4.7'

/**
 * Status of a recipient as received from the remote server, also for expired mail, unless its client has named the time at which it expires or
 * its delay is reported; `5.0.0`, `4.0.0` or `2.0.0` when none was received.
 */
function statusFor({ last, state, expiresAt }: Recipient, { kind, message, at }: StatusFacts): string {
  const { expires } = message
  if (state === 'expired' && last?.limit === undefined && expires !== undefined && expires <= expiresAt) return `5.${DELIVERY_TIME_EXPIRED}`
  if (kind === 'delay' && isOverdue(message, at)) return `4.${DELIVERY_TIME_EXPIRED}`
  if (last !== null && isEnhancedStatus(last.status)) return last.status
  return `${state === 'expired' ? '4' : CLASS[kind]}.0.0`
}

/** The lines of the part, without line ends; an empty line separates groups of fields. */
export function statusBlock(facts: StatusFacts): string[] {
  const { message, reportingMta, date } = facts
  const x = fieldName(reportingMta.mailName)
  const text = message.smtputf8 ? oneLine : (raw: string, limit?: number) => ascii(oneLine(raw, limit))
  const lines = [`Reporting-MTA: dns; ${text(reportingMta.myhostname, 255)}`]
  if (message.envid !== undefined) lines.push(`Original-Envelope-Id: ${text(message.envid, 300)}`)
  lines.push(`${x}-Queue-ID: ${queueIdOf(message)}`)
  lines.push(`${x}-Sender: ${typedAddress(senderShown(message.sender, reportingMta), message.smtputf8)}`)
  lines.push(`Arrival-Date: ${date(message.arrivedAt)}`)
  if (message.deliverBy !== undefined) lines.push(`Deliver-By-Date: ${date(message.deliverBy)}`)
  if (message.holdRequest !== undefined && isOfClient(message.holdRequest))
    lines.push(`Future-Release-Request: ${text(message.holdRequest, 100)}`)
  for (const recipient of facts.recipients) lines.push('', ...recipientBlock(recipient, facts, text))
  return lines
}

type AsText = (raw: string, limit?: number) => string

function recipientBlock(recipient: Recipient, facts: StatusFacts, text: AsText): string[] {
  const { kind, message, reportingMta, date } = facts
  const { last } = recipient
  const lines = [
    `Final-Recipient: ${typedAddress(recipient.address, message.smtputf8)}`,
    `Original-Recipient: ${originalAddress(recipient.orcpt ?? `rfc822;${recipient.address}`, message.smtputf8)}`,
    `Action: ${actionFor(kind, recipient)}`,
    `Status: ${statusFor(recipient, facts)}`,
  ]
  if (last?.reply !== undefined) {
    if (last.remoteMta !== undefined) lines.push(`Remote-MTA: dns; ${text(last.remoteMta, 255)}`)
    lines.push(...fold(`Diagnostic-Code: smtp; ${text(last.reply)}`))
  } else {
    lines.push(...fold(`Diagnostic-Code: ${fieldName(reportingMta.mailName)}; ${text(last?.reason ?? NEVER_TRIED)}`))
  }
  if (kind === 'delay') lines.push(`Will-Retry-Until: ${date(recipient.expiresAt)}`)
  return lines
}

/** Reason shown for mail without an attempt. */
export const NEVER_TRIED = 'no delivery was attempted'
