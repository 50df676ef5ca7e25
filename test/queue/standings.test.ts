import { expect, test } from 'vitest'
import { settingsFor } from '../../src/config/destination-settings.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openMemoryStore } from '../../src/queue/memory/memory-store.ts'
import { PolicyBook } from '../../src/queue/policy-book.ts'
import { Scheduler } from '../../src/queue/scheduler.ts'
import type { QueueStore } from '../../src/queue/store.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'

const { config } = loadConfig({ calledAs: 'deferd', uid: 1000, env: {}, overrides: [] })
const settings = settingsFor(config, 'far.example', 'far.example').values
const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }

/** A scheduler without mail; what it remembers of destinations is on disk only when `written` says so. */
async function schedulerOver(store: QueueStore, written: Promise<void>): Promise<Scheduler> {
  const clock = new VirtualClock()
  const slow: QueueStore = new Proxy(store, {
    get: (target, name: keyof QueueStore) =>
      name === 'saveDestination'
        ? async (...args: Parameters<QueueStore['saveDestination']>) => {
            await written
            return target.saveDestination(...args)
          }
        : target[name].bind(target),
  })
  const book = new PolicyBook(config, () => 0)
  const scheduler = new Scheduler({
    store: slow,
    clock,
    events: new Events(() => clock.now()),
    agent: { deliver: () => new Promise(() => undefined), close: () => Promise.resolve() },
    limits: () => ({ deliveries: 100, messages: 1_000, recipients: 1_000, transportPause: 0, slots }),
    settingsOf: () => settings,
    factsFor: (destination) => book.factsFor(destination),
    owes: () => undefined,
    atRest: () => undefined,
  })
  await scheduler.start()
  return scheduler
}

test('a destination that was forgotten while its suspension was written down is suspended all the same', async () => {
  const { store } = openMemoryStore()
  const written = Promise.withResolvers<void>()
  const scheduler = await schedulerOver(store, written.promise)
  const suspended = scheduler.suspend('far.example', 'operator')
  await scheduler.scan()
  written.resolve()
  await suspended
  expect(scheduler.isClosed('far.example')).toBe(true)
  expect(scheduler.admit(store.nextId(), 'far.example', 1)).toBe(false)
  await scheduler.resume('far.example', 'operator')
  expect(await store.destinations()).toEqual([])
  expect(scheduler.isClosed('far.example')).toBe(false)
})
