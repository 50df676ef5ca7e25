/**
 * What becomes of recipients: outcomes of an attempt in, new states out. Nothing here acts; the scheduler takes the
 * settlement to the store.
 */
import { buildsOnPreviousWait, jittered, nextWait, type RetryPolicy } from '../backoff/retry-policy.ts'
import { debtFor, whyNobodyIsTold as silence, type NoticeClasses } from '../bounce/notice.ts'
import type { Duration, Instant } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { AttemptResult, RecipientOutcome } from '../delivery/delivery-agent.ts'
import type { DeliveryRequest, LeasedRecipient, RecipientId } from './message.ts'
import type { AttemptRecord, Settled, Settlement } from './store.ts'

export interface LifecycleFacts {
  readonly policy: RetryPolicy
  /** `retry_jitter`: each wait w is spread over [w, w·(1+j)]. */
  readonly jitter: number
  /** One number in [0, 1) per name; see Random.draw. */
  readonly draw: (key: string) => number
  /** Ages at which a delay warning is owed, ascending. */
  readonly delayWarnings: readonly Duration[]
  /** The sender of postmaster notices, `double-bounce@…`: about its mail nobody is ever told. */
  readonly doubleBounceSender: string
  readonly confirmDelayCleared: boolean
  /** What the postmaster wants copies of. */
  readonly noticeClasses: NoticeClasses
}

/** When the request was taken up and handed over, for the delays of the log. */
export interface JobTimes {
  readonly activatedAt: Instant
}

/** The settlement of an attempt that was made. */
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
    if (outcome === undefined) throw new Error(`the delivery agent said nothing of ${recipient.address}`)
    const settled = settleOne(request, recipient, outcome, { ...facts, now })
    recipients.push(settled)
    attempts.push({
      recipient: recipient.id,
      at: now,
      relay: result.relay,
      outcome: settled.state === 'expired' ? 'expired' : outcome.outcome,
      status: statusPart(outcome),
      delays,
    })
  }
  return { message: request.message.id, recipients, attempts, ...warnings(request, recipients, now, facts) }
}

/** The settlement of mail whose time is over, without an attempt; `fallback` is said of what was never tried. */
export function expire(request: DeliveryRequest, now: Instant, fallback: DeliveryStatus, facts: LifecycleFacts): Settlement {
  const recipients = request.recipients.map((recipient) =>
    final(request, recipient, 'expired', recipient.last ?? fallback, { ...facts, now, attempts: recipient.attempts }),
  )
  return { message: request.message.id, recipients, attempts: [] }
}

type OneFacts = LifecycleFacts & { readonly now: Instant; readonly returned: boolean }

function settleOne(request: DeliveryRequest, recipient: LeasedRecipient, outcome: RecipientOutcome, facts: OneFacts): Settled {
  const attempts = recipient.attempts + 1
  const last = statusPart(outcome)
  switch (outcome.outcome) {
    case 'delivered':
      return final(request, recipient, 'delivered', last, { ...facts, attempts, dsnPassedOn: outcome.dsnPassedOn === true })
    case 'bounced':
      return final(request, recipient, 'bounced', last, { ...facts, attempts })
    case 'deferred':
      if (facts.now >= recipient.expiresAt) return final(request, recipient, 'expired', last, { ...facts, attempts })
      return { ...deferred(request, recipient, facts), recipient: recipient.id, state: 'waiting', attempts, last }
  }
}

interface FinalFacts extends LifecycleFacts {
  readonly now: Instant
  readonly attempts: number
  readonly dsnPassedOn?: boolean
}

function final(
  request: DeliveryRequest,
  recipient: LeasedRecipient,
  state: 'delivered' | 'bounced' | 'expired',
  last: DeliveryStatus,
  facts: FinalFacts,
): Settled {
  const debt = debtFor({
    outcome: state === 'delivered' && facts.dsnPassedOn !== true ? 'relayed' : state,
    notify: recipient.notify,
    sender: request.message.sender,
    doubleBounceSender: facts.doubleBounceSender,
    delayCleared: facts.confirmDelayCleared && recipient.warnings > 0,
    classes: facts.noticeClasses,
  })
  return { recipient: recipient.id, state, at: facts.now, attempts: facts.attempts, last, debt }
}

/** The next step of a recipient that stays: when it is tried again and what it has cost. */
function deferred(
  request: DeliveryRequest,
  recipient: LeasedRecipient,
  facts: OneFacts,
): Pick<Settled & { state: 'waiting' }, 'dueAt' | 'steps' | 'debt'> {
  const debt = owesDelay(request, recipient, facts) ? ('delay' as const) : undefined
  // Refused for congestion while others are served: it waits its turn, which is no step of its own schedule.
  if (facts.returned) return { dueAt: recipient.dueAt, steps: recipient.steps, debt }
  if (recipient.flushed) {
    // The operator asked, the schedule did not: nothing changes while the due time is still ahead.
    const dueAt = recipient.dueAt > facts.now ? recipient.dueAt : nextDue(request, recipient, Math.max(1, recipient.steps), facts)
    return { dueAt, steps: recipient.steps, debt }
  }
  const steps = recipient.steps + 1
  return { dueAt: nextDue(request, recipient, steps, facts), steps, debt }
}

