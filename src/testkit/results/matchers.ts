/**
 * Matchers for expect() of vitest and jest. After `expect.extend(matchers)`, a test can state
 * `expect(world.recipient('ann@example.net')).toHaveBounced({ status: '5.1.1' })`. The message of a failing matcher contains the
 * timeline of the recipient, and the seed of its world.
 */
import { nearest } from '../../config/values/problem.ts'
import { SECOND } from '../../system/clock.ts'
import { Recipient } from './recipient.ts'
import { toDuration, type Time } from '../options/time.ts'

/** Result of a matcher, in the form that vitest and jest expect. */
export interface MatcherResult {
  readonly pass: boolean
  /** Explains the failure, with the timeline of the recipient. */
  message(): string
}

interface Finding {
  readonly holds: boolean
  /** The expectation as text that can follow `not`, such as `to have been delivered`. */
  readonly expected: string
  /** Observed facts. */
  readonly found: string
}

/** State of an assertion that vitest and jest pass as `this`. */
export interface AssertionState {
  readonly isNot?: boolean | undefined
}

/**
 * Throws a TypeError for an assertion that would pass although the relay has accepted no message for the address: it would pass
 * for every mistyped address, too. Most negated matchers are such assertions, and `toHaveCausedNotices([])`.
 */
function rejectVacuous({ address, known }: Recipient): never {
  const meant = nearest(address, known)
  const accepted = known.length === 0 ? 'the relay has accepted no mail' : `it has accepted mail for ${known.slice(0, 10).join(', ')}`
  throw new TypeError(
    `the relay has accepted no message for ${address}, so this expectation states nothing` +
      `${meant === undefined ? '' : `; did you mean ${meant}?`} (${accepted}). ` +
      `To expect that no mail was sent: expect(world.recipient(${JSON.stringify(address)}).accepted).toBe(0)`,
  )
}

/** Turns a finding about a recipient into a result with the timeline in its message. */
function matcher<Args extends readonly unknown[]>(find: (recipient: Recipient, ...args: Args) => Finding) {
  return function (this: AssertionState | void, received: unknown, ...args: Args): MatcherResult {
    if (!(received instanceof Recipient)) throw new TypeError('expected a recipient: expect(world.recipient("ann@example.net"))')
    const { holds, expected, found } = find(received, ...args)
    if (received.accepted + received.suppressed === 0 && holds !== (this?.isNot ?? false)) rejectVacuous(received)
    const timeline = received.story.map((line) => `  ${line}`)
    return {
      pass: holds,
      message: () =>
        [
          `expected ${received.address} ${holds ? 'not ' : ''}${expected}, but ${found}`,
          ...(timeline.length > 0 ? timeline : ['  no message for it was accepted']),
          `  seed ${received.seed}`,
        ].join('\n'),
    }
  }
}

const outcomes = (recipient: Recipient): string => {
  const last = recipient.attempts.at(-1)
  return last === undefined ? 'it has no attempt' : `its last attempt was ${last.outcome} ${last.status} (${last.reply ?? last.reason})`
}

const noticesSent = ({ notices }: Recipient): string =>
  notices.length === 0 ? 'its sender got no notice' : `its sender got notices of ${notices.join(', ')}`

/** Details of an expected bounce; absent members match anything. */
export interface BounceExpectation {
  /** Enhanced status code (RFC 3463): `5.1.1`. */
  readonly status?: string
  /** Part of the server's reply. */
  readonly reply?: string
}

