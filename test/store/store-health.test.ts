import { expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { StoreHealth } from '../../src/store/store-health.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

/** A store that cannot commit while `broken`, and what its health reported, with seconds since the start. */
function storeHealth() {
  const clock = new VirtualClock({ startsAt: 0 })
  const driver = new TimeDriver(clock, {})
  const state = { broken: true, pings: 0 }
  const reported: string[] = []
  const at = () => clock.monotonic() / SECOND
  const commit = async () => {
    if (state.broken) throw new StoreUnavailable('disk full')
    return at()
  }
  const ping = async () => {
    state.pings++
    await commit()
  }
  const health = new StoreHealth({ clock, store: { ping }, failed: (why) => reported.push(`${at()} ${why}`) })
  health.onRecovery(() => reported.push(`${at()} recovered`))
  return { clock, health, state, reported, commit, advance: (seconds: number) => driver.runUntil(clock.now() + seconds * SECOND) }
}

test('a call is repeated every second until it is committed', async () => {
  const { health, state, commit, advance } = storeHealth()
  const committed = health.retryUntilCommitted(commit)
  await advance(3)
  state.broken = false
  await advance(10)
  expect(await committed).toBe(4)
})

test('one failure and one recovery are reported, however many calls fail meanwhile', async () => {
  const { clock, health, state, reported, commit, advance } = storeHealth()
  for (let n = 0; n < 5; n++) void health.retryUntilCommitted(commit)
  await advance(2)
  expect(health.unavailable).toBe(true)
  state.broken = false
  await advance(10)
  expect(reported).toEqual(['0 disk full', '2.25 recovered'])
  expect(health.unavailable).toBe(false)
  expect(state.pings).toBe(9)
  expect(clock.pending).toBe(0)
})

test('after the end of retries a call is tried once more and then rejects; pings end', async () => {
  const { clock, health, reported, commit, advance } = storeHealth()
  const committed = health.retryUntilCommitted(commit)
  await advance(1)
  health.abandon()
  await expect(committed).rejects.toThrow(StoreUnavailable)
  await expect(health.retryUntilCommitted(commit)).rejects.toThrow(StoreUnavailable)
  await advance(10)
  expect(clock.pending).toBe(0)
  expect(reported).toEqual(['0 disk full'])
})

test('any other error is a bug and is thrown on', async () => {
  const { health, reported } = storeHealth()
  await expect(health.retryUntilCommitted(() => Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug')
  expect(reported).toEqual([])
})

test('a node whose lease may be over counts as unable to commit, without a report', () => {
  let holds = true
  const ping = () => Promise.resolve()
  const health = new StoreHealth({ clock: new VirtualClock(), store: { ping }, holds: () => holds, failed: expect.unreachable })
  expect(health.unavailable).toBe(false)
  holds = false
  expect(health.unavailable).toBe(true)
})