/** Due times are kept to the millisecond; the last attempt falls on the expiry itself. */
function nextDue(request: DeliveryRequest, recipient: LeasedRecipient, step: number, facts: OneFacts): Instant {
  const name = `${request.message.id} ${request.destination} ${step}`
  const wait = waitAfter(step, {
    ...facts,
    age: facts.now - request.message.createdAt,
    key: `${request.message.id} ${request.destination}`,
  })
  const spread = facts.jitter > 0 ? jittered(wait, facts.jitter, facts.draw(`jitter ${name}`)) : wait
  return Math.min(facts.now + spread, recipient.expiresAt)
}

/**
 * The wait after the n-th failed step. Policies that build on the wait before get it by retracing their steps: every
 * step has its own named draw, so the answer is the same each time and nothing needs to be stored.
 */
function waitAfter(
  step: number,
  facts: Pick<LifecycleFacts, 'policy' | 'draw'> & { readonly age: Duration; readonly key: string },
): Duration {
  const { policy, key } = facts
  let previousWait: Duration | null = null
  let age = 0
  const first = buildsOnPreviousWait(policy) ? 1 : step
  for (let n = first; n < step; n++) {
    previousWait = nextWait(policy, { step: n, age, previousWait, draw: () => facts.draw(`retry ${key} ${n}`) })
    age += previousWait
  }
  return nextWait(policy, { step, age: facts.age, previousWait, draw: () => facts.draw(`retry ${key} ${step}`) })
}

function owesDelay(request: DeliveryRequest, recipient: LeasedRecipient, facts: OneFacts): boolean {
  const threshold = facts.delayWarnings[recipient.warnings]
  if (threshold === undefined || facts.now < request.message.arrivedAt + threshold) return false
  return (
    debtFor({
      outcome: 'deferred',
      notify: recipient.notify,
      sender: request.message.sender,
      doubleBounceSender: facts.doubleBounceSender,
      classes: facts.noticeClasses,
    }) === 'delay'
  )
}

/** When the next delay warning may be due, for mail that stays; absent when warnings are off. */
function warnings(request: DeliveryRequest, settled: readonly Settled[], now: Instant, facts: LifecycleFacts): Pick<Settlement, 'warnAt'> {
  if (facts.delayWarnings.length === 0 || request.message.sender === '') return {}
  if (settled.every((one) => one.state !== 'waiting')) return {}
  const threshold = facts.delayWarnings[request.recipients[0]?.warnings ?? 0]
  const at = threshold === undefined ? null : request.message.arrivedAt + threshold
  return { warnAt: at === null || at <= now ? null : at }
}

const span = (from: Instant, to: Instant): Duration => Math.max(0, to - from)

/** Postfix's delays=a/b/c/d: before the queue manager, in it, connection set-up, transmission. Never negative. */
function delaysOf(request: DeliveryRequest, { times }: AttemptResult, { activatedAt }: JobTimes): AttemptRecord['delays'] {
  return [
    span(request.message.arrivedAt, activatedAt),
    span(activatedAt, times.startedAt),
    span(times.startedAt, times.transmittingAt),
    span(times.transmittingAt, times.endedAt),
  ]
}

/** The status alone, without what belongs to the attempt. */
function statusPart({ status, reason, reply, remoteMta, stage }: DeliveryStatus): DeliveryStatus {
  return { status, reason, stage, ...(reply === undefined ? {} : { reply }), ...(remoteMta === undefined ? {} : { remoteMta }) }
}

/** Why nobody hears of the failures in a settlement, when the rules say so; for the log. */
export function whyNobodyIsTold({ message }: DeliveryRequest, settlement: Settlement, facts: LifecycleFacts): string | undefined {
  for (const { state, debt } of settlement.recipients) {
    if (debt !== undefined || (state !== 'bounced' && state !== 'expired')) continue
    const { doubleBounceSender, noticeClasses: classes } = facts
    const why = silence({ outcome: state, notify: undefined, sender: message.sender, doubleBounceSender, classes })
    if (why !== undefined) return why
  }
  return undefined
}

/** The recipients of a settlement that stay in the queue, with their due times: what the scheduler must expect. */
export function earliestDue(settlement: Settlement): Instant | null {
  let earliest: Instant | null = null
  for (const one of settlement.recipients) {
    if (one.state === 'waiting' && (earliest === null || one.dueAt < earliest)) earliest = one.dueAt
  }
  return earliest
}

/** Recipients of a request, by id. */
export const idsOf = (request: DeliveryRequest): RecipientId[] => request.recipients.map((recipient) => recipient.id)
