import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DeliveryStatus, Stage } from '../../../../src/mail/smtp-reply.ts'
import { AdaptiveRate, asksForLowerRate, type RateFacts } from '../../../../src/queue/scheduler/rate/adaptive-rate.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../../../src/system/clock.ts'
import { countPerPeriod, drain, tokenBucket, type Drained, type Limiter } from '../../../support/limited-destination.ts'

const statusOf = (reply: string, status: string, stage: Stage = 'rcpt'): DeliveryStatus => ({ reply, status, stage, reason: reply })

const DELIVERED: RateFacts['outcomes'] = [{ outcome: 'delivered', status: statusOf('250 2.0.0 Ok', '2.0.0', 'end-of-data') }]
const REFUSED: RateFacts['outcomes'] = [{ outcome: 'deferred', status: statusOf('451 4.7.0 too many', '4.7.0') }]

const times = (now: Duration) => ({ now, sentAt: now - 100, others: 0 })
const accept = (rate: AdaptiveRate, now: Duration, fresh = true) => rate.learn({ outcomes: DELIVERED, fresh, ...times(now) })
const refuse = (rate: AdaptiveRate, now: Duration, fresh = true) => rate.learn({ outcomes: REFUSED, fresh, ...times(now) })

/** A rate after refusals in half of ten seconds, at a destination that accepts one message a second. */
function limited(): AdaptiveRate {
  const rate = new AdaptiveRate()
  accept(rate, 0)
  for (let now = 500; now <= 10_500; now += 500)
    if (now % SECOND === 0) accept(rate, now)
    else refuse(rate, now)
  return rate
}

/** Attempts refused, and time of the last acceptance as a multiple of the shortest possible one. */
function resultOf(perSecond: number, { accepted, refused }: Drained) {
  const shortest = (accepted.length / perSecond) * SECOND
  return { share: refused.length / (accepted.length + refused.length), time: (accepted.at(-1) ?? Infinity) / shortest }
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
    expect(rate.pauseAfterMail(100)).toBe(0)
  })

  test('has no limit after one refusal: a server that restarts tells no rate', () => {
    const rate = new AdaptiveRate()
    for (let n = 0; n < 9; n++) accept(rate, n)
    expect(refuse(rate, SECOND)).toBeUndefined()
    expect(rate.at(SECOND)).toBeNull()
  })

  test('has no limit when refusals are rare', () => {
    const rate = new AdaptiveRate()
    for (let n = 0; n < 200; n++) {
      if (n % 5 === 4) refuse(rate, n * 3 * MINUTE)
      else accept(rate, n * 3 * MINUTE)
      expect(rate.at(n * 3 * MINUTE)).toBeNull()
    }
  })

  test('is what was accepted between refusals, whatever was accepted before them', () => {
    const rate = new AdaptiveRate()
    for (let n = 0; n < 500; n++) accept(rate, n)
    for (let now = 1_000; now <= 11_000; now += 500) {
      if (now % SECOND === 0) refuse(rate, now)
      else accept(rate, now)
    }
    expect(rate.at(11_000)).toBeGreaterThan(50)
    expect(rate.at(11_000)).toBeLessThan(70)
  })

  test('counts MAIL to MAIL for a destination that answers before the next start', () => {
    const rate = limited()
    const pause = MINUTE / (rate.at(10_500) ?? NaN)
    expect(rate.pauseAfterMail(10_500)).toBeCloseTo(pause - 100, 5)
    expect(rate.pauseAfterMail(HOUR)).toBe(0)
  })

  test('is told when it is found, and once a minute while it falls', () => {
    const rate = new AdaptiveRate()
    const told: Duration[] = []
    for (let now = 0; now < 5 * MINUTE; now += 5 * SECOND) {
      const lowered = now % (10 * SECOND) === 0 && now < MINUTE ? accept(rate, now) : refuse(rate, now)
      if (lowered === undefined) continue
      told.push(now)
      expect(lowered).toMatchObject({ rate: rate.at(now), refusal: { status: '4.7.0' } })
    }
    expect(told.length).toBeGreaterThan(0)
    told.slice(1).forEach((at, n) => expect(at - (told[n] ?? 0)).toBeGreaterThanOrEqual(MINUTE))
  })

  test('is at least one per minute', () => {
    const rate = limited()
    for (let now = 11 * SECOND; now < HOUR; now += MINUTE / (rate.at(now) ?? 1)) refuse(rate, now)
    expect(rate.at(HOUR)).toBe(1)
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
    for (let n = 1; n < 20; n++) {
      accept(rate, HOUR + n * SECOND, false)
      refuse(rate, HOUR + n * SECOND + 500)
    }
    expect(rate.at(HOUR + 20 * SECOND)).toBeNull()
  })

  test('ends by order of an operator, and an hour after the last refusal', () => {
    const rate = limited()
    expect(rate.at(50 * MINUTE)).not.toBeNull()
    expect(rate.at(2 * HOUR)).toBeNull()
    rate.forget()
    expect(rate.at(11 * SECOND)).toBeNull()
  })

  test('is null or at least one per minute, whatever happens', () => {
    const step = fc.record({
      accepted: fc.boolean(),
      fresh: fc.boolean(),
      after: fc.nat(2 * HOUR),
      took: fc.nat(MINUTE),
      others: fc.nat(30),
    })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const rate = new AdaptiveRate()
        let now = 0
        for (const { accepted, fresh, after, took, others } of steps) {
          now += after
          rate.learn({ outcomes: accepted ? DELIVERED : REFUSED, fresh, now, sentAt: now - took, others })
          expect(rate.at(now) ?? 1).toBeGreaterThanOrEqual(0.9)
          expect(rate.pauseAfterMail(now)).toBeLessThanOrEqual(67 * SECOND)
        }
      }),
    )
  })
})

