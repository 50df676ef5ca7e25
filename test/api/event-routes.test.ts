import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cursorText } from '../../src/events/kept-event.ts'
import { ALL_EVENTS } from '../../src/outbox/configured-subscriptions.ts'
import { OutboxUpkeep } from '../../src/outbox/outbox-upkeep.ts'
import type { ListedEvent } from '../../src/events/wire-events.ts'
import { Events } from '../../src/telemetry/events.ts'
import type { Reply } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'
import { MANY_STARS } from '../support/pattern-cases.ts'

interface Page {
  readonly events: readonly ListedEvent[]
  readonly next: string | null
  readonly kept_types: readonly string[]
}

let world: ApiWorld
beforeEach(async () => {
  world = await ApiWorld.open('memory')
})
afterEach(() => world.close())

const ask = async (query = '', asked: Parameters<ApiWorld['api']['get']>[1] = {}): Promise<Reply & Page> => {
  const reply = await world.api.get(`/events${query}`, asked)
  return { ...reply, ...(reply.json as unknown as Page) }
}
const idsOf = ({ events }: Page) => events.map(({ id }) => id)

test('events are read from a position on, in order', async () => {
  const [queueId] = await world.fill(1, 'ok.example')
  const first = await ask('?limit=2')
  expect(first.events.map(({ type }) => type)).toEqual(['message.accepted', 'recipient.delivered'])
  expect(first.events[1]).toMatchObject({
    id: 'evt_0_2',
    timestamp: '2026-01-01T00:00:00.000Z',
    data: { queue_id: queueId, recipient: 'user0@ok.example', final: true, attempts: 1 },
  })
  const second = await ask(`?after=${first.next}`)
  expect(second.events).toMatchObject([{ type: 'message.removed', data: { queue_id: queueId } }])
  expect(await ask(`?after=${first.events[1]?.id}`)).toMatchObject({ events: second.events, next: second.next })
  expect(await ask(`?after=${second.next}`)).toMatchObject({ events: [], next: second.next })
  expect(second.kept_types).toContain('recipient.delivered')
})

test('conditions select events', async () => {
  await world.fill(1, 'ok.example')
  await world.fill(1, 'a.example.org')
  expect((await ask('?types=recipient.*&destination=*.example.org')).events).toMatchObject([{ type: 'recipient.deferred' }])
  expect((await ask('?types=message.accepted,recipient.delivered')).events).toHaveLength(3)
  expect((await ask('?sender=nobody*')).events).toEqual([])
  for (const name of ['sender', 'destination']) expect((await ask(`?${name}=${MANY_STARS}`)).events).toEqual([])
  expect((await world.api.get(`/events?types=${MANY_STARS}`)).status).toBe(422)
  const { status, json } = await world.api.get('/events?types=recipient')
  expect([status, json.errors.length]).toEqual([422, 1])
})

test('a range of times selects events, from the first of them on', async () => {
  await world.fill(1, 'ok.example')
  await world.queue.advance(60_000)
  await world.fill(1, 'ok.example')
  const [early, late] = [await ask('?occurred_before=2026-01-01T00:01:00Z'), await ask('?occurred_after=2026-01-01T00:01:00Z')]
  expect(early.events.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 3 }, () => '2026-01-01T00:00:00.000Z'))
  expect(late.events.map(({ timestamp }) => timestamp)).toEqual(Array.from({ length: 3 }, () => '2026-01-01T00:01:00.000Z'))
  expect((await ask(`?occurred_after=2026-01-01T00:01:00Z&after=${late.next}`)).events).toEqual([])
  for (const query of ['occurred_after=2h', 'occurred_after=9&occurred_before=9'])
    expect((await world.api.get(`/events?${query}`)).status).toBe(422)
})

test('the pages of a range end when no later event can be of it', async () => {
  await world.fill(2, 'ok.example')
  const range = '?limit=4&occurred_before=2026-01-01T00:00:30Z'
  // An event of the range may still be committed, by the clock of another node up to a minute after its end.
  const early = await ask(range)
  expect([early.events.length, (await ask(`${range}&after=${early.next}`)).next]).toEqual([4, '0_6'])
  await world.queue.advance(89_000)
  expect((await ask(`${range}&after=evt_0_6`)).next).toBe('0_6')
  await world.queue.advance(1_000)
  await world.fill(5, 'ok.example')
  const pages = [await ask(range)]
  for (let last = pages[0]; last?.next != null; last = pages.at(-1)) pages.push(await ask(`${range}&after=${last.next}`))
  expect(pages.map(({ events }) => events.length)).toEqual([4, 2])
  expect((await ask(`${range}&after=evt_0_20`)).next).toBeNull()
})

