import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND, type Duration, type QueueTime } from '../../src/system/clock.ts'
import { QueueClock, resumedAt, type ClockRecord } from '../../src/system/queue-clock.ts'
import { BEGINNING, VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const YEAR = 365 * DAY
/** Assumed when the time that passed is unknown. */
const UNKNOWN = HOUR

/** Runs all timers of the next `time` ms. */
function pass(machine: VirtualClock, time: Duration): void {
  const end = machine.monotonic() + time
  machine.after(time, () => undefined)
  while (machine.monotonic() < end) machine.runNext()
}

/** The clock of the next process. */
function restarted(machine: VirtualClock, record: ClockRecord): QueueClock {
  const clock = new QueueClock(machine)
  clock.resume(record, UNKNOWN)
  return clock
}

test.each([10 * YEAR, -10 * YEAR, HOUR, -HOUR, MINUTE, -5 * SECOND])(
  'the wall clock set by %i ms moves no alarm and no instant',
  (step) => {
    const machine = new VirtualClock()
    const clock = new QueueClock(machine)
    const rang: QueueTime[] = []
    clock.alarm(clock.now() + 5 * MINUTE, () => rang.push(clock.now() - BEGINNING))
    pass(machine, MINUTE)
    machine.step(step)
    expect(clock.now()).toBe(BEGINNING + MINUTE)
    expect(clock.wall.now()).toBe(machine.now())
    pass(machine, 10 * MINUTE)
    expect(rang).toEqual([5 * MINUTE])
  },
)

test('a step is reported once', () => {
  const machine = new VirtualClock()
  const clock = new QueueClock(machine)
  machine.step(HOUR)
  // Read by others first.
  expect(clock.wallOffset()).toBe(-HOUR)
  expect([clock.observe(), clock.observe()]).toEqual([HOUR, 0])
  machine.step(-2 * HOUR)
  expect([clock.observe(), clock.observe()]).toEqual([-2 * HOUR, 0])
})

test('less than a second between the clocks is no step', () => {
  const machine = new VirtualClock()
  const clock = new QueueClock(machine)
  machine.step(999)
  expect([clock.observe(), clock.wallOffset()]).toEqual([0, 0])
  machine.step(1)
  expect([clock.observe(), clock.wallOffset()]).toEqual([SECOND, -SECOND])
})

test('a clock that is less than a second off, as one read from a database, has no offset, and keeps its own time', () => {
  const machine = new VirtualClock()
  for (const offset of [-999, -3, 2, 999]) {
    const record = { time: machine.now() + offset, offset, uptime: machine.uptime(), boot: machine.boot }
    const clock = restarted(machine, record)
    expect([clock.now() - machine.now(), clock.wallOffset(), clock.observe()]).toEqual([offset, 0, 0])
    expect(clock.record()).toEqual(record)
    machine.step(-2 * SECOND)
    expect([clock.observe(), clock.wall.now()]).toEqual([-2 * SECOND, machine.now()])
    machine.step(2 * SECOND)
  }
})

test('the time of a suspension passes: alarms that became due in it ring within the second', () => {
  const machine = new VirtualClock()
  const clock = new QueueClock(machine)
  const rang: QueueTime[] = []
  const cancelled = clock.alarm(clock.now() + 6 * MINUTE, () => rang.push(-1))
  for (const after of [5 * MINUTE, 2 * HOUR]) clock.alarm(clock.now() + after, () => rang.push(clock.now() - BEGINNING))
  pass(machine, MINUTE)
  machine.suspend(HOUR)
  cancelled.cancel()
  expect(clock.observe()).toBe(0)
  pass(machine, 1)
  expect(rang).toEqual([HOUR + MINUTE])
  pass(machine, DAY)
  expect(rang).toEqual([HOUR + MINUTE, 2 * HOUR])
})

describe('after a restart', () => {
  test('without a record the clock starts at the wall clock', () => {
    expect(resumedAt(null, { wall: BEGINNING, uptime: 5, boot: 1 }, UNKNOWN)).toBe(BEGINNING)
  })

  test.each([10 * YEAR, -10 * YEAR, HOUR, -HOUR])('in the same boot, a step of %i ms while it was down changes nothing', (step) => {
    const machine = new VirtualClock()
    const clock = new QueueClock(machine)
    pass(machine, HOUR)
    const record = clock.record()
    machine.step(step)
    pass(machine, 3 * MINUTE)
    const next = restarted(machine, record)
    expect(next.now()).toBe(BEGINNING + HOUR + 3 * MINUTE)
    expect(next.wall.now()).toBe(machine.now())
  })

  test('after another boot, as much time has passed as the wall clock shows', () => {
    const machine = new VirtualClock()
    machine.step(-YEAR)
    const clock = new QueueClock(machine)
    machine.step(YEAR)
    const record = clock.record()
    pass(machine, 3 * DAY)
    machine.reboot()
    expect(restarted(machine, record).now()).toBe(record.time + 3 * DAY)
  })

  test('after another boot with a clock set back, waits of up to the assumed time have ended', () => {
    const machine = new VirtualClock()
    const record = new QueueClock(machine).record()
    pass(machine, 3 * DAY)
    machine.reboot()
    machine.step(-10 * YEAR)
    expect(restarted(machine, record).now()).toBe(record.time + UNKNOWN)
    pass(machine, DAY)
    expect(restarted(machine, record).now()).toBe(record.time + DAY)
  })
})

test('over any steps, suspensions and restarts an alarm rings when its time has really passed', () => {
  const event = fc.record({
    kind: fc.constantFrom('step', 'suspend', 'restart'),
    by: fc.integer({ min: -20 * YEAR, max: 20 * YEAR }),
    after: fc.integer({ min: 2 * SECOND, max: 10 * MINUTE }),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), fc.integer({ min: 0, max: HOUR }), (events, wait) => {
      const machine = new VirtualClock()
      let clock = new QueueClock(machine)
      let rang: Duration | null = null
      const due = clock.now() + wait
      const arm = () => clock.alarm(due, () => (rang ??= machine.uptime()))
      let alarm = arm()
      const tick = () => {
        clock.observe()
        machine.after(SECOND, tick)
      }
      tick()
      for (const { kind, by, after } of events) {
        pass(machine, after)
        if (kind === 'step') machine.step(by)
        else if (kind === 'suspend') machine.suspend(Math.abs(by) % HOUR)
        else {
          alarm.cancel()
          clock = restarted(machine, clock.record())
          if (rang === null) alarm = arm()
        }
      }
      pass(machine, 2 * HOUR)
      const suspended = Math.max(0, ...events.filter(({ kind }) => kind === 'suspend').map(({ by }) => Math.abs(by) % HOUR))
      // Steps and suspensions of less than a second are not noticed; a longer suspension within a second after its end.
      expect(rang).toBeGreaterThanOrEqual(wait - events.length * SECOND)
      expect(rang).toBeLessThanOrEqual(wait + suspended + events.length * 2 * SECOND)
    }),
    { numRuns: 300 },
  )
})
