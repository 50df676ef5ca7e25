/** Outcomes that are written and not durable, as on a disk with slow syncs: a slot is free at once, and each destination has a limit of them. */
import { expect, test } from 'vitest'
import { intercepted } from '../../src/store/methods.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { QueueWorld } from '../support/queue-world.ts'

/** A queue whose outcomes are written at once, and durable when `sync` is called. */
async function slowDisk() {
  const opened = await openInlineStore({ memory: true })
  let waiting: (() => void)[] = []
  const state = { isSlow: true }
  const store = intercepted(opened.store, async (method, args, perform) => {
    const answer = await perform()
    if (method !== 'settle' || !state.isSlow) return answer
    const [, written] = args as [unknown, (() => void) | undefined]
    written?.()
    await new Promise<void>((resolve) => void waiting.push(resolve))
    return answer
  })
  const sync = (): void => {
    state.isSlow = false
    for (const resolve of waiting) resolve()
    waiting = []
  }
  return { queue: { store, reader: opened.reader }, sync }
}

const MAIL = 20

async function mailOn(config: Readonly<Record<string, string>>, destinations: readonly string[]) {
  const { queue, sync } = await slowDisk()
  const world = await QueueWorld.create({ queue, config, remote: () => ({ kind: 'accepts' }) })
  for (let n = 0; n < MAIL; n++) await world.accept([`user${n}@${destinations[n % destinations.length] ?? ''}`])
  await world.rest()
  return { world, sync }
}

const ONE_SLOT = { default_process_limit: '1', initial_destination_concurrency: '1', default_destination_concurrency_limit: '1' }

test('a slot is free when the outcome is written: one slot makes all deliveries before a sync ends', async () => {
  const { world, sync } = await mailOn({ ...ONE_SLOT, default_destination_unsettled_limit: '100' }, ['far.example'])
  expect(world.arrivals()).toHaveLength(MAIL)
  expect(world.happened('attempted')).toEqual([])
  sync()
  await world.rest()
  expect(world.happened('attempted')).toHaveLength(MAIL)
  expect(world.happened('removed')).toHaveLength(MAIL)
})

test('a destination waits at the limit of outcomes that are not durable, and others do not', async () => {
  const { world, sync } = await mailOn({ ...ONE_SLOT, default_destination_unsettled_limit: '3' }, ['far.example', 'else.example'])
  expect([world.attempts('far.example').length, world.attempts('else.example').length]).toEqual([3, 3])
  sync()
  await world.rest()
  expect(world.arrivals()).toHaveLength(MAIL)
})

test('the limit is five times the concurrency limit', async () => {
  const { world, sync } = await mailOn(ONE_SLOT, ['far.example'])
  expect(world.attempts()).toHaveLength(5)
  sync()
  await world.rest()
  expect(world.attempts()).toHaveLength(MAIL)
})

test('the message of such an outcome is still in transfer', async () => {
  const { world, sync } = await mailOn({ ...ONE_SLOT, default_destination_unsettled_limit: '2' }, ['far.example'])
  expect(world.relay.scheduler.transfers).toHaveLength(2)
  sync()
  await world.rest()
  expect(world.relay.scheduler.transfers).toEqual([])
})
