import { describe, expect, test } from 'vitest'
import { retry, type RetryAttempt } from '../../src/backoff/index.ts'
import { hours, minutes, seconds } from '../../src/system/clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'

const advanceBy = (clock: VirtualClock, time: number): Promise<void> => new TimeDriver(clock, {}).runUntil(clock.now() + time)

class Busy extends Error {}

/** A function that fails until a time of the clock. */
const failsUntil = (clock: VirtualClock, at: number) => {
  const began = clock.monotonic()
  return async (): Promise<string> => {
    if (clock.monotonic() - began < at) throw new Busy('busy')
    return 'done'
  }
}

describe('retry', () => {
  test('repeats under the policy until the function succeeds', async () => {
    const clock = new VirtualClock()
    const seen: RetryAttempt[] = []
    const result = retry(failsUntil(clock, seconds(5)), { policy: 'fixed(2s)', until: '1h', clock, onAttempt: (one) => seen.push(one) })
    await advanceBy(clock, minutes(1))
    expect(await result).toBe('done')
    expect(seen.map(({ attempt, at, error, wait }) => [attempt, at, error instanceof Busy, wait])).toEqual([
      [1, 0, true, 2_000],
      [2, 2_000, true, 2_000],
      [3, 4_000, true, 2_000],
      [4, 6_000, false, null],
    ])
  })

  test('rejects with the last error at the limit: at once when no attempt would begin within it', async () => {
    const clock = new VirtualClock()
    let calls = 0
    const fails = () => Promise.reject(new Busy(`call ${++calls}`))
    const byTries = retry(fails, { policy: 'fixed(1m)', until: '3 tries', clock }).catch((error: unknown) => error)
    await advanceBy(clock, hours(1))
    expect(await byTries).toEqual(new Busy('call 3'))
    const began = clock.monotonic()
    const byTime = retry(fails, { policy: 'table(1m,2h)', until: '1h', clock }).catch((error: unknown) => [
      error,
      clock.monotonic() - began,
    ])
    await advanceBy(clock, hours(2))
    expect(await byTime).toEqual([new Busy('call 5'), 60_000])
    const byPolicy = retry(fails, { policy: 'google-drive', clock }).catch((error: unknown) => error)
    await advanceBy(clock, hours(2))
    expect(await byPolicy).toEqual(new Busy('call 10'))
  })

  test('an attempt that goes on at the limit is told, and not awaited', async () => {
    const clock = new VirtualClock()
    let told: unknown
    const hangs = ({ signal }: { readonly signal: AbortSignal }) =>
      new Promise<never>(() => signal.addEventListener('abort', () => (told = signal.reason)))
    const result = retry(hangs, { policy: 'doubling', until: '1h', clock }).catch((error: unknown) => [error, clock.monotonic()])
    await advanceBy(clock, hours(2))
    expect(await result).toEqual([expect.objectContaining({ message: 'no attempt ended within 1h' }), hours(1)])
    expect(told).toMatchObject({ message: 'no attempt ended within 1h' })
  })

  test('ends with the signal of the caller, in a wait and in an attempt', async () => {
    const clock = new VirtualClock()
    const caller = new AbortController()
    const waits = retry(() => Promise.reject(new Busy()), { policy: 'fixed(1h)', until: '9h', clock, signal: caller.signal })
    const caught = waits.catch((error: unknown) => error)
    await advanceBy(clock, minutes(5))
    caller.abort(new Error('enough'))
    expect(await caught).toEqual(new Error('enough'))
    await expect(retry(() => 'never called', { policy: 'fixed(1h)', until: '9h', clock, signal: caller.signal })).rejects.toThrow('enough')
  })

  test.each([
    ['an unknown policy', { policy: 'linear', until: '1h' }, 'unknown policy "linear"'],
    ['no time', { policy: 'doubling', until: '0' }, 'the limit of time is 0s'],
    ['no tries', { policy: 'doubling', until: '0 tries' }, 'the limit is 0 tries'],
    ['an endless policy without a limit', { policy: 'doubling' }, 'the policy doubling never ends: give a limit'],
    ['an endless table without a limit', { policy: 'table(1s)' }, 'the policy table(1s) never ends'],
    ['a policy whose ends are switched off', { policy: 'google-http(stop_elapsed=0,stop_interval=0)' }, 'never ends'],
    ['a limit that is none', { policy: 'doubling', until: 'soon' }, '"soon" is not a limit'],
  ])('refuses %s', async (_what, options, text) => {
    await expect(retry(() => 'x', options)).rejects.toThrow(text)
  })
})

describe('the example of the fault tolerant shell: three servers, of which two are down, for an hour', () => {
  /** `try for 1 hour; forany server in …` */
  async function anyServer(upAt: Readonly<Record<string, number>>) {
    const clock = new VirtualClock()
    const asked: string[] = []
    const result = retry(
      () => {
        for (const [server, at] of Object.entries(upAt)) {
          asked.push(server)
          if (clock.monotonic() >= at) return server
        }
        throw new Busy('all servers are down')
      },
      { policy: 'thain(T=1s,F=2,M=10m)', until: '1h', clock },
    ).catch((error: unknown) => error)
    await advanceBy(clock, hours(2))
    return { result: await result, asked, clock }
  }

  test('the one that is up answers in the first round', async () => {
    expect(await anyServer({ x: Infinity, y: Infinity, z: 0 })).toMatchObject({ result: 'z', asked: ['x', 'y', 'z'] })
  })

  test('one that comes up after 20 minutes answers after at most twice the outage', async () => {
    const { result, asked } = await anyServer({ x: Infinity, y: minutes(20), z: Infinity })
    expect(result).toBe('y')
    // 1 + 2 + 4 + … s, each up to doubled, until 10 minutes.
    expect(asked.length / 3).toBeLessThan(14)
    expect(asked.length / 3).toBeGreaterThan(8)
  })

  test('with none, the hour ends with the error of the last round', async () => {
    expect((await anyServer({ x: Infinity, y: Infinity, z: hours(3) })).result).toEqual(new Busy('all servers are down'))
  })
})
