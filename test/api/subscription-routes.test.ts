/** Subscriptions over the API: lag, last answers, parked events, replays. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import { newProgress, type Progress } from '../../src/store/outbox/subscription.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld
beforeEach(async () => {
  world = await ApiWorld.open('memory')
  const { store, clock } = world.queue
  const settings = { ...settingsOf(ALL_EVENTS), to: 'https://hooks.example/', types: ['message.*'] }
  await store.outbox.subscribe({ name: 'app', settings, at: clock.now(), by: 'root' })
  await world.fill(2, 'ok.example')
})
afterEach(() => world.close())

const save = (from: number, progress: Partial<Progress>, parked: readonly number[] = []) =>
  world.queue.store.outbox.saveProgress('app', from, {
    progress: { ...newProgress(progress.cursor ?? from), ...progress },
    told: null,
    parked: parked.map((seq) => ({ seq, tries: 6, at: world.queue.clock.now(), answer: '400 Bad Request' })),
  })

test('a subscription is listed with its lag, its last answer and its parked events', async () => {
  const lastAnswer = { at: world.queue.clock.now(), ok: false, text: '503 Service Unavailable' }
  await save(0, { cursor: 3, tries: 2, dueAt: world.queue.clock.now() + 5_000, lastAnswer }, [1])
  const { json } = await world.api.get('/subscriptions')
  const one = { name: 'app', owner: 'command', behind: 3, parked: 1, tries: 2, state: 'active', last_answer: '503 Service Unavailable' }
  expect(json).toMatchObject({ subscriptions: [one, { name: 'events of the world' }] })
  expect((await world.api.get('/subscriptions/app')).json).toMatchObject(one)
  expect((await world.api.get('/now')).json).toMatchObject({ subscriptions: [one, {}] })
  expect((await world.api.get('/subscriptions/other')).status).toBe(404)
})

test('parked events are read in pages', async () => {
  await save(0, { cursor: 6 }, [1, 4])
  const first = await world.api.get('/subscriptions/app/parked?limit=1')
  expect(first.json).toMatchObject({
    events: [{ id: 'evt_0_1', type: 'message.accepted', tries: 6, answer: '400 Bad Request' }],
    next: '1',
  })
  const second = await world.api.get('/subscriptions/app/parked?limit=1&after=1')
  expect(second.json).toMatchObject({ events: [{ id: 'evt_0_4' }], next: null })
  expect((await world.api.get('/subscriptions/app/parked?after=x')).status).toBe(400)
  expect((await world.api.get('/subscriptions/other/parked')).status).toBe(404)
})

test('a replay has a dry run, its effect, and a record', async () => {
  const replay = (body: object, as = 'operator') => world.api.post('/subscriptions/app/replay', body, { as })
  await save(0, { cursor: 4, state: 'disabled', why: '410 Gone' }, [2])
  const cursor = async () => (await world.queue.store.outbox.subscriptions()).find(({ name }) => name === 'app')?.progress
  expect((await replay({ events: 'waiting', dry_run: true })).json).toMatchObject({
    events: 2,
    dry_run: true,
    command: 'webhook replay app',
  })
  expect(await cursor()).toMatchObject({ state: 'disabled' })
  expect((await replay({ events: 'waiting' })).json).toMatchObject({ events: 2, dry_run: false, subscription: { state: 'disabled' } })
  expect(await cursor()).toMatchObject({ state: 'active', cursor: 4 })
  for (const isDry of [true, false])
    expect((await replay({ events: 'parked', dry_run: isDry })).json).toMatchObject({ events: 1, command: 'webhook replay app --parked' })
  for (const isDry of [true, false])
    expect((await replay({ events: 'since', since: '2h', dry_run: isDry })).json).toMatchObject({ events: 6 })
  expect(await cursor()).toMatchObject({ cursor: 0 })
  const { records } = (await world.api.get('/audit?limit=5')).json as unknown as { records: { action: string; arguments: string }[] }
  expect(records.map(({ action, arguments: words }) => `${action} ${words}`)).toEqual([
    'webhook replay app --since 2h',
    'webhook replay app --parked',
    'webhook replay app',
  ])
  expect((await replay({ events: 'since' })).status).toBe(422)
  expect((await replay({ events: 'waiting', since: '2h' })).status).toBe(422)
  for (const since of ['0s', '0.1us', '99999999999999999999d']) {
    for (const isDry of [true, false]) {
      const { status, json } = await replay({ events: 'since', since, dry_run: isDry })
      expect([since, status, json['detail']]).toEqual([since, 422, expect.stringContaining('/since: expected a time')])
    }
  }
  expect((await replay({ events: 'parked' }, 'viewer')).status).toBe(403)
  expect((await replay({ events: 'parked' }, 'limited')).status).toBe(403)
  expect((await world.api.post('/subscriptions/other/replay', { events: 'parked' }, { as: 'operator' })).status).toBe(404)
})

test('a dry run counts what the replay does, wherever it begins', async () => {
  const { store, clock } = world.queue
  await store.outbox.recordEvents(
    Array.from({ length: 40 }, (_, n) => ({ type: 'message.removed' as const, at: clock.now() + n * 60_000, data: '{}' })),
  )
  await world.queue.advance(40 * 60_000)
  await save(0, { cursor: 46 })
  for (const since of ['30s', '1m', '7m', '21m', '39m', '1d']) {
    const asked = { events: 'since', since }
    const planned = (await world.api.post('/subscriptions/app/replay', { ...asked, dry_run: true }, { as: 'operator' }))
      .json as unknown as { events: number }
    const done = (await world.api.post('/subscriptions/app/replay', asked, { as: 'operator' })).json as unknown as { events: number }
    expect([since, planned.events]).toEqual([since, done.events])
    await save(46 - done.events, { cursor: 46 })
  }
})

test('one event is sent again that the subscription has had', async () => {
  const replay = (body: object) => world.api.post('/subscriptions/app/replay', body, { as: 'operator' })
  const one = (event: string, isDry = false) => replay({ events: 'one', event, dry_run: isDry })
  await save(0, { cursor: 4 })
  for (const isDry of [true, false])
    expect((await one('evt_0_1', isDry)).json).toMatchObject({ events: 1, replay: 'one', command: 'webhook replay app --event evt_0_1' })
  expect((await world.api.get('/subscriptions/app/parked')).json).toMatchObject({ events: [{ id: 'evt_0_1', tries: 0 }], next: null })
  const { json: audit } = await world.api.get('/audit')
  expect(audit).toMatchObject({ records: [{ action: 'webhook replay', arguments: 'app --event evt_0_1' }] })
  const { json: kept } = await world.api.get('/events')
  const { events } = kept as unknown as { events: readonly { id: string; type: string }[] }
  const isSelected = ({ type }: { readonly type: string }) => type.startsWith('message.')
  const other = events.slice(0, 4).find((event) => !isSelected(event))?.id ?? ''
  const later = events.slice(4).find(isSelected)?.id ?? ''
  for (const isDry of [true, false])
    for (const [event, detail] of [
      [later, `the event ${later} waits in its order`],
      ['evt_0_99', 'no event evt_0_99 is kept'],
      ['evt_1_1', 'no event evt_1_1 is kept'],
      ['x', 'no event x is kept'],
      [other, 'app does not select the event'],
    ] as const)
      expect((await one(event, isDry)).json).toMatchObject({
        status: 409,
        type: '/problems/event-not-repeated',
        detail: expect.stringContaining(detail) as string,
      })
  expect((await replay({ events: 'one' })).status).toBe(422)
  expect((await replay({ events: 'waiting', event: 'evt_0_1' })).status).toBe(422)
})

test('the configuration names its tables, without secrets', async () => {
  expect((await world.api.get('/settings')).json).toMatchObject({ events: {} })
  expect((await world.api.get('/subscriptions', { as: 'limited' })).status).toBe(403)
})