/** Matchers about `world.recipient(address)`. Each throws a TypeError for any other value. */
export const matchers = {
  /** Passes if every message for the recipient was delivered, and there is one. */
  toHaveBeenDelivered: matcher((recipient) => {
    const delivered = recipient.attempts.filter(({ outcome }) => outcome === 'delivered').length
    return { holds: delivered > 0 && delivered === recipient.accepted, expected: 'to have been delivered', found: outcomes(recipient) }
  }),

  /** Passes if every message for the recipient was delivered, and the mailbox holds each exactly once. */
  toHaveBeenDeliveredOnce: matcher((recipient) => {
    const { copies, accepted } = recipient
    return {
      holds: copies.length === accepted && accepted > 0 && copies.every((count) => count === 1),
      expected: 'to have been delivered once',
      found: `${copies.length} of ${accepted} accepted messages are in the mailbox, with copies: ${copies.join(', ') || 'none'}`,
    }
  }),

  /** Passes if a server refused the recipient with a permanent failure. `status` and `reply` restrict the match. */
  toHaveBounced: matcher((recipient, { status, reply }: BounceExpectation = {}) => {
    const bounced = recipient.attempts.filter(({ outcome }) => outcome === 'bounced')
    const found = bounced.some((one) => (status ?? one.status) === one.status && (one.reply ?? one.reason).includes(reply ?? ''))
    return {
      holds: found,
      expected: ['to have bounced', status, reply].filter((word) => word !== undefined).join(' '),
      found: outcomes(recipient),
    }
  }),

  /** Passes if the recipient expired. */
  toHaveExpired: matcher((recipient) => ({
    holds: recipient.attempts.some(({ outcome }) => outcome === 'expired'),
    expected: 'to have expired',
    found: outcomes(recipient),
  })),

  /** Passes if the sender got a delay warning. */
  toHaveBeenDelayed: matcher((recipient) => ({
    holds: recipient.notices.includes('delay'),
    expected: 'to have been delayed, with a warning to its sender',
    found: noticesSent(recipient),
  })),

  /** Passes if an attempt was deferred. With `times`, passes if exactly that many were deferred. */
  toHaveBeenDeferred: matcher((recipient, times?: number) => {
    const deferred = recipient.attempts.filter(({ outcome }) => outcome === 'deferred').length
    return {
      holds: times === undefined ? deferred > 0 : deferred === times,
      expected: `to have been deferred${times === undefined ? '' : ` ${times} times`}`,
      found: `it was deferred ${deferred} times`,
    }
  }),

  /** Passes if the relay refused the recipient, because it is on the suppression list. With `times`, passes if exactly so often. */
  toHaveBeenSuppressed: matcher((recipient, times?: number) => {
    const { suppressed } = recipient
    return {
      holds: times === undefined ? suppressed > 0 : suppressed === times,
      expected: `to have been suppressed${times === undefined ? '' : ` ${times} times`}`,
      found: `it was suppressed ${suppressed} times`,
    }
  }),

  /** Passes if the first attempt for every message was made within this time of its acceptance, and there is one. */
  toHaveStartedWithin: matcher((recipient, time: Time) => {
    const limit = toDuration(time)
    const { startedAfter, accepted } = recipient
    const late = startedAfter.filter((after) => after * SECOND > limit).length
    return {
      holds: accepted > 0 && startedAfter.length === accepted && late === 0,
      expected: `to have started within ${time}${typeof time === 'number' ? ' s' : ''}`,
      found: `${startedAfter.length - late} of ${accepted} accepted messages did, and they were first tried after ${startedAfter.join(', ') || 'no time'} s`,
    }
  }),

  /** Passes if the attempts were made at exactly these seconds after acceptance. */
  toHaveAttemptedAt: matcher((recipient, seconds: readonly number[]) => ({
    holds: JSON.stringify(recipient.attemptedAt) === JSON.stringify(seconds),
    expected: `to have been tried at ${seconds.join(', ')} s`,
    found: `it was tried at ${recipient.attemptedAt.join(', ') || 'no time'} s`,
  })),

  /** Passes if the sender got notices of exactly these kinds, in this order. */
  toHaveCausedNotices: matcher((recipient, kinds: readonly ('failure' | 'delay' | 'success')[]) => ({
    holds: JSON.stringify(recipient.notices) === JSON.stringify(kinds),
    expected: `to have caused notices of ${kinds.join(', ') || 'nothing'}`,
    found: noticesSent(recipient),
  })),
}

/** Signature of a matcher on the object that expect() returns. */
export type Asserting<M> = M extends (this: never, received: unknown, ...args: infer Args) => MatcherResult
  ? (...args: Args) => void
  : never

/**
 * Types of the matchers for expect(), to be added to vitest's with
 * `declare module 'vitest' { interface Matchers<R extends void | Promise<void>, T = unknown> extends DeferdMatchers {} }`.
 */
export type DeferdMatchers = { [Name in keyof typeof matchers]: Asserting<(typeof matchers)[Name]> }
