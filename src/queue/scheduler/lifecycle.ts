/**
 * State transitions of recipients. Pure functions compute a settlement from the outcome of an attempt, and the scheduler commits
 * the settlement to the store.
 */
import { buildsOnPreviousWait, jittered, nextWait } from '../../backoff/retry-policy.ts'
import { noticeDueFor, whyNotReported, type NoticeRules, type OutcomeFacts } from '../../bounce/notice.ts'
import type { NoticeSettings } from '../../bounce/notice-writer.ts'
import { nextWarning } from '../../bounce/warning-times.ts'
import type { DestinationPolicy } from '../../config/destination-policies.ts'
import type { Duration, QueueTime } from '../../system/clock.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { AttemptResult, RecipientOutcome } from '../../delivery/delivery-agent.ts'
import { attemptLimit } from './due/attempt-limit.ts'
import { isTraced } from '../../mail/message-times.ts'
import { isRelayed, releasedAt, startOf, type DeliveryRequest, type LeasedRecipient, type RecipientId } from '../../mail/message.ts'
import type { AttemptRecord, Settled, Settlement } from '../../store/recorded-outcomes.ts'

export interface LifecycleFacts {
  readonly policy: DestinationPolicy
  readonly notices: Pick<NoticeSettings, 'rules' | 'warningAges'>
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
}

/** Time at which the request entered the active queue, for the delays in the log. */
interface JobTimes {
  readonly activatedAt: QueueTime
}

/**
 * Settlement of a delivery attempt. `returned` is true when the attempt must not count as a step of the retry schedule
 * (congestion).
 */
export function settle(
  request: DeliveryRequest,
  result: AttemptResult,
  times: JobTimes,
  facts: LifecycleFacts & { readonly returned: boolean },
): Settlement {
  const now = result.times.endedAt
  const recipients: Settled[] = []
  const attempts: AttemptRecord[] = []
  const delays = delaysOf(request, result, times)
  for (const recipient of request.recipients) {
    const outcome = result.outcomes.get(recipient.id)
    if (outcome === undefined) throw new Error(`the delivery agent returned no outcome for ${recipient.address}; this is a bug`)
    const settled = settleOne(request, recipient, outcome, { ...facts, now })
    recipients.push(settled)
    attempts.push({
      recipient: recipient.id,
      at: now,
      relay: result.relay,
      outcome: settled.state === 'expired' ? 'expired' : outcome.outcome,
      status: settled.last ?? outcome.status,
      delays,
    })
  }
  return { owner: request.lease.owner, message: request.message.id, recipients, attempts, ...warnings(request, recipients, now, facts) }
}

/** Settlement of expired mail, without an attempt. `fallback` is the status of recipients that were never attempted. */
export function expire(request: DeliveryRequest, now: QueueTime, fallback: DeliveryStatus, facts: LifecycleFacts): Settlement {
  const recipients = request.recipients.map((recipient) =>
    final(request, recipient, { ...facts, now, state: 'expired', last: recipient.last ?? fallback, attempts: recipient.attempts }),
  )
  return { owner: request.lease.owner, message: request.message.id, recipients, attempts: [] }
}

type OneFacts = LifecycleFacts & { readonly now: QueueTime; readonly returned: boolean }

function settleOne(request: DeliveryRequest, recipient: LeasedRecipient, outcome: RecipientOutcome, facts: OneFacts): Settled {
  const attempts = recipient.attempts + 1
  const last = outcome.status
  switch (outcome.outcome) {
    case 'delivered':
      return final(request, recipient, { ...facts, state: 'delivered', last, attempts, outcome })
    case 'bounced':
      return final(request, recipient, { ...facts, state: 'bounced', last, attempts })
    case 'deferred':
      if (facts.now >= recipient.expiresAt) return final(request, recipient, { ...facts, state: 'expired', last, attempts })
      const limit = limitReached(request, recipient, facts)
      if (limit !== null) return final(request, recipient, { ...facts, state: 'expired', last: { ...last, limit }, attempts })
      return { ...deferred(request, recipient, facts), recipient: recipient.id, state: 'waiting', attempts, last }
  }
}

interface FinalFacts extends LifecycleFacts {
  readonly now: QueueTime
  readonly state: 'delivered' | 'bounced' | 'expired'
  readonly last: DeliveryStatus
  readonly attempts: number
  /** Outcome of the attempt that delivered the mail. */
  readonly outcome?: RecipientOutcome
}

function final(request: DeliveryRequest, recipient: LeasedRecipient, facts: FinalFacts): Settled {
  const { state, last, now, attempts, outcome: reached } = facts
  const { rules } = facts.notices
  const outcome: OutcomeFacts = {
    outcome: state === 'delivered' && reached?.dsnPassedOn !== true ? 'relayed' : state,
    relayReported: reached !== undefined && reportsRelay(request, reached),
    notify: recipient.notify,
    sender: request.message.sender,
    delayCleared: rules.confirmDelayCleared && recipient.warnings > 0,
  }
  return { recipient: recipient.id, state, at: now, attempts, last, noticeDue: noticeDueFor(outcome, rules) }
}

/** An attempt that is no step of the retry schedule: one after a flush, or whose mail is returned to the waiting one. */
const isNoStep = ({ flushed }: LeasedRecipient, { returned }: OneFacts): boolean => flushed || returned

/** The limit that this failed attempt has reached; null when more attempts may follow. */
function limitReached(request: DeliveryRequest, recipient: LeasedRecipient, facts: OneFacts): string | null {
  const limit = isNoStep(recipient, facts) ? null : attemptLimit(facts.policy.settings, request.message)
  return limit === null || recipient.steps + 1 < limit.steps ? null : limit.rule
}

