/** Events for programs, from a relay in virtual time. */
import { WallView } from '../../src/system/wall-view.ts'
import { expect, test } from 'vitest'
import { createTransport } from 'nodemailer'
import { eventOf, newEvent, recipientEvents } from '../../src/outbox/event-data.ts'
import { EVENT_TYPES } from '../../src/events/event-types.ts'
import { dataOf, keptData } from '../../src/events/event-values.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { logRecords } from '../../src/telemetry/log-records.ts'
import type { DeliveryRequest } from '../../src/mail/message.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import { EVENT_EXAMPLES } from '../../scripts/events-page.ts'

const mail = (world: World, to: string | readonly string[], from = 'app@us.example') =>
  createTransport(world.transport()).sendMail({ envelope: { from, to: [to].flat() }, text: 'hi' })

/** Type and recipient of the events about messages. */
const told = async (world: World) =>
  (await world.events()).map(({ type, data }) => ('recipient' in data ? `${type} ${data.recipient}` : type))

test('a message has an event for its acceptance, each attempt, its notice and its end', async () => {
  await using world = await createWorld()
  world.destination('slow.example').greylists('5m')
  world.destination('picky.example').rejects('bob@picky.example', '550 5.1.1 no such user')
  await mail(world, ['ann@slow.example', 'bob@picky.example'])
  await world.settle()
  expect(await told(world)).toEqual([
    'message.accepted',
    'recipient.deferred ann@slow.example',
    'recipient.bounced bob@picky.example',
    'message.accepted',
    'notice.sent',
    'recipient.delivered app@us.example',
    'message.removed',
    'recipient.delivered ann@slow.example',
    'message.removed',
  ])
  const events = await world.events({ types: ['recipient.*'], destinations: ['slow.example'] })
  expect(events.map(({ data }) => data)).toMatchObject([
    { sender: 'app@us.example', outcome: 'deferred', attempts: 1, final: false, next_attempt_time: 1_767_225_900, forced: false },
    { outcome: 'delivered', attempts: 2, final: true, next_attempt_time: null, stage: 'end-of-data' },
  ])
  expect(events.map(({ at }) => at)).toEqual([0, 300])
})

test('mail that expires behind a dead destination has an event without an attempt', async () => {
  await using world = await createWorld({ config: { maximal_queue_lifetime: '1h' } })
  world.destination('gone.example').isDownFor('3d')
  for (const name of ['ann', 'bob', 'eve', 'joe', 'kim', 'lea']) await mail(world, `${name}@gone.example`)
  await world.settle()
  const events = await world.events({ types: ['recipient.expired', 'destination.*'] })
  expect(events.filter(({ type }) => type === 'recipient.expired')).toHaveLength(6)
  expect(events.map(({ type }) => type)).toContain('destination.died')
  const unmade = events.filter((event) => event.type === 'recipient.expired' && event.data.connection_use === 0)
  expect(unmade.map(({ data }) => data)).toContainEqual(
    expect.objectContaining({ outcome: 'expired', relay: null, final: true, destination: 'gone.example' }),
  )
})

test('operations have events of the operator, in the commit of the change', async () => {
  await using world = await createWorld()
  world.destination('slow.example').greylists('5m')
  await mail(world, 'ann@slow.example')
  await world.operate('hold')
  await world.operate('hold')
  await world.suspend('slow.example')
  await world.resume('slow.example')
  await world.operate('requeue')
  await world.settle()
  const kinds = await world.events({ types: ['message.*', 'destination.*'] })
  expect(kinds.map(({ type, data }) => ('operation' in data ? data.operation : type)).toSorted()).toEqual(
    [
      'message.accepted',
      'hold',
      'destination.suspended',
      'destination.resumed',
      'requeue',
      'message.accepted',
      'message.removed',
      'message.removed',
    ].toSorted(),
  )
  const [, requeued] = kinds.flatMap((event) => (event.type === 'message.accepted' ? [event.data] : []))
  expect(requeued?.original_id).toBe(kinds.flatMap((event) => (event.type === 'message.accepted' ? [event.data.queue_id] : []))[0])
})

