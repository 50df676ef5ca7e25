/** Subscriptions of commands in a move of the queue. */
import { afterEach, describe, expect, test } from 'vitest'
import { MoveRefused } from '../../src/queue/queue-mover.ts'
import { MOVED_ON, takenSubscription } from '../../src/store/outbox/moved-subscription.ts'
import { newProgress } from '../../src/store/outbox/subscription.ts'
import { event, SETTINGS } from '../conformance/outbox.ts'
import { queue, T0 } from '../conformance/mail.ts'
import { inMemory, inPostgres, move, onDisk, type Place } from '../support/moving-queues.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

const places: Place[] = []
const place = (made: Place): Place => (places.push(made), made)
afterEach(() => {
  for (const one of places.splice(0)) one.remove()
})

const WEBHOOK = { ...SETTINGS, types: ['store.*', 'notice.sent'], secrets: [{ secret: 'whsec_app', until: T0 + 1 }] }

/** A queue whose subscription has had the first of four events that it wants, and has parked the second. */
async function prepare(source: Place): Promise<void> {
  const { store, close } = await source.open('fill')
  await queue(store)
  await store.outbox.subscribe({ name: 'app', settings: WEBHOOK, at: T0, by: 'op' })
  await store.outbox.configureSubscriptions([{ name: 'table', settings: SETTINGS }], T0)
  await store.outbox.wantedTypes()
  const types = ['store.trouble', 'store.recovered', 'destination.revived', 'store.trouble', 'notice.sent'] as const
  await store.outbox.recordEvents(types.map((type, n) => event(type, [], T0 + n)))
  while (await store.outbox.numberEvents());
  const lastAnswer = { at: T0, ok: false, text: '503' }
  // A target that fails is not waited for.
  const progress = { ...newProgress(2), tries: 1, dueAt: T0, lastAnswer }
  await store.outbox.saveProgress('app', 0, { progress, told: null, parked: [{ seq: 2, tries: 6, at: T0, answer: '400' }] })
  await close()
}

async function subscriptionsIn(one: Place) {
  const { reader, close } = await one.open()
  const found = await reader.allSubscriptions()
  await close()
  return found.map(({ name, createdBy, settings: { types, secrets }, progress: { state, why }, lost }) => ({
    name,
    createdBy,
    types,
    secrets,
    state,
    why,
    lost,
  }))
}

const MOVED = { name: 'app', createdBy: 'op', types: WEBHOOK.types, secrets: WEBHOOK.secrets, state: 'active', why: null }

async function movesThereAndBack(source: Place, target: Place): Promise<void> {
  await prepare(source)
  await move(source, target)
  expect(await subscriptionsIn(target)).toEqual([{ ...MOVED, lost: [] }])
  expect(await subscriptionsIn(source)).toMatchObject([{ name: 'app', state: 'active' }, { name: 'table' }])
  await move(source, target, { isFinal: true })
  // The parked event and the two behind the position.
  const lost = [{ from: 2, to: 5, count: 3 }]
  expect(await subscriptionsIn(target)).toEqual([{ ...MOVED, lost }])
  expect(await subscriptionsIn(source)).toMatchObject([
    { name: 'app', state: 'disabled', why: MOVED_ON },
    { name: 'table', state: 'active' },
  ])
  await move(target, source, { isFinal: true })
  // The loss that the program was not told of at the other place.
  expect(await subscriptionsIn(source)).toMatchObject([{ ...MOVED, lost }, { name: 'table' }])
}

test('move with the queue, there and back', () => movesThereAndBack(place(onDisk()), place(inMemory('other'))))

describe.skipIf(WITHOUT_POSTGRES.skip)(`with PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  test('move with the queue, there and back', () =>
    movesThereAndBack(place(inPostgres('postgresql://one', () => emptyQueue('one'))), place(onDisk())))
})

test('are enabled again when the move fails', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await prepare(source)
  const broken = (method: string): Error | null => (method === 'markMoved' ? new MoveRefused(75, 'in use') : null)
  await expect(move(source, target, { isFinal: true, broken })).rejects.toThrow('in use')
  expect(await subscriptionsIn(source)).toMatchObject([{ name: 'app', state: 'active', why: null }, { name: 'table' }])
})

test('times are converted', async () => {
  const [source, target] = [place(inMemory('one')), place(inMemory('other'))]
  await prepare(source)
  await move(source, target, { offset: 3_600_000 })
  const { reader } = await target.open()
  expect(await reader.allSubscriptions()).toMatchObject([{ createdAt: T0 + 3_600_000, settings: { secrets: [{ until: T0 + 3_600_001 }] } }])
})

test('a final step that is repeated counts each event once', () => {
  const moved = { name: 'app', settings: WEBHOOK, createdAt: T0, createdBy: 'op', state: 'active', why: null } as const
  const progress = { cursor: 9, state: 'active', why: null } as const
  const lossesAfter = (losses: readonly { from: number; to: number; count: number; pulled: boolean }[], to: number, count: number) =>
    takenSubscription({ owner: 'command', settings: WEBHOOK, progress, losses }, { ...moved, lost: { from: 2, to, count } }, 9)?.losses
  const first = { from: 2, to: 5, count: 3, pulled: false }
  expect(lossesAfter([], 5, 3)).toEqual([first])
  expect(lossesAfter([first], 5, 3)).toEqual([first])
  expect(lossesAfter([first], 8, 5)).toEqual([{ from: 2, to: 8, count: 5, pulled: false }])
  const pulled = { ...first, pulled: true }
  const further = { from: 6, to: 8, count: 2, pulled: false }
  expect(lossesAfter([pulled], 5, 3)).toEqual([pulled])
  expect(lossesAfter([pulled], 8, 5)).toEqual([pulled, further])
  expect(lossesAfter([pulled, further], 9, 6)).toEqual([pulled, { from: 6, to: 9, count: 3, pulled: false }])
  expect(lossesAfter([{ from: 1, to: 1, count: 1, pulled: false }], 5, 3)).toEqual([{ from: 1, to: 1, count: 1, pulled: false }, first])
})