/** True when BY asks for a notice of the relay: by its mode, or because the next hop does not report a delay (RFC 2852). */
function reportsRelay({ message: { byMode }, destination }: DeliveryRequest, { deliverByEnds }: RecipientOutcome): boolean {
  return byMode !== undefined && isRelayed(destination) && (isTraced(byMode) || deliverByEnds === true)
}

/** Due time, schedule steps and due notice of a deferred recipient. */
function deferred(
  request: DeliveryRequest,
  recipient: LeasedRecipient,
  facts: OneFacts,
): Pick<Settled & { state: 'waiting' }, 'dueAt' | 'steps' | 'noticeDue'> {
  const noticeDue = delayNoticeDue(request, recipient, facts) ? ('delay' as const) : undefined
  // The remote server refused the mail because of congestion while other deliveries succeed. The wait is not a step of the retry
  // schedule.
  if (facts.returned) return { dueAt: recipient.dueAt, steps: recipient.steps, noticeDue }
  if (recipient.flushed) {
    // An attempt after a flush is not a step of the retry schedule. A due time in the future is therefore kept.
    const dueAt = recipient.dueAt > facts.now ? recipient.dueAt : nextDue(request, recipient, Math.max(1, recipient.steps), facts)
    return { dueAt, steps: recipient.steps, noticeDue }
  }
  const steps = recipient.steps + 1
  return { dueAt: nextDue(request, recipient, steps, facts), steps, noticeDue }
}

/** Due time in whole milliseconds. It is at most the expiry, when the last attempt is made. */
function nextDue(request: DeliveryRequest, recipient: LeasedRecipient, step: number, facts: OneFacts): QueueTime {
  const name = `${request.message.id} ${request.destination} ${step}`
  const wait = waitAfter(step, {
    ...facts,
    age: facts.now - startOf(request.message),
    key: `${request.message.id} ${request.destination}`,
  })
  const { retry_jitter: jitter } = facts.policy.settings
  const spread = jitter > 0 ? jittered(wait, jitter, facts.draw(`jitter ${name}`)) : wait
  return Math.min(facts.now + spread, recipient.expiresAt)
}

/**
 * The wait after the failed step number `step`, counted from 1. Some policies compute a wait from the previous wait, so all steps
 * are computed again. Every step draws its random number by name, so the result is reproducible and no wait has to be stored.
 */
function waitAfter(
  step: number,
  facts: Pick<LifecycleFacts, 'policy' | 'draw'> & { readonly age: Duration; readonly key: string },
): Duration {
  const { key } = facts
  const { retry } = facts.policy
  let previousWait: Duration | null = null
  let age = 0
  const first = buildsOnPreviousWait(retry) ? 1 : step
  for (let n = first; n < step; n++) {
    previousWait = nextWait(retry, { step: n, age, previousWait, draw: () => facts.draw(`retry ${key} ${n}`) })
    age += previousWait
  }
  return nextWait(retry, { step, age: facts.age, previousWait, draw: () => facts.draw(`retry ${key} ${step}`) })
}

function delayNoticeDue(request: DeliveryRequest, recipient: LeasedRecipient, facts: OneFacts): boolean {
  const { warningAges, rules } = facts.notices
  const at = nextWarning(warningAges, request.message, recipient.warnings)
  if (at === null || facts.now < at) return false
  return noticeDueFor({ outcome: 'deferred', notify: recipient.notify, sender: request.message.sender }, rules) === 'delay'
}

/**
 * Time of the next delay warning of a deferred message; null when that time has passed or none is left. Absent for a message without
 * warnings, for the null sender, and when no recipient is deferred.
 */
function warnings(
  request: DeliveryRequest,
  settled: readonly Settled[],
  now: QueueTime,
  facts: LifecycleFacts,
): Pick<Settlement, 'warnAt'> {
  const { warningAges } = facts.notices
  const { message } = request
  if (message.sender === '' || nextWarning(warningAges, message, 0) === null) return {}
  if (settled.every((one) => one.state !== 'waiting')) return {}
  const at = nextWarning(warningAges, message, request.recipients[0]?.warnings ?? 0)
  return { warnAt: at === null || at <= now ? null : at }
}

const span = (from: QueueTime, to: QueueTime): Duration => Math.max(0, to - from)

/**
 * Postfix's delays=a/b/c/d: time before the queue manager, in the queue manager, for connection setup, and for transmission.
 * Never negative.
 */
function delaysOf(request: DeliveryRequest, { times }: AttemptResult, { activatedAt }: JobTimes): AttemptRecord['delays'] {
  return [
    span(releasedAt(request.message), activatedAt),
    span(activatedAt, times.startedAt),
    span(times.startedAt, times.transmittingAt),
    span(times.transmittingAt, times.endedAt),
  ]
}

/** Reason, for the log, why the failures in a settlement cause no notice; undefined when a notice is sent or nothing failed. */
export function whyNoNotice({ message }: DeliveryRequest, settlement: Settlement, rules: NoticeRules): string | undefined {
  for (const { state, noticeDue } of settlement.recipients) {
    if (noticeDue !== undefined || (state !== 'bounced' && state !== 'expired')) continue
    const why = whyNotReported({ outcome: state, notify: undefined, sender: message.sender }, rules)
    if (why !== undefined) return why
  }
  return undefined
}

/** The earliest due time of the recipients that stay in the queue after a settlement; null when none stay. */
export function earliestDue(settlement: Settlement): QueueTime | null {
  let earliest: QueueTime | null = null
  for (const one of settlement.recipients) {
    if (one.state === 'waiting' && (earliest === null || one.dueAt < earliest)) earliest = one.dueAt
  }
  return earliest
}

/** Ids of the recipients of a request. */
export const idsOf = (request: DeliveryRequest): RecipientId[] => request.recipients.map((recipient) => recipient.id)
