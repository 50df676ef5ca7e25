import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/system/clock.ts'
import { BEGINNING, VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const runAll = (clock: VirtualClock) => {
  while (clock.runNext());
}

test('the clock starts on 2026-01-01 UTC and does not advance by itself', () => {
  const clock = new VirtualClock()
  expect(new Date(clock.now()).toISOString()).toBe('2026-01-01T00:00:00.000Z')
  expect(clock.monotonic()).toBe(0)
  expect(clock.zone(clock.now())).toEqual({ offset: 0, name: 'UTC' })
  expect(clock.nextAt()).toBeNull()
  expect(clock.runNext()).toBe(false)
  expect(clock.now()).toBe(BEGINNING)
})

test('timers and alarms run at their time, ties in the order they were set', () => {
  const clock = new VirtualClock()
  const story: string[] = []
  const note = (what: string) => () => story.push(`${what} at ${clock.now() - BEGINNING}`)
  clock.after(2 * SECOND, note('second timer'))
  clock.alarm(BEGINNING + 2 * SECOND, note('alarm'))
  clock.after(SECOND, note('first timer'))
  clock.after(2 * SECOND, note('third timer'))
  expect(clock.nextAt()).toBe(BEGINNING + SECOND)
  runAll(clock)
  expect(story).toEqual(['first timer at 1000', 'second timer at 2000', 'alarm at 2000', 'third timer at 2000'])
})

test('a timer set while another runs follows those already due', () => {
  const clock = new VirtualClock()
  const story: string[] = []
  clock.after(0, () => {
    story.push('one')
    clock.after(0, () => story.push('three'))
  })
  clock.after(0, () => story.push('two'))
  runAll(clock)
  expect(story).toEqual(['one', 'two', 'three'])
})

test('a cancelled timer never runs, also when it is cancelled twice or after it ran', () => {
  const clock = new VirtualClock()
  let rang = 0
  const early = clock.after(SECOND, () => rang++)
  const late = clock.after(DAY, () => rang++)
  late.cancel()
  late.cancel()
  expect(clock.pending).toBe(1)
  runAll(clock)
  early.cancel()
  expect(rang).toBe(1)
  expect(clock.pending).toBe(0)
  expect(clock.now()).toBe(BEGINNING + SECOND)
})

test('setting the wall clock forward makes alarms due, not timers', () => {
  const clock = new VirtualClock()
  const story: string[] = []
  clock.after(MINUTE, () => story.push('timer'))
  clock.alarm(BEGINNING + HOUR, () => story.push('alarm'))
  clock.step(2 * HOUR)
  expect(clock.monotonic()).toBe(0)
  expect(clock.nextAt()).toBe(clock.now())
  clock.runNext()
  expect(story).toEqual(['alarm'])
  expect(clock.nextAt()).toBe(BEGINNING + 2 * HOUR + MINUTE)
})

test('setting the wall clock back postpones alarms', () => {
  const clock = new VirtualClock()
  let rangAt = 0
  clock.alarm(BEGINNING + MINUTE, () => (rangAt = clock.monotonic()))
  clock.step(-HOUR)
  runAll(clock)
  expect(rangAt).toBe(HOUR + MINUTE)
  expect(clock.now()).toBe(BEGINNING + MINUTE)
})

test('time can be moved up to the next timer, never past it and never back', () => {
  const clock = new VirtualClock()
  clock.after(HOUR, () => undefined)
  clock.jumpTo(BEGINNING + HOUR)
  expect(() => clock.jumpTo(BEGINNING + HOUR + 1)).toThrow('a timer is pending at')
  expect(() => clock.jumpTo(BEGINNING)).toThrow('it is before')
  expect(() => clock.after(Number.NaN, () => undefined)).toThrow('not a time')
})

test('for any timers set and cancelled, the rest runs in the order of (time, request)', () => {
  const requests = fc.array(fc.record({ delay: fc.integer({ min: 0, max: 50 }), alarm: fc.boolean(), cancel: fc.boolean() }), {
    maxLength: 300,
  })
  fc.assert(
    fc.property(requests, (list) => {
      const clock = new VirtualClock()
      const ran: number[] = []
      const timers = list.map(({ delay, alarm }, index) =>
        alarm ? clock.alarm(BEGINNING + delay, () => ran.push(index)) : clock.after(delay, () => ran.push(index)),
      )
      for (const [index, timer] of timers.entries()) if (list[index]?.cancel === true) timer.cancel()
      runAll(clock)
      const expected = [...list.keys()]
        .filter((index) => list[index]?.cancel === false)
        .toSorted((a, b) => (list[a]?.delay ?? 0) - (list[b]?.delay ?? 0) || a - b)
      expect(ran).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})
