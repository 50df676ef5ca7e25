/** Counts of causes that take long, over a queue in memory in virtual time. */
import { expect, test } from 'vitest'
import { Causes } from '../../src/queries/counts/causes.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { SECOND } from '../../src/system/clock.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { queue } from '../conformance/mail.ts'
import { ApiWorld } from '../support/api-world.ts'

/** Causes of a queue with one message, each slice of which is read when `read` is called. */
async function slowCauses() {
  const clock = new VirtualClock()
  const driver = new TimeDriver(clock, {})
  const { store, reader: whole } = openMemoryStore()
  await queue(store)
  const waiting: (() => void)[] = []
  let counts = 0
  const reader = Object.assign(Object.create(whole) as typeof whole, {
    causes: async (page: Parameters<typeof whole.causes>[0]) => {
      if (page.after === 0) counts++
      await new Promise<void>((resolve) => void waiting.push(resolve))
      return whole.causes(page)
    },
  })
  /** Reads a slice of the count that began first. */
  const read = async () => {
    waiting.shift()?.()
    await driver.rest()
  }
  return {
    causes: new Causes({ reader, clock }),
    read,
    counts: () => counts,
    advance: (seconds: number) => driver.runUntil(clock.now() + seconds * SECOND),
  }
}

const client = (signal = new AbortController().signal) => ({ visible: null, signal })

test('a count that takes minutes is kept for half a minute after its end', async () => {
  const { causes, read, counts, advance } = await slowCauses()
  const counted = causes.of('far.example', client())
  await advance(120)
  await read()
  await read()
  const result = await counted
  await advance(29)
  expect(await causes.within(SECOND, 'far.example', client())).toEqual(result)
  expect(counts()).toBe(1)
  await advance(2)
  const again = causes.of('far.example', client())
  await read()
  await read()
  await again
  expect(counts()).toBe(2)
})

test('a client that asks while a count is being ended gets the result of a new one', async () => {
  const { causes, read, counts, advance } = await slowCauses()
  const leaving = new AbortController()
  const left = causes.of('far.example', client(leaving.signal))
  leaving.abort()
  await expect(left).rejects.toThrow('aborted')
  await advance(11)
  // The slice of the first count is still being read.
  const asked = causes.of('far.example', client())
  expect(counts()).toBe(2)
  await read()
  // The end of the first count leaves the second one to further clients.
  const joined = causes.of('far.example', client())
  await read()
  await read()
  expect(await joined).toEqual(await asked)
  expect(counts()).toBe(2)
})

test('a known cause is that of the newest count, of its destination or of all', async () => {
  const world = await ApiWorld.open('memory')
  try {
    await world.fill(2)
    const causes = new Causes(world.api.api.view)
    const ofOne = await causes.of('a.example.org', client())
    const filter = ofOne.causes[0]?.filter ?? null
    if (filter === null) throw new Error('the cause has a filter')
    await world.queue.advance(40 * SECOND)
    const ofAll = await causes.sums(client())
    expect(ofAll.as_of).toBeGreaterThan(ofOne.as_of)
    expect(causes.known(filter, client())).toMatchObject({ as_of: ofAll.as_of, cause: { recipients: 2 } })
  } finally {
    await world.close()
  }
})