describe('a backlog drains at the rate of a limiter, with few refusals', () => {
  const RATES: readonly (readonly [string, number])[] = [
    ['5/s', 5],
    ['1/s', 1],
    ['100/min', 100 / 60],
    ['1,000/h', 1000 / 3600],
  ]
  for (const [name, perSecond] of RATES) {
    test.each([true, false])(`1,500 messages at ${name}; refusals close the connection: %s`, (closes) => {
      for (const latency of [20, 100]) {
        for (const jitter of [0, 0.1, 0.3]) {
          const facts = { limiter: tokenBucket(perSecond), messages: 1_500, latency, jitter, closes }
          const { share, time } = resultOf(perSecond, drain(facts))
          expect([time <= 1.35, share <= 0.05], `latency ${latency}, jitter ${jitter}: ${time} × the time, ${share} refused`).toEqual([
            true,
            true,
          ])
        }
      }
    })
  }

  test.each([0.2, 1, 5, 20])('%s/s with bursts from one message to a minute’s worth', (perSecond) => {
    for (const worth of [2, 10, 60]) {
      for (const window of [1, 5, 20]) {
        const messages = Math.max(1_500, 1_200 * perSecond)
        const able = Math.min(perSecond, window / 0.22)
        const facts = {
          limiter: tokenBucket(perSecond, Math.max(2, worth * perSecond)),
          messages,
          latency: 100,
          jitter: 0.2,
          closes: true,
          window,
        }
        const { share, time } = resultOf(able, drain(facts))
        expect([time <= 1.35, share <= 0.05], `burst ${worth} s, window ${window}: ${time} × the time, ${share} refused`).toEqual([
          true,
          true,
        ])
      }
    }
  })

  test.each([10, 60, 300])('counters that begin anew every %s s', (period) => {
    for (const perSecond of [0.5, 2, 10]) {
      const facts = {
        limiter: countPerPeriod(perSecond * period, period * SECOND),
        messages: 3_000 * perSecond,
        latency: 100,
        jitter: 0.2,
        closes: true,
      }
      const { share, time } = resultOf(perSecond, drain(facts))
      expect([time <= 2, share <= 0.2], `${perSecond}/s: ${time} × the time, ${share} refused`).toEqual([true, true])
    }
  })

  test('a destination without a limiter is not slowed', () => {
    const { accepted } = drain({ limiter: () => true, messages: 5_000, latency: 100, jitter: 0.1, closes: true })
    expect(accepted.at(-1)).toBeLessThan(55 * SECOND)
  })

  test('a higher limit is found within 40 minutes, a lower one within a minute', () => {
    const [low, high] = [tokenBucket(2), tokenBucket(20)]
    const raised: Limiter = (now) => (now < HOUR ? low(now) : high(now))
    const up = drain({ limiter: raised, messages: 60_000, latency: 100, jitter: 0.1, closes: false, until: 2 * HOUR })
    expect(up.accepted.filter((at) => at > 100 * MINUTE && at <= 110 * MINUTE).length).toBeGreaterThan(0.8 * 600 * 20)
    const [before, after] = [tokenBucket(20), tokenBucket(2)]
    const cut: Limiter = (now) => (now < HOUR ? before(now) : after(now))
    const down = drain({ limiter: cut, messages: 80_000, latency: 100, jitter: 0.1, closes: false, until: 2 * HOUR })
    expect(down.refused.filter((at) => at > HOUR).length).toBeLessThan(60)
    expect(down.accepted.filter((at) => at > 61 * MINUTE).length).toBeGreaterThan(0.8 * 59 * 60 * 2)
  })

  test('a destination that refuses everything for a day gets few attempts', () => {
    const limiter: Limiter = (now) => now < 10 * SECOND
    const { refused } = drain({ limiter, messages: 20_000, latency: 100, jitter: 0.1, closes: true, until: DAY })
    expect(refused.length).toBeLessThan(24 * 60 + 100)
  })
})
