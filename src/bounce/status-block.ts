/**
 * The second part of a notice: what happened, for programs (RFC 3464; RFC 6533 for mail with SMTPUTF8). Fields and
 * their order are Postfix's, with our own name in the X- fields.
 */
import type { Instant } from '../mail/clock.ts'
import { isEnhancedStatus } from '../mail/reply.ts'
import { queueIdOf, type Debt, type Message, type Recipient } from '../queue/message.ts'
import { ascii, fold, oneLine } from './fold.ts'
import { originalAddress, typedAddress } from './notice-address.ts'

/** Who reports. */
export interface Site {
  readonly myhostname: string
  readonly myorigin: string
  readonly mailName: string
}

export interface StatusFacts {
  readonly kind: Debt
  readonly message: Message
  readonly recipients: readonly Recipient[]
  readonly site: Site
  readonly date: (at: Instant) => string
}

export type Action = 'failed' | 'delayed' | 'delivered' | 'relayed'

/** The mail name as a part of field names: `X-Deferd-Queue-ID`. */
export const fieldName = (mailName: string): string => `X-${mailName.replace(/[^A-Za-z0-9!#$%&'*+/=?^_`{|}~-]/g, '-')}`

/** Whom mail without a sender comes from, where a field needs a name. */
export const senderShown = (sender: string, site: Site): string => (sender === '' ? `MAILER-DAEMON@${site.myhostname}` : sender)

/** What the notice says became of a recipient. Only what left the world of SMTP is called delivered. */
export function actionFor(kind: Debt, recipient: Pick<Recipient, 'destination'>): Action {
  if (kind !== 'success') return kind === 'failure' ? 'failed' : 'delayed'
  return /^(?:lmtp|discard):/.test(recipient.destination) ? 'delivered' : 'relayed'
}

const CLASS: Readonly<Record<Debt, string>> = { failure: '5', delay: '4', success: '2' }

/** The last status as it was received, also for expired mail: nothing is rewritten. */
function statusFor(kind: Debt, { last, state }: Recipient): string {
  if (last !== null && isEnhancedStatus(last.status)) return last.status
  return `${state === 'expired' ? '4' : CLASS[kind]}.0.0`
}

/** The lines of the status block, without line ends; blocks are parted by an empty line. */
export function statusBlock(facts: StatusFacts): string[] {
  const { message, site, date } = facts
  const x = fieldName(site.mailName)
  const text = message.smtputf8 ? oneLine : (raw: string, limit?: number) => ascii(oneLine(raw, limit))
  const lines = [`Reporting-MTA: dns; ${text(site.myhostname, 255)}`]
  if (message.envid !== undefined) lines.push(`Original-Envelope-Id: ${text(message.envid, 300)}`)
  lines.push(`${x}-Queue-ID: ${queueIdOf(message)}`)
  lines.push(`${x}-Sender: ${typedAddress(senderShown(message.sender, site), message.smtputf8)}`)
  lines.push(`Arrival-Date: ${date(message.arrivedAt)}`)
  for (const recipient of facts.recipients) lines.push('', ...recipientBlock(recipient, facts, text))
  return lines
}

type AsText = (raw: string, limit?: number) => string

function recipientBlock(recipient: Recipient, facts: StatusFacts, text: AsText): string[] {
  const { kind, message, site, date } = facts
  const { last } = recipient
  const lines = [
    `Final-Recipient: ${typedAddress(recipient.address, message.smtputf8)}`,
    `Original-Recipient: ${originalAddress(recipient.orcpt ?? `rfc822;${recipient.address}`, message.smtputf8)}`,
    `Action: ${actionFor(kind, recipient)}`,
    `Status: ${statusFor(kind, recipient)}`,
  ]
  if (last?.reply !== undefined) {
    if (last.remoteMta !== undefined) lines.push(`Remote-MTA: dns; ${text(last.remoteMta, 255)}`)
    lines.push(...fold(`Diagnostic-Code: smtp; ${text(last.reply)}`))
  } else {
    lines.push(...fold(`Diagnostic-Code: ${fieldName(site.mailName)}; ${text(last?.reason ?? NEVER_TRIED)}`))
  }
  if (kind === 'delay') lines.push(`Will-Retry-Until: ${date(recipient.expiresAt)}`)
  return lines
}

/** Said of mail that was never tried, where a reason must stand. */
export const NEVER_TRIED = 'no delivery was attempted'
