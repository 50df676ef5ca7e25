/**
 * Writes the first, human-readable part of a notice. After the template's text, each recipient has one paragraph with the reason,
 * the number of attempts and their times.
 */
import type { Duration } from '../system/clock.ts'
import { largestUnits } from '../system/duration.ts'
import { releasedAt, startOf, type Message, type Recipient } from '../mail/message.ts'
import { fold, oneLine } from './text-folding.ts'
import { actionFor, NEVER_TRIED, type StatusFacts } from './dsn-status.ts'
import { isOverdue } from './warning-times.ts'

/** A duration in its two largest units: `2 days`, `1 hour and 30 minutes`. */
export const spelledOut = (duration: Duration): string =>
  largestUnits(duration)
    .map(({ figure, unit }) => `${figure} ${unit}${figure === 1 ? '' : 's'}`)
    .join(' and ') || '0 seconds'

const tried = (attempts: number): string => (attempts === 1 ? 'once' : `${attempts} times`)

function expiryText(message: Message, recipient: Recipient, date: StatusFacts['date']): string {
  const since = date(releasedAt(message))
  const effort =
    recipient.attempts === 0
      ? `The message has been queued since ${since}; no delivery attempt was possible`
      : `Delivery was attempted ${tried(recipient.attempts)} since ${since}`
  const end = recipient.settledAt ?? recipient.expiresAt
  // Only an operator's command makes mail expire before its time.
  if (end < recipient.expiresAt) return `${effort}. On ${date(end)} the postmaster ended the attempts.`
  const kept = spelledOut(recipient.expiresAt - startOf(message))
  return `${effort}. On ${date(end)} the attempts ended: undelivered mail is kept for ${kept}.`
}

function delayText(recipient: Recipient, { message, date, at }: StatusFacts): string {
  const since = date(releasedAt(message))
  const effort =
    recipient.attempts === 0
      ? `No delivery attempt was possible since ${since}`
      : `Delivery was attempted ${tried(recipient.attempts)} since ${since}`
  const promised = message.deliverBy !== undefined && isOverdue(message, at) ? ` It was to be delivered by ${date(message.deliverBy)}.` : ''
  return `${effort}.${promised} Attempts will continue until ${date(recipient.expiresAt)}.`
}

/** Text after the reason; undefined when the reason is sufficient. */
function detailsOf(recipient: Recipient, facts: StatusFacts): string | undefined {
  const { kind, message, date } = facts
  if (kind === 'delay') return delayText(recipient, facts)
  if (kind === 'failure') return recipient.state === 'expired' ? expiryText(message, recipient, date) : undefined
  const relayed = actionFor(kind, recipient) === 'relayed'
  return relayed ? 'The next mail system accepted the message and may not report its final delivery.' : undefined
}

/** The recipients' paragraphs, as lines without line ends. An empty line precedes each paragraph. */
export function explanation(facts: StatusFacts): string[] {
  const lines: string[] = []
  for (const recipient of facts.recipients) {
    const reason = oneLine(recipient.last?.reason ?? NEVER_TRIED)
    lines.push('', ...fold(`<${oneLine(recipient.address, 300)}>: ${reason}`))
    const more = detailsOf(recipient, facts)
    if (more !== undefined) lines.push('', ...fold(`    ${oneLine(more)}`))
  }
  return lines
}
