import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { QuotaLimit } from '../../../src/config/values/tables/quota-table.ts'
import {
  firstCommonRoom,
  firstRoom,
  firstRoomBetween,
  holdingUse,
  plannedAfter,
  sliceAt,
  usedAt,
  type Amounts,
} from '../../../src/queue/intake/quota-window.ts'
import { DAY, HOUR, MINUTE, type Duration, type QueueTime } from '../../../src/system/clock.ts'
import { mulberry32 } from '../../../src/system/random.ts'

const ONE: Amounts = { messages: 1, recipients: 1 }
const T0 = Date.parse('2026-01-01T00:00:00Z')

const limitOf = (most: number, span: Duration, measure: QuotaLimit['measure'] = 'messages'): QuotaLimit => ({
  text: '',
  measure,
  most,
  span,
})

/** Mail that is charged to one limit. */
class Charged {
  readonly slices = new Map<QueueTime, Amounts>()
  readonly times: { readonly at: QueueTime; readonly need: Amounts }[] = []
  readonly limit: QuotaLimit

  constructor(limit: QuotaLimit) {
    this.limit = limit
  }

  charge(at: QueueTime, need: Amounts = ONE): void {
    const begin = sliceAt(at, this.limit.span)
    const { messages, recipients } = this.slices.get(begin) ?? { messages: 0, recipients: 0 }
    this.slices.set(begin, { messages: messages + need.messages, recipients: recipients + need.recipients })
    this.times.push({ at, need })
  }

  room(from: QueueTime, need: Amounts = ONE): QueueTime {
    return firstRoom(this.slices, this.limit, need, from)
  }

  /** The most that is charged within a span. */
  get mostInSpan(): number {
    const sorted = this.times.toSorted((a, b) => a.at - b.at)
    let [first, used, most] = [0, 0, 0]
    for (const { at, need } of sorted) {
      used += need[this.limit.measure]
      for (let out = sorted[first]; out !== undefined && out.at <= at - this.limit.span; out = sorted[++first])
        used -= out.need[this.limit.measure]
      most = Math.max(most, used)
    }
    return most
  }
}

test('1000 in an hour: the next one has room when the first slice has left the window, at most a twelfth after the hour', () => {
  const charged = new Charged(limitOf(1_000, HOUR))
  for (let n = 0; n < 1_000; n++) charged.charge(T0 + n)
  expect(charged.room(T0 + 2 * MINUTE)).toBe(T0 + HOUR + 5 * MINUTE)
  expect(charged.room(T0 + HOUR + 5 * MINUTE)).toBe(T0 + HOUR + 5 * MINUTE)
})

test('as many have room after each twelfth as have left the window', () => {
  const charged = new Charged(limitOf(12, HOUR))
  for (let n = 0; n < 12; n++) charged.charge(T0 + n * 5 * MINUTE)
  for (let n = 0; n < 12; n++) {
    const at = T0 + HOUR + (n + 1) * 5 * MINUTE
    expect(charged.room(at - 1)).toBe(at)
    expect(usedAt(charged.slices, charged.limit, at)).toBe(11)
    charged.charge(at)
  }
})

const arrivals = fc.array(fc.record({ wait: fc.integer({ min: 0, max: 10 * MINUTE }), recipients: fc.integer({ min: 1, max: 5 }) }), {
  minLength: 30,
  maxLength: 80,
})
const limits = fc.record({
  most: fc.integer({ min: 5, max: 30 }),
  span: fc.constantFrom(MINUTE, 7 * MINUTE + 1, HOUR, DAY),
  measure: fc.constantFrom('messages' as const, 'recipients' as const),
})

describe('mail at random times', () => {
  test('refused mail: no span has more than the limit, and mail is refused only where 13 twelfths have it', () => {
    fc.assert(
      fc.property(limits, arrivals, ({ most, span, measure }, all) => {
        const charged = new Charged(limitOf(most, span, measure))
        let at = T0
        for (const { wait, recipients } of all) {
          at += wait
          const need = { messages: 1, recipients }
          if (charged.room(at, need) === at) charged.charge(at, need)
          else {
            const since = at - span - Math.ceil(span / 12)
            const near = charged.times.filter((one) => one.at > since).reduce((sum, one) => sum + one.need[measure], 0)
            expect(near + need[measure]).toBeGreaterThan(most)
          }
        }
        expect(charged.mostInSpan).toBeLessThanOrEqual(most)
      }),
      { numRuns: 20 },
    )
  })

  test('held mail: no span has more than the limit, and the order stays', () => {
    fc.assert(
      fc.property(limits, arrivals, ({ most, span, measure }, all) => {
        const charged = new Charged(limitOf(most, span, measure))
        let at = T0
        for (const { wait, recipients } of all) {
          at += wait
          const need = { messages: 1, recipients }
          charged.charge(charged.room(at, need), need)
        }
        const slices = charged.times.map((one) => sliceAt(one.at, span))
        expect(slices).toEqual(slices.toSorted((a, b) => a - b))
        expect(charged.mostInSpan).toBeLessThanOrEqual(most)
      }),
      { numRuns: 20 },
    )
  })
})

