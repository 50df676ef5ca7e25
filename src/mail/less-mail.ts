/**
 * Replies that ask for less mail, by status code (RFC 3463, and IANA’s registry of enhanced status codes) and reply code 421. Three decisions
 * use them: fewer deliveries at once (`window`), fewer messages in a minute (`rate`), and the class `rate` of a failure. No text is searched.
 *
 * The decisions differ where a code says nothing about one of them. x.7.28 (flood of messages) counts messages, not connections. 4.5.3 asks for
 * fewer recipients in a transaction (RFC 5321 §4.5.3.1.10), which neither a window nor a rate brings about. 4.7.0 without a word more is also the
 * status of greylisting and of policies: before RCPT it can only be about the client, and a rate is lowered by repeated refusals alone.
 */
import type { DeliveryStatus, Stage } from './smtp-reply.ts'

type Decision = 'window' | 'rate' | 'class'
type When = 'always' | 'before RCPT' | 'never'

interface Request extends Readonly<Record<Decision, When>> {
  /** The code as the reason of a class names it. */
  readonly rule: string
}

export const BEFORE_RCPT: ReadonlySet<Stage> = new Set(['connect', 'greeting', 'ehlo', 'mail'])
/** Stages whose 4.7.0 is about TLS or the login, and does not ask for less mail. */
export const OF_SESSION: ReadonlySet<Stage> = new Set(['starttls', 'auth'])

const REQUESTS: Readonly<Record<string, Request>> = {
  '4.3.2': { window: 'always', rate: 'always', class: 'always', rule: 'x.3.2' },
  '5.3.2': { window: 'never', rate: 'never', class: 'always', rule: 'x.3.2' },
  '4.4.5': { window: 'always', rate: 'always', class: 'always', rule: 'x.4.5' },
  '5.4.5': { window: 'never', rate: 'never', class: 'always', rule: 'x.4.5' },
  '4.7.0': { window: 'before RCPT', rate: 'always', class: 'before RCPT', rule: '4.7.0 before RCPT' },
  '4.7.28': { window: 'never', rate: 'always', class: 'always', rule: 'x.7.28' },
  '5.7.28': { window: 'never', rate: 'always', class: 'always', rule: 'x.7.28' },
  '4.5.3': { window: 'never', rate: 'never', class: 'always', rule: '4.5.3' },
}

/** The code by which a reply asks for less mail, as far as it concerns the decision; null for another reply. */
export function requestForLess(
  decision: Decision,
  { status, stage, reply }: Pick<DeliveryStatus, 'status' | 'stage' | 'reply'>,
): string | null {
  if (reply?.startsWith('421') === true) return 'reply 421'
  const request = REQUESTS[status]
  const when = request?.[decision] ?? 'never'
  const applies = when === 'always' || (when === 'before RCPT' && BEFORE_RCPT.has(stage))
  return request !== undefined && applies ? request.rule : null
}
