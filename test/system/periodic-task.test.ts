/** Periodic tasks, in virtual time. */
import { expect, test } from 'vitest'
import { SECOND, type Duration } from '../../src/system/clock.ts'
import { every, type PeriodicTaskOptions } from '../../src/system/periodic-task.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

interface Options extends PeriodicTaskOptions {
  readonly interval?: Duration | ((took: Duration) => Duration)
  /** Time that a run takes; Infinity for runs that the test ends. */
  readonly takes?: Duration
  /** Error of a run, by its number from 1. */
  readonly fails?: (run: number) => Error | null
}

/** A task that runs every 10 s, with the begins of its runs in seconds on the monotonic clock. */
function started({ interval = 10 * SECOND, takes = 0, fails = () => null, ...options }: Options = {}) {
  const clock = new VirtualClock()
  const driver = new TimeDriver(clock, {})
  const begins: number[] = []
  const ends: (() => void)[] = []
  const signals: AbortSignal[] = []
  const run = async (stopping: AbortSignal): Promise<void> => {
    begins.push(clock.monotonic() / SECOND)
    signals.push(stopping)
    const error = fails(begins.length)
    if (takes > 0)
      await new Promise<void>((resolve) => {
        ends.push(resolve)
        if (takes < Infinity) clock.after(takes, resolve)
      })
    if (error !== null) throw error
  }
  const task = every(clock, interval, run, options)
  return { clock, task, begins, ends, signals, advance: (time: Duration) => driver.runUntil(clock.now() + time) }
}

test('runs an interval after the start, and after the end of each run', async () => {
  const { begins, advance } = started({ takes: 3 * SECOND })
  await advance(40 * SECOND)
  expect(begins).toEqual([10, 23, 36])
})

test('an immediate task begins in the turn of its start', async () => {
  const { begins, advance } = started({ immediate: true })
  expect(begins).toEqual([0])
  await advance(10 * SECOND)
  expect(begins).toEqual([0, 10])
})

test('runs that a long one delays are skipped, and none begins beside it', async () => {
  const { begins, ends, advance } = started({ takes: Infinity })
  await advance(45 * SECOND)
  expect(begins).toEqual([10])
  ends[0]?.()
  await advance(10 * SECOND)
  expect(begins).toEqual([10, 55])
})

test('steps of the wall clock change no interval', async () => {
  const { clock, begins, advance } = started()
  await advance(10 * SECOND)
  clock.step(-3_600 * SECOND)
  await advance(15 * SECOND)
  expect(begins).toEqual([10, 20])
})

test('an interval is computed from the time that the last run took', async () => {
  const { begins, advance } = started({ takes: 2 * SECOND, interval: (took) => Math.max(5 * SECOND, 10 * took) })
  await advance(60 * SECOND)
  expect(begins).toEqual([5, 27, 49])
})

test('a wake between runs begins one at once, and the interval begins anew', async () => {
  const { task, begins, advance } = started()
  await advance(4 * SECOND)
  task.wake()
  expect(begins).toEqual([4])
  await advance(11 * SECOND)
  expect(begins).toEqual([4, 14])
})

test('any number of wakes during a run cause one more', async () => {
  const { task, begins, advance } = started({ takes: 2 * SECOND })
  await advance(10 * SECOND)
  for (let n = 0; n < 5; n++) task.wake()
  expect(begins).toEqual([10])
  await advance(14 * SECOND)
  expect(begins).toEqual([10, 12, 24])
})

test('a run that wakes its own task runs once more, after its end', async () => {
  const clock = new VirtualClock()
  const driver = new TimeDriver(clock, {})
  const steps: string[] = []
  const task = every(clock, 10 * SECOND, () => {
    steps.push('begin')
    if (steps.length === 1) task.wake()
    steps.push('end')
  })
  await driver.runUntil(clock.now() + 10 * SECOND)
  expect(steps).toEqual(['begin', 'end', 'begin', 'end'])
})

test('a stop between runs leaves no timer', async () => {
  const { clock, task, begins, advance } = started()
  await task.stop()
  expect(clock.pending).toBe(0)
  task.wake()
  await advance(60 * SECOND)
  expect(begins).toEqual([])
})

test('a stop aborts the signal of the run, waits for its end, and drops the run that a wake has asked for', async () => {
  const { clock, task, begins, ends, signals, advance } = started({ takes: Infinity })
  await advance(10 * SECOND)
  task.wake()
  let isStopped = false
  const stopped = task.stop().then(() => (isStopped = true))
  expect(signals[0]?.aborted).toBe(true)
  await advance(60 * SECOND)
  expect(isStopped).toBe(false)
  ends[0]?.()
  await stopped
  expect([begins, clock.pending]).toEqual([[10], 0])
})

test('a stop with a limit does not wait longer for a run', async () => {
  const { clock, task, advance } = started({ takes: Infinity, stopLimit: 2 * SECOND })
  await advance(10 * SECOND)
  const stopped = task.stop().then(() => clock.monotonic())
  await advance(60 * SECOND)
  expect(await stopped).toBe(12 * SECOND)
})

test('an error that the policy handles leaves the task running', async () => {
  const later = new Error('the disk is full')
  const errors: unknown[] = []
  const { task, begins, advance } = started({ fails: (run) => (run === 1 ? later : null), failed: (error) => errors.push(error) })
  await advance(20 * SECOND)
  expect([begins, errors]).toEqual([[10, 20], [later]])
  await task.stop()
})

test.each([
  ['by default', undefined],
  [
    'by a policy that throws it',
    (error: unknown): void => {
      throw error
    },
  ],
])('an unexpected error is not handled %s', async (_, failed) => {
  const { task, advance } = started({ takes: SECOND, fails: () => new TypeError('a bug'), ...(failed === undefined ? {} : { failed }) })
  await advance(10 * SECOND)
  const settled = expect(task.settled()).rejects.toThrow('a bug')
  await advance(SECOND)
  await settled
  await expect(task.stop()).rejects.toThrow('a bug')
})

test('an unexpected error that no caller awaits reaches the process', async () => {
  const unhandled = Promise.withResolvers<unknown>()
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.once('unhandledRejection', unhandled.resolve)
  try {
    const { advance } = started({ fails: () => new TypeError('a bug') })
    await advance(10 * SECOND)
    expect(await unhandled.promise).toEqual(new TypeError('a bug'))
  } finally {
    process.removeAllListeners('unhandledRejection')
    for (const one of others) process.on('unhandledRejection', one)
  }
})

test('settled resolves with the end of the run that has begun', async () => {
  const { task, advance } = started({ immediate: true, takes: 3 * SECOND })
  let isSettled = false
  void task.settled().then(() => (isSettled = true))
  await advance(2 * SECOND)
  expect(isSettled).toBe(false)
  await advance(SECOND)
  expect(isSettled).toBe(true)
})
