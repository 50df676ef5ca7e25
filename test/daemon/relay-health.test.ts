/** The health of the relay: slow and failing by the time of a commit. */
import { expect, test } from 'vitest'
import { relayHealth } from '../../src/daemon/relay-health.ts'
import { sleep } from '../../src/system/clock.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

type Parts = NonNullable<ReturnType<Parameters<typeof relayHealth>[0]['parts']>>

async function lightAfter(commit: number) {
  const clock = new VirtualClock()
  const driver = new TimeDriver(clock, {})
  const parts = {
    store: { upkeep: { ping: () => sleep(clock, commit) } },
    relay: { intake: { assertSpace: async () => undefined }, scheduler: { alive: async () => undefined } },
  } as unknown as Parts
  const health = relayHealth({ clock, parts: () => parts })()
  await driver.runUntil(clock.now() + 5_000)
  return health
}

test.each([
  [249, 'good', 'commits in 249 ms'],
  [250, 'slow', 'commits in 250 ms'],
  [1_177, 'slow', 'commits in 1,177 ms'],
  [2_001, 'failing', 'no commit within 2 s'],
])('a commit of %d ms', async (commit, state, text) => {
  expect(await lightAfter(commit)).toEqual({ state, text })
})

test('a queue that is not open', async () => {
  expect(await relayHealth({ clock: new VirtualClock(), parts: () => null })()).toMatchObject({ state: 'failing' })
})
