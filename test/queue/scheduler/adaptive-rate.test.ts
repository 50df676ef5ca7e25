import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DeliveryStatus, Stage } from '../../../src/mail/smtp-reply.ts'
import { AdaptiveRate, asksForLowerRate, type RateFacts } from '../../../src/queue/scheduler/adaptive-rate.ts'
import { HOUR, MINUTE, SECOND, type Duration } from '../../../src/system/clock.ts'

const statusOf = (reply: string, status: string, stage: Stage = 'rcpt'): DeliveryStatus => ({ reply, status, stage, reason: reply })

const DELIVERED: RateFacts['outcomes'] = [{ outcome: 'delivered', status: statusOf('250 2.0.0 Ok', '2.0.0', 'end-of-data') }]
const REFUSED: RateFacts['outcomes'] = [{ outcome: 'deferred', status: statusOf('451 4.7.0 too many', '4.7.0') }]

const accept = (rate: AdaptiveRate, now: Duration, fresh = true) => rate.learn({ outcomes: DELIVERED, fresh, now })
const refuse = (rate: AdaptiveRate, now: Duration, fresh = true) => rate.learn({ outcomes: REFUSED, fresh, now })

/** A rate after 100 accepted deliveries in 6 s and a refusal at second 6. */
function halved(): AdaptiveRate {
  const rate = new AdaptiveRate()
  for (let n = 0; n < 100; n++) accept(rate, n * 60)
  expect(refuse(rate, 6 * SECOND)).toMatchObject({ rate: 50, refusal: { status: '4.7.0' } })
  return rate
}

describe('replies that ask for less mail', () => {
  test.each([
    ['421 4.3.0 closing', '4.3.0', 'end-of-data', true],
    ['451 4.3.2 busy', '4.3.2', 'rcpt', true],
    ['451 4.4.5 congested', '4.4.5', 'mail', true],
    ['451 4.7.0 later', '4.7.0', 'rcpt', true],
    ['450 4.7.28 rate', '4.7.28', 'data', true],
    ['550 5.7.28 rate', '5.7.28', 'end-of-data', true],
    ['454 4.7.0 TLS not available', '4.7.0', 'starttls', false],
    ['454 4.7.0 later', '4.7.0', 'auth', false],
    ['451 4.7.1 greylisted', '4.7.1', 'rcpt', false],
    ['452 4.2.2 full', '4.2.2', 'rcpt', false],
    ['550 5.1.1 unknown', '5.1.1', 'rcpt', false],
  ] as const)('%s (%s) at %s: %s', (reply, status, stage, expected) => {
    expect(asksForLowerRate(statusOf(reply, status, stage))).toBe(expected)
  })

  test('a failure without a reply does not', () => {
    expect(asksForLowerRate({ status: '4.7.0', reason: 'cannot authenticate', stage: 'ehlo' })).toBe(false)
  })
})

describe('the rate', () => {
  test('has no limit before a refusal', () => {
    const rate = new AdaptiveRate()
    accept(rate, 0)
    expect(rate.at(HOUR)).toBeNull()
  })

  test('is half of what was accepted in the last minute', () => expect(halved().at(6 * SECOND)).toBe(50))

  test('grows by 1/16 of the refused rate in each quiet minute, and ends at twice the refused rate', () => {
    const rate = halved()
    expect(rate.at(6 * SECOND + MINUTE)).toBe(56.25)
    expect(rate.at(6 * SECOND + 8 * MINUTE)).toBe(100)
    expect(rate.at(6 * SECOND + 23 * MINUTE)).toBe(193.75)
    expect(rate.at(6 * SECOND + 24 * MINUTE)).toBeNull()
  })

  test('is not lowered again within a minute, but does not grow either', () => {
    const rate = halved()
    expect(refuse(rate, 50 * SECOND)).toBeUndefined()
    expect(rate.at(50 * SECOND)).toBe(50)
    expect(rate.at(50 * SECOND + MINUTE)).toBe(56.25)
  })

  test('is halved from what the destination accepted, when that is less than the limit', () => {
    const rate = halved()
    for (let n = 0; n < 10; n++) accept(rate, 3 * MINUTE + n)
    expect(refuse(rate, 3 * MINUTE + SECOND)?.rate).toBeCloseTo(5, 0)
  })

  test('is at least one per minute', () => {
    const rate = halved()
    for (let minutes = 10; minutes < 50; minutes += 2) refuse(rate, minutes * MINUTE)
    expect(rate.at(48 * MINUTE)).toBe(1)
  })

  test('is not limited by greylisting, which refuses each first attempt and accepts the second', () => {
    const rate = new AdaptiveRate()
    for (let n = 0; n < 500; n++) {
      expect(refuse(rate, n * SECOND)).toBeUndefined()
      accept(rate, n * SECOND, false)
    }
    expect(rate.at(500 * SECOND)).toBeNull()
  })

  test('ignores refusals when no first attempt was accepted for an hour', () => {
    const rate = new AdaptiveRate()
    accept(rate, 0)
    for (let n = 0; n < 20; n++) accept(rate, HOUR + 1, false)
    expect(refuse(rate, HOUR + 1)).toBeUndefined()
    accept(rate, HOUR + 1)
    expect(refuse(rate, HOUR + 2)).toBeDefined()
  })

  test('has no limit when the destination had few messages: one refusal of a server that restarts tells no rate', () => {
    const rate = new AdaptiveRate()
    for (let n = 0; n < 9; n++) accept(rate, n)
    expect(refuse(rate, SECOND)).toBeUndefined()
    expect(rate.at(SECOND)).toBeNull()
  })

  test('ends by order of an operator', () => {
    const rate = halved()
    rate.forget()
    expect(rate.at(7 * SECOND)).toBeNull()
  })

  test('is null or at least one per minute, whatever happens', () => {
    const step = fc.record({ accepted: fc.boolean(), fresh: fc.boolean(), after: fc.nat(2 * HOUR) })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const rate = new AdaptiveRate()
        let now = 0
        for (const { accepted, fresh, after } of steps) {
          now += after
          if (accepted) accept(rate, now, fresh)
          else refuse(rate, now, fresh)
          expect(rate.at(now) ?? 1).toBeGreaterThanOrEqual(1)
        }
      }),
    )
  })
})
