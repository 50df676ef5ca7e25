/** The figures of the queue: how old they are, and whose state and reply they show. */
import { expect, test } from 'vitest'
import { destinationDetails, destinationPage } from '../../src/queries/destinations.ts'
import { Now } from '../../src/queries/now.ts'
import { SECOND } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { QueueWorld } from '../support/queue-world.ts'

async function withWorld(run: (world: ApiWorld) => Promise<void>): Promise<void> {
  const world = await ApiWorld.open('memory')
  try {
    await run(world)
  } finally {
    await world.close()
  }
}

test('the first look after a minute has the suspensions of that minute, and not those that have ended', () =>
  withWorld(async (world) => {
    await world.fill(2)
    await world.fill(1, 'b.example.org')
    const { view } = world.api.api
    const now = new Now(view)
    const suspend = (name: string) => view.operations().suspend(name, { who: 'root', duration: null, reason: null })
    const resume = (name: string) => view.operations().resume(name, { who: 'root' })
    const closed = async () => {
      const { closed_destinations: those, troubles, as_of: at, time } = await now.value(null)
      expect(time - at).toBeLessThanOrEqual(10)
      expect(troubles.flatMap((one) => one.largest_destinations)).toEqual(those.map((one) => one.destination))
      return those.map((one) => [one.destination, one.state])
    }
    await suspend('b.example.org')
    expect(await closed()).toEqual([['b.example.org', 'suspended']])
    await resume('b.example.org')
    await suspend('a.example.org')
    await world.queue.advance(60 * SECOND)
    expect(await closed()).toEqual([['a.example.org', 'suspended']])
    // At once, too: the states are those of the memory, whatever was read from the store.
    await resume('a.example.org')
    await world.queue.advance(2 * SECOND)
    expect(await closed()).toEqual([])
    now.close()
  }))

test('the oldest message is the one that arrived first, also after it was requeued', () =>
  withWorld(async (world) => {
    const [first = ''] = await world.fill(1)
    await world.queue.advance(90 * SECOND)
    const [second] = await world.fill(1)
    await world.queue.operate('requeue', [first])
    await world.queue.advance(SECOND)
    const now = new Now(world.api.api.view)
    const { oldest, oldest_arrival_time: arrival } = await now.value(null)
    expect(oldest?.arrival_time).toBe(arrival)
    expect([first, second]).not.toContain(oldest?.queue_id)
    now.close()
  }))

test('mail that waits for a delivery slot waits at its destination, on all lists and in the same order', () =>
  withWorld(async (world) => {
    await world.fill(2)
    // Five are in flight for an hour, and nine wait for their slots.
    await world.fill(14, 'slow.example')
    const { view } = world.api.api
    const now = new Now(view)
    const waiting = (those: readonly { readonly destination: string; readonly waiting: number }[]) =>
      those.map((one) => [one.destination, one.waiting])
    const asShown = [
      ['slow.example', 9],
      ['a.example.org', 2],
    ]
    const { largest_destinations: largest, queues, time } = await now.value(null)
    expect(waiting(largest)).toEqual(asShown)
    // No mail of it is left in the store, and its next delivery begins as soon as there is a slot.
    expect(largest[0]?.next_due_time).toBe(time)
    expect(queues.find((one) => one.queue_name === 'active')?.recipients).toBe(14)
    const viewer = { visible: null, signal: new AbortController().signal }
    const { destinations } = await destinationPage(view, { order: 'waiting', limit: 10 }, viewer)
    expect(waiting(destinations)).toEqual(asShown)
    expect(destinations[0]?.next_due_time).toBe(time)
    expect(await destinationDetails(view, 'slow.example', null)).toMatchObject({ waiting: 9, slot_waiting: 9, leased: 14, in_flight: 5 })
    now.close()
  }))

test('the last reply is that of the last attempt, whatever its outcome', async () => {
  let reply = '450 4.7.1 too much mail'
  const world = await QueueWorld.create({
    remote: ({ destination }) => (destination === 'ok.example' ? { kind: 'accepts' } : { kind: 'replies', reply }),
  })
  try {
    const state = (name: string) => world.relay.scheduler.destinations.status(name)
    await world.accept(['ann@far.example'])
    await world.rest()
    expect(state('far.example')?.lastAttempt).toMatchObject({ at: world.clock.now(), status: { reply } })
    reply = '250 2.1.5 ok'
    await world.accept(['bob@far.example'])
    await world.advance(1_000)
    expect(state('far.example')).toMatchObject({ lastAttempt: { status: { status: expect.stringMatching(/^2/) } }, siteStatus: null })
  } finally {
    await world.close()
  }
})
