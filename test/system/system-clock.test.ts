import { afterEach, expect, test, vi } from 'vitest'
import { DAY, HOUR, SECOND } from '../../src/system/clock.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { systemRandom } from '../../src/system/system-random.ts'

// The only file that replaces the timers of the process: the test is about their use. Spies are restored first, so that the
// process that other test files share gets its own timers back.
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

test('a wait of sixty days is split into sleeps of an hour and ends on time', () => {
  vi.useFakeTimers()
  const longest = vi.spyOn(globalThis, 'setTimeout')
  let woken = 0
  systemClock.after(60 * DAY, () => woken++)
  vi.advanceTimersByTime(60 * DAY - 1)
  expect(woken).toBe(0)
  vi.advanceTimersByTime(1)
  expect(woken).toBe(1)
  expect(Math.max(...longest.mock.calls.map(([, delay]) => delay ?? 0))).toBe(HOUR)
})

test('an alarm fires within a second after the wall clock was set past it', () => {
  vi.useFakeTimers()
  let rang = 0
  systemClock.alarm(Date.now() + DAY, () => rang++)
  vi.advanceTimersByTime(10 * SECOND)
  vi.setSystemTime(Date.now() + 2 * DAY)
  vi.advanceTimersByTime(SECOND)
  expect(rang).toBe(1)
})

test('an alarm follows the wall clock when it was set back', () => {
  vi.useFakeTimers()
  let rang = 0
  systemClock.alarm(Date.now() + HOUR, () => rang++)
  vi.setSystemTime(Date.now() - HOUR)
  vi.advanceTimersByTime(2 * HOUR - 1)
  expect(rang).toBe(0)
  vi.advanceTimersByTime(1)
  expect(rang).toBe(1)
})

test('no callback after cancel, and none before the caller has its timer', () => {
  vi.useFakeTimers()
  let ran = 0
  systemClock.after(HOUR, () => ran++).cancel()
  const overdue = systemClock.alarm(Date.now() - HOUR, () => ran++)
  expect(ran).toBe(0)
  overdue.cancel()
  vi.advanceTimersByTime(DAY)
  expect(ran).toBe(0)
})

test('the monotonic clock and the wall clock advance together', async () => {
  const [wall, monotonicTime] = [systemClock.now(), systemClock.monotonic()]
  await new Promise<void>((resolve) => systemClock.after(30, resolve))
  expect(systemClock.monotonic() - monotonicTime).toBeGreaterThanOrEqual(30)
  expect(systemClock.now() - wall).toBeGreaterThanOrEqual(25)
  const { offset, name } = systemClock.zone(systemClock.now())
  expect(Object.is(offset, -0)).toBe(false)
  expect(name).toMatch(/^[A-Z]/)
})

test('random numbers are in [0, 1) and differ', () => {
  const draws = new Set([...Array(100).keys()].map(() => systemRandom.draw('same key')))
  expect(draws.size).toBe(100)
  for (const draw of draws) expect(draw >= 0 && draw < 1).toBe(true)
  expect(systemRandom.stream('a')()).not.toBe(systemRandom.stream('a')())
})