test('the newest events of a filter are found behind thousands of others, and a file ends with its range', async () => {
  await world.fill(1, 'far.example')
  await world.queue.advance(180_000)
  await world.queue.accept(Array.from({ length: 2_100 }, (_, i) => `user${i}@ok.example`))
  await world.queue.rest()
  expect((await ask('?limit=1&occurred_after=2026-01-01T00:00:01Z')).events).toHaveLength(1)
  expect(await new PageScreens(world).text('events?destination=far.example')).toContain('recipient.deferred')

  const reads = vi.spyOn(world.queue.reader, 'eventsAfter')
  const headers = { accept: 'application/x-ndjson' }
  const { text } = await world.api.get('/events?occurred_before=2026-01-01T00:00:30Z', { headers })
  expect(text.trim().split('\n')).toHaveLength(2)
  const through = Math.max(...reads.mock.calls.map(([{ after, limit }]) => (limit > 1 ? after : 0)))
  expect(through).toBeLessThan(300)
})

test('a client that is limited to destinations reads their events only', async () => {
  await world.fill(1, 'ok.example')
  await world.fill(1, 'a.example.org')
  const { events } = await ask('', { as: 'limited' })
  expect(events.map(({ type }) => type)).toEqual(['recipient.deferred'])
})

test('deleted events are told with their number, and before what is left', async () => {
  await world.fill(2, 'ok.example')
  await world.queue.store.outbox.pruneEvents({ before: 0, count: 2 })
  const { events, next } = await ask('?after=0&limit=1')
  expect(events).toMatchObject([{ id: 'evt_0_1-4', type: 'events.lost', data: { from: 1, to: 4, count: 4 } }, { id: 'evt_0_5' }])
  expect(idsOf(await ask(`?after=${next}`))).toEqual(['evt_0_6'])
  expect((await ask('?after=evt_0_2')).events[0]).toMatchObject({ data: { from: 3, to: 4, count: 2 } })
  // A client without a position has not missed anything.
  expect(idsOf(await ask())).toEqual(['evt_0_5', 'evt_0_6'])
})

test.each(['evt_0_999', 'evt_zz_1', 'nonsense'])('the position %s is refused', async (after) => {
  await world.fill(1, 'ok.example')
  const { status, json } = await world.api.get(`/events?after=${after}`)
  expect([status, json.type]).toEqual([400, expect.stringContaining('cursor')])
})

test('without a subscription the answer says that no type is kept', async () => {
  await world.queue.store.outbox.configureSubscriptions([], 0)
  expect(await ask('?after=0')).toMatchObject({ events: [], kept_types: [], next: cursorText(0, 0) })
})

test('NDJSON has all events that are kept', async () => {
  await world.fill(120, 'ok.example')
  const { text, headers } = await ask('', { headers: { accept: 'application/x-ndjson' } })
  expect(headers.get('content-type')).toBe('application/x-ndjson')
  const lines = text.trimEnd().split('\n')
  expect(lines).toHaveLength(360)
  expect((JSON.parse(lines[359] ?? '') as ListedEvent).id).toBe('evt_0_360')
})

test('a stream has the kept events, then each new one, and continues at Last-Event-ID', async () => {
  const { relay, store, clock } = world.queue
  const upkeep = new OutboxUpkeep({
    outbox: store.outbox,
    recorder: relay.recorder,
    clock,
    config: () => ({ ...relay.config, events: new Map([['app', ALL_EVENTS]]) }),
    events: new Events(() => clock.now()),
    isShared: false,
  })
  world.published = upkeep
  await upkeep.start()
  await world.fill(1, 'ok.example')
  const headers = { authorization: 'Bearer viewer', accept: 'text/event-stream' }
  const stop = new AbortController()
  const response = await fetch(`${world.api.base}/events`, { headers: { ...headers, 'last-event-id': 'evt_0_1' }, signal: stop.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const read = reading(response)
  expect(await read(2)).toEqual(['evt_0_2 recipient.delivered', 'evt_0_3 message.removed'])
  await world.fill(1, 'ok.example')
  await world.queue.advance(20)
  expect(await read(3)).toEqual(['evt_0_4 message.accepted', 'evt_0_5 recipient.delivered', 'evt_0_6 message.removed'])
  stop.abort()
  await upkeep.stop()
})

/** Returns a function that reads so many server-sent events. */
function reading({ body }: Response): (count: number) => Promise<readonly string[]> {
  const reader = (body ?? new ReadableStream<Uint8Array>()).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return async (count) => {
    const found: string[] = []
    while (found.length < count) {
      const end = text.indexOf('\n\n')
      if (end < 0) {
        const { value, done } = await reader.read()
        if (done) throw new Error('the stream has ended')
        text += value
        continue
      }
      const [, id, type] = /^id: (.*)\nevent: (.*)$/m.exec(text.slice(0, end)) ?? []
      if (id !== undefined) found.push(`${id} ${type}`)
      text = text.slice(end + 2)
    }
    return found
  }
}
