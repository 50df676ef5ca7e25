/**
 * Matchers for expect() of vitest and jest: `expect.extend(matchers)`, then
 * `expect(world.recipient('ann@example.net')).toHaveBounced({ status: '5.1.1' })`. A failing one prints what happened.
 */
import { Recipient } from './recipient.ts'

interface Result {
  readonly pass: boolean
  message(): string
}

/** What a matcher found: does it hold, and what was expected, said so that `not` can stand before it. */
interface Finding {
  readonly holds: boolean
  /** `to have been delivered`. */
  readonly expected: string
  /** What is there instead. */
  readonly found: string
}

/** Turns a finding about a recipient into a result with the timeline in its message. */
function matcher<Args extends readonly unknown[]>(find: (recipient: Recipient, ...args: Args) => Finding) {
  return (received: unknown, ...args: Args): Result => {
    if (!(received instanceof Recipient)) throw new TypeError('expected a recipient: expect(world.recipient("ann@example.net"))')
    const { holds, expected, found } = find(received, ...args)
    const timeline = received.story.map((line) => `  ${line}`)
    return {
      pass: holds,
      message: () =>
        [
          `expected ${received.address} ${holds ? 'not ' : ''}${expected}, but ${found}`,
          ...(timeline.length > 0 ? timeline : ['  nothing was ever accepted for it']),
        ].join('\n'),
    }
  }
}

const outcomes = (recipient: Recipient): string => {
  const last = recipient.attempts.at(-1)
  return last === undefined ? 'it was never tried' : `it was last ${last.outcome} (${last.reply ?? last.reason})`
}

const told = ({ notices }: Recipient): string =>
  notices.length === 0 ? 'its sender was told nothing' : `its sender was told of ${notices.join(', ')}`

export interface BounceExpectation {
  /** The enhanced status code: `5.1.1`. */
  readonly status?: string
  /** A part of what the server said. */
  readonly reply?: string
}

export const matchers = {
  /** Every message for it was delivered. */
  toHaveBeenDelivered: matcher((recipient) => {
    const delivered = recipient.attempts.filter(({ outcome }) => outcome === 'delivered').length
    return { holds: delivered > 0 && delivered === recipient.accepted, expected: 'to have been delivered', found: outcomes(recipient) }
  }),

  /** Every message for it was delivered, and none lies twice in the mailbox. */
  toHaveBeenDeliveredOnce: matcher((recipient) => {
    const { copies, accepted } = recipient
    return {
      holds: copies.length === accepted && accepted > 0 && copies.every((count) => count === 1),
      expected: 'to have been delivered once',
      found: `${copies.length} of ${accepted} accepted messages are in the mailbox, with copies: ${copies.join(', ') || 'none'}`,
    }
  }),

  /** A server refused it for good, and its sender was told. */
  toHaveBounced: matcher((recipient, { status, reply }: BounceExpectation = {}) => {
    const bounced = recipient.attempts.filter(({ outcome }) => outcome === 'bounced')
    const found = bounced.some((one) => (status ?? one.status) === one.status && (one.reply ?? one.reason).includes(reply ?? ''))
    return {
      holds: found,
      expected: ['to have bounced', status, reply].filter((word) => word !== undefined).join(' '),
      found: outcomes(recipient),
    }
  }),

  /** Its lifetime was over before anybody took it. */
  toHaveExpired: matcher((recipient) => ({
    holds: recipient.attempts.some(({ outcome }) => outcome === 'expired'),
    expected: 'to have expired',
    found: outcomes(recipient),
  })),

  /** Its sender was warned that it is still waiting. */
  toHaveBeenDelayed: matcher((recipient) => ({
    holds: recipient.notices.includes('delay'),
    expected: 'to have been delayed, and its sender to have been told',
    found: told(recipient),
  })),

  /** Some try failed for the time being, so many times when told. */
  toHaveBeenDeferred: matcher((recipient, times?: number) => {
    const deferred = recipient.attempts.filter(({ outcome }) => outcome === 'deferred').length
    return {
      holds: times === undefined ? deferred > 0 : deferred === times,
      expected: `to have been deferred${times === undefined ? '' : ` ${times} times`}`,
      found: `it was deferred ${deferred} times`,
    }
  }),

  /** It was tried at exactly these seconds after it was accepted. */
  toHaveAttemptedAt: matcher((recipient, seconds: readonly number[]) => ({
    holds: JSON.stringify(recipient.attemptedAt) === JSON.stringify(seconds),
    expected: `to have been tried at ${seconds.join(', ')} s`,
    found: `it was tried at ${recipient.attemptedAt.join(', ') || 'no time'} s`,
  })),

  /** Its sender was sent notices of exactly these kinds, in this order. */
  toHaveCausedNotices: matcher((recipient, kinds: readonly ('failure' | 'delay' | 'success')[]) => ({
    holds: JSON.stringify(recipient.notices) === JSON.stringify(kinds),
    expected: `to have caused notices of ${kinds.join(', ') || 'nothing'}`,
    found: told(recipient),
  })),
}

type Asserting<M> = M extends (received: unknown, ...args: infer Args) => Result ? (...args: Args) => void : never

/** What the matchers add to expect(): `declare module 'vitest' { interface Matchers<T> extends DeferdMatchers {} }`. */
export type DeferdMatchers = { [Name in keyof typeof matchers]: Asserting<(typeof matchers)[Name]> }