test('the events survive a crash, and those of a commit that was lost are not there', async () => {
  await using world = await createWorld()
  await mail(world, 'ann@near.example')
  const before = await world.events()
  await world.crash()
  await mail(world, 'bob@near.example')
  await world.settle()
  const after = await world.events()
  expect(after.slice(0, before.length)).toEqual(before)
  expect(after.map(({ seq }) => seq)).toEqual(after.map((_, n) => n + 1))
  expect(after.filter(({ type }) => type === 'message.removed')).toHaveLength(2)
})

/** Type and data, without what the order of two transactions at the same instant decides. */
const typed = (events: readonly { readonly type: string; readonly data: object }[]) =>
  events.map(({ type, data }) => JSON.stringify({ type, data })).toSorted()

test('the relay tells in its process what it keeps for subscriptions, with the same data', async () => {
  await using world = await createWorld({ config: { maximal_queue_lifetime: '1h', delay_warning_time: '30m' } })
  world.destination('slow.example').greylists('5m')
  world.destination('picky.example').rejects('bob@picky.example', '550 5.1.1 no such user')
  world.destination('gone.example').isDownFor('3d')
  world.stepClock('36h')
  await mail(world, ['ann@slow.example', 'bob@picky.example', 'eve@near.example'])
  for (const name of ['ann', 'bob', 'eve', 'joe', 'kim', 'lea']) await mail(world, `${name}@gone.example`)
  await mail(world, 'joe@picky.example', '')
  await mail(world, 'bob@picky.example', '')
  await world.suspend('slow.example')
  await world.operate('hold')
  await world.operate('release')
  await world.resume('slow.example')
  await world.settle()
  const inProcess = world.history().events.flatMap((entry) => (entry.where === 'queue' ? [entry.event] : []))
  const kept = await world.events()
  expect(typed(inProcess)).toEqual(typed(kept))
  expect(new Set(kept.map(({ type }) => type)).size).toBeGreaterThanOrEqual(12)
})

test('the data of an event are the members of its log record', () => {
  const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 1, contentId: 1, smtputf8: false }
  const happened = { kind: 'notice-dropped', message, why: 'the sender is null' } as const
  const [record] = logRecords(happened)
  expect({ event: 'notice-dropped', ...dataOf(eventOf(happened, 5)) }).toEqual(record?.members)
})

test('the queue keeps the values of the data of each type, and programs get all members in order', () => {
  for (const type of EVENT_TYPES) {
    const data = EVENT_EXAMPLES[type]
    expect(JSON.stringify(dataOf({ type, data: keptData(type, data) }))).toBe(JSON.stringify(data))
  }
  const nothing = { destination: 'far.example', by: 'root', until: null, text: null }
  expect(keptData('destination.suspended', nothing)).toBe('["far.example","root"]')
  expect(dataOf({ type: 'destination.suspended', data: '["far.example","root"]' })).toEqual(nothing)
})

const wall = new WallView(() => 7)

test('nothing is made for types that no subscription wants', async () => {
  const recorder = new EventRecorder({ now: () => 7, wall })
  let recorded = 0
  recorder.onRecorded(() => recorded++)
  expect(recorder.isIdle).toBe(true)
  expect(recorder.of({ kind: 'store-recovered' })).toBeUndefined()
  await recorder.refresh({ wantedTypes: async () => ['store.recovered'] })
  expect(recorder.of({ kind: 'store-recovered' })).toEqual([newEvent('store.recovered', 7, {})])
  expect(recorder.of({ kind: 'store-unavailable', why: 'disk full' })).toBeUndefined()
  expect(recorder.ofAll([{ kind: 'store-unavailable', why: 'disk full' }])).toBeUndefined()
  // The transactions may have events that the store makes.
  expect(recorded).toBe(3)
  const settlement = { owner: 1, message: 1, recipients: [], attempts: [] }
  expect(
    recipientEvents({ request: { recipients: [] } as unknown as DeliveryRequest, settlement, result: null, wall }, () => true),
  ).toEqual([])
})