test('mail that is planned anew before other mail: no span has more than the limit, and each goes as soon as it has room', () => {
  fc.assert(
    fc.property(limits, arrivals, arrivals, ({ most, span, measure }, others, all) => {
      const charged = new Charged(limitOf(most, span, measure))
      let at = T0
      for (const { wait, recipients } of others) {
        at += wait
        const need = { messages: 1, recipients }
        charged.charge(charged.room(at, need), need)
      }
      let from = T0
      for (const { recipients } of all) {
        const need = { messages: 1, recipients }
        const next = firstRoomBetween(charged.slices, charged.limit, need, from)
        expect(next).toBeGreaterThanOrEqual(from)
        expect(next).toBeLessThanOrEqual(Math.max(from, charged.room(from, need)))
        charged.charge(next, need)
        from = next
      }
      expect(charged.mostInSpan).toBeLessThanOrEqual(most)
    }),
    { numRuns: 20 },
  )
})

test('of 100,000 arrivals at random times, no 60 minutes have more than 1,000 messages, and each twelfth takes what has left the window', () => {
  const next = mulberry32(20_261_130)
  const charged = new Charged(limitOf(1_000, HOUR))
  const refusedIn = new Set<QueueTime>()
  let at = T0
  for (let n = 0; n < 100_000; n++) {
    // 2,000 an hour on average, in 50 hours.
    at += Math.floor(2 * next() * 1_800)
    if (charged.room(at) === at) charged.charge(at)
    else refusedIn.add(sliceAt(at, HOUR))
  }
  expect(charged.mostInSpan).toBe(1_000)
  expect(refusedIn.size).toBeGreaterThan(300)
  // A slice in which mail was refused has used up all that the 13 slices may have.
  for (const slice of refusedIn) expect(usedAt(charged.slices, charged.limit, slice)).toBe(1_000)
})

test('several limits have room together, also for mail that one of them never has room for', () => {
  const hour = new Charged(limitOf(2, HOUR))
  const day = new Charged(limitOf(3, DAY))
  const both = [hour, day].map(({ slices, limit }) => ({ slices, limit }))
  const plan = (need: Amounts): QueueTime => {
    const at = firstCommonRoom(both, need, T0)
    for (const one of [hour, day]) one.charge(at, need)
    return at
  }
  expect([plan(ONE), plan(ONE), plan(ONE), plan(ONE)]).toEqual([T0, T0, T0 + 65 * MINUTE, T0 + 26 * HOUR])
  const large = { slices: new Map(), limit: limitOf(2, HOUR, 'recipients') }
  expect(firstCommonRoom([large], { messages: 1, recipients: 3 }, T0)).toBe(T0)
  expect(plannedAfter(day.slices, day.limit, T0)).toBe(1)
})

test('of limits that have room at the same time, mail waits for the one without room before', () => {
  const [minutes, day] = [new Charged(limitOf(30, 5 * MINUTE)), new Charged(limitOf(10, DAY, 'recipients'))]
  const uses = [minutes, day].map(({ slices, limit }) => ({ slices, limit }))
  const plan = (need: Amounts, now: QueueTime = T0, roomOf = firstRoom, from = now): QuotaLimit | undefined => {
    const at = firstCommonRoom(uses, need, from, roomOf)
    const last = at === now ? undefined : holdingUse(uses, need, { from, roomOf, now })?.limit
    for (const one of [minutes, day]) one.charge(at, need)
    return last
  }
  const large = (recipients: number): Amounts => ({ messages: 1, recipients })
  expect(plan(large(6))).toBeUndefined()
  // The second one would have room, and keeps the order.
  expect([plan(large(5)), plan(ONE)]).toEqual([day.limit, day.limit])
  for (let n = 0; n < 3; n++) expect(plan(ONE, T0 + n)).toBe(day.limit)
  expect(plan(ONE, T0, firstRoomBetween, T0 + 26 * HOUR)).toBe(day.limit)
  expect(holdingUse([], ONE, { from: T0, roomOf: firstRoom, now: T0 })).toBeUndefined()
})

test('mail waits for the limit that holds a long row of mail, also where the other one counts it all', () => {
  const [minutes, day] = [new Charged(limitOf(2, 5 * MINUTE)), new Charged(limitOf(40, DAY))]
  const uses = [day, minutes].map(({ slices, limit }) => ({ slices, limit }))
  for (let n = 0; n < 40; n++) {
    const at = firstCommonRoom(uses, ONE, T0)
    if (at > T0) expect(holdingUse(uses, ONE, { from: T0, roomOf: firstRoom, now: T0 })?.limit).toBe(minutes.limit)
    for (const one of [minutes, day]) one.charge(at)
  }
  expect(holdingUse(uses, ONE, { from: T0, roomOf: firstRoom, now: T0 })?.limit).toBe(day.limit)
})
