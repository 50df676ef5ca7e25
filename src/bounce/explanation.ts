/**
 * The first part of a notice: what happened, for people. After the text of the template comes a paragraph for each
 * recipient: the reason, and how long and how often delivery was tried.
 */
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../mail/clock.ts'
import type { Message, Recipient } from '../queue/message.ts'
import { fold, oneLine } from './fold.ts'
import { actionFor, NEVER_TRIED, type StatusFacts } from './status-block.ts'

const UNITS: readonly (readonly [Duration, string])[] = [
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
  [SECOND, 'second'],
]

const counted = (n: number, unit: string): string => `${n} ${unit}${n === 1 ? '' : 's'}`

/** `2 days`, `1 hour and 30 minutes`: the two largest units that count. */
export function spelledOut(duration: Duration): string {
  const parts: string[] = []
  let rest = Math.max(0, Math.round(duration / SECOND) * SECOND)
  for (const [size, unit] of UNITS) {
    const n = Math.floor(rest / size)
    rest -= n * size
    if (n > 0) parts.push(counted(n, unit))
    else if (parts.length > 0) break
  }
  return parts.length === 0 ? '0 seconds' : parts.slice(0, 2).join(' and ')
}

const tried = (attempts: number): string => (attempts === 1 ? 'once' : `${attempts} times`)

function lifetimeStory(message: Message, recipient: Recipient, date: StatusFacts['date']): string {
  const since = date(message.arrivedAt)
  const effort =
    recipient.attempts === 0
      ? `It has been waiting since ${since} and could not be tried`
      : `Delivery was tried ${tried(recipient.attempts)} since ${since}`
  const end = recipient.settledAt ?? recipient.expiresAt
  // Only an operator ends it before its time.
  if (end < recipient.expiresAt) return `${effort}. On ${date(end)} it was given up by the postmaster.`
  const kept = spelledOut(recipient.expiresAt - message.createdAt)
  return `${effort}. On ${date(end)} it was given up, because undelivered mail is kept for ${kept} and no longer.`
}

function delayStory(message: Message, recipient: Recipient, date: StatusFacts['date']): string {
  const since = date(message.arrivedAt)
  const effort =
    recipient.attempts === 0
      ? `Delivery could not be tried since ${since}`
      : `Delivery was tried ${tried(recipient.attempts)} since ${since}`
  return `${effort}. It will be tried again until ${date(recipient.expiresAt)}.`
}

/** What is worth saying beyond the reason; undefined when nothing is. */
function story(recipient: Recipient, { kind, message, date }: StatusFacts): string | undefined {
  if (kind === 'delay') return delayStory(message, recipient, date)
  if (kind === 'failure') return recipient.state === 'expired' ? lifetimeStory(message, recipient, date) : undefined
  const relayed = actionFor(kind, recipient) === 'relayed'
  return relayed ? 'The next mail system took the message; it may not report what becomes of it.' : undefined
}

/** The lines about the recipients, without line ends, an empty line before each. */
export function explanation(facts: StatusFacts): string[] {
  const lines: string[] = []
  for (const recipient of facts.recipients) {
    const reason = oneLine(recipient.last?.reason ?? NEVER_TRIED)
    lines.push('', ...fold(`<${oneLine(recipient.address, 300)}>: ${reason}`))
    const more = story(recipient, facts)
    if (more !== undefined) lines.push('', ...fold(`    ${oneLine(more)}`))
  }
  return lines
}
