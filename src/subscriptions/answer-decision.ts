/** Meaning of a target's answer for the events that were sent. Pure. */
import { compileRetryPolicy, jittered, nextWait } from '../backoff/retry-policy.ts'
import { DAY, HOUR, SECOND, type Duration } from '../system/clock.ts'

/** A target's answer to one try. */
export type TargetAnswer =
  | {
      readonly kind: 'response'
      readonly code: number
      /** Wait that the target requested by Retry-After; null without it. */
      readonly retryAfter: Duration | null
      /** `200 OK`. */
      readonly text: string
    }
  /** No response: the connection, TLS or the disk failed. */
  | { readonly kind: 'failed'; readonly text: string }

export type NextStep =
  | { readonly kind: 'sent' }
  /** The target wants no more events (410). */
  | { readonly kind: 'disable' }
  /** The target refuses this event; the next ones are sent. */
  | { readonly kind: 'park' }
  /** The same events are sent again after `wait`. */
  | { readonly kind: 'wait'; readonly wait: Duration }

interface TryFacts {
  /** Number of failed tries of these events, the last one included. */
  readonly tries: number
  /** Number of refused tries of this event alone, the last one included; 0 for several events in one request. */
  readonly refusals: number
  /** A random number in [0, 1). */
  readonly draw: number
}

export const REFUSALS_UNTIL_PARKED = 6

const JITTER = 0.2
/** Retry-After cannot ask for more. */
const LONGEST_RETRY_AFTER: Duration = DAY

const WAITS = compileRetryPolicy({ retry_backoff: 'doubling', minimal: 5 * SECOND, maximal: HOUR })

/** Client errors that may pass: the target is slow (408), not ready (425), or gets too many requests (429). */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429])

const isSent = (answer: TargetAnswer): boolean => answer.kind === 'response' && answer.code >= 200 && answer.code < 300

/** True for an answer that concerns the event and not the target, so that another try would get the same answer. */
export const isRefusal = (answer: TargetAnswer): boolean =>
  answer.kind === 'response' && answer.code >= 400 && answer.code < 500 && answer.code !== 410 && !PASSING.has(answer.code)

export function nextStep(answer: TargetAnswer, { tries, refusals, draw }: TryFacts): NextStep {
  if (isSent(answer)) return { kind: 'sent' }
  if (answer.kind === 'response' && answer.code === 410) return { kind: 'disable' }
  if (isRefusal(answer) && refusals >= REFUSALS_UNTIL_PARKED) return { kind: 'park' }
  // A target that refuses an event is reachable again: the tries of an earlier outage do not make the waits longer.
  const step = isRefusal(answer) && refusals > 0 ? refusals : tries
  const own = jittered(nextWait(WAITS, { step, age: 0, previousWait: null, draw: () => draw }), JITTER, draw)
  const asked = answer.kind === 'response' ? Math.min(answer.retryAfter ?? 0, LONGEST_RETRY_AFTER) : 0
  return { kind: 'wait', wait: Math.max(own, asked) }
}
