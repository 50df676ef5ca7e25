/** Operations as jobs over a queue in memory: records, cancellation, undo, plans and repeated requests. */
import { idleRecorder } from '../support/idle-recorder.ts'
import { beforeEach, expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import { QUEUE_NAMES, queueIdOf, recipientId, type QueueName } from '../../src/mail/message.ts'
import { OperationCancelled } from '../../src/queue/operation-jobs.ts'
import { countMatching, hasOutgrown, planOf, PlanOutdated } from '../../src/queue/operation-plan.ts'
import { OPERATIONS, type OperationName, type OperationRequest } from '../../src/queue/operation-request.ts'
import { Operations } from '../../src/queue/operations.ts'
import { storedScheduler } from '../../src/queue/stored-scheduler.ts'
import { RequestRepeated } from '../../src/store/records/audit-log.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { intercepted } from '../../src/store/methods.ts'
import { DAY, MINUTE } from '../../src/system/clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { deferred, mail as mailOf, queue, settleOne, T0 } from '../conformance/mail.ts'
import { RETENTION } from '../support/operate.ts'

const MESSAGES = 200

let world: ReturnType<typeof open>

function open() {
  const { store, reader } = openMemoryStore()
  const clock = new VirtualClock({ startsAt: T0 })
  const policies = new DestinationPolicies(configFrom({ default_class: 'bulk', class: { bulk: { weight: 1 } } }, 'mx.us.example').config)
  const rounds: number[] = []
  /** Called after each round with the number of rounds so far. */
  const control = { afterRound: (_rounds: number): Promise<void> => Promise.resolve() }
  const deps = {
    store,
    reader,
    clock,
    recorder: idleRecorder,
    events: new Events(() => clock.now()),
    scheduler: storedScheduler(store, reader, idleRecorder),
    policies: () => policies,
    retention: () => RETENTION,
    throttle: (messages: number) => control.afterRound(rounds.push(messages)),
  }
  return { ...deps, control, rounds, deps, jobs: new Operations(deps).jobs }
}

const ALL = { kind: 'filter', filter: ANY_MESSAGE, limit: null } as const

const order = (operation: OperationName, more: Partial<OperationRequest> = {}): OperationRequest => ({
  operation,
  selection: ALL,
  queues: null,
  purge: false,
  release: null,
  class: null,
  who: 'page:alice (127.0.0.1)',
  reason: null,
  plan: null,
  request: null,
  ...more,
})

const undo = (operation: number) => ({ operation, who: 'root', reason: null, request: null })

const queueNames = async () => {
  const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 1_000 })
  return Map.groupBy(listed, (one) => one.queue)
}

const inTrash = async () => (await world.reader.find({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: 1_000 })).map(({ id }) => id)

beforeEach(async () => {
  world = open()
  for (let n = 0; n < MESSAGES; n++) await queue(world.store, { at: T0 })
})

const done = async (operation: OperationName, more: Partial<OperationRequest> = {}) => {
  const { id, ended } = await world.jobs.start(order(operation, more))
  await ended
  return id
}

test('an operation has its record while it runs and after it', async () => {
  const seen: unknown[] = []
  world.control.afterRound = async (round) => {
    if (round === 1) seen.push(await world.reader.records.audit.one(1))
  }
  const id = await done('hold', { reason: 'a test', plan: { through: MESSAGES, matched: MESSAGES, acceptsGrowth: false } })
  expect(seen).toMatchObject([{ state: 'running', matched: 64, changed: 64, expected: MESSAGES, reason: 'a test' }])
  expect(await world.reader.records.audit.one(id)).toMatchObject({
    state: 'done',
    matched: MESSAGES,
    changed: MESSAGES,
    undoUntil: T0 + RETENTION.history_retention,
  })
})

test('a cancelled operation changes nothing after its round, and its undo restores exactly what it changed', async () => {
  const untouched = await queue(world.store, { at: T0 })
  await done('delete', { selection: { kind: 'ids', ids: [queueIdOf({ id: untouched, createdAt: T0 })] } })
  world.control.afterRound = async (round) => {
    if (round === 2) expect(await world.jobs.cancel(2, 'page:bob')).toBe('cancelled')
  }
  world.rounds.length = 0
  const { id, ended } = await world.jobs.start(order('delete'))
  await expect(ended).rejects.toThrow(new OperationCancelled('operation 2 was cancelled by page:bob; changed messages: 128'))
  expect(await world.reader.records.audit.one(id)).toMatchObject({ state: 'cancelled', changed: 128, matched: 128 })
  expect(await inTrash()).toHaveLength(129)
  expect(await world.jobs.cancel(id, 'eve')).toBe('ended')
  expect(await world.jobs.cancel(99, 'eve')).toBe('unknown')
  const undone = await world.jobs.undo(undo(id))
  expect(await undone.ended).toEqual({ matched: 128, changed: 128, inTransfer: 0, unknown: [] })
  expect(await inTrash()).toEqual([untouched])
  expect(await world.reader.records.audit.one(id)).toMatchObject({ undoneBy: undone.id })
  expect(await world.reader.records.audit.one(undone.id)).toMatchObject({
    action: 'restore',
    undoes: id,
    expected: 128,
    changed: 128,
    state: 'done',
  })
})

test('an undo leaves alone what another operation has changed since, and can itself be undone', async () => {
  const [first] = [...(await world.reader.find(ANY_MESSAGE, { after: 0, limit: 1 }))]
  const held = await done('hold')
  await done('release', { selection: { kind: 'ids', ids: [queueIdOf(first!)] } })
  const { ended, id } = await world.jobs.undo(undo(held))
  expect(await ended).toMatchObject({ changed: MESSAGES - 1 })
  expect((await queueNames()).has('hold')).toBe(false)
  await (
    await world.jobs.undo(undo(id))
  ).ended
  expect((await queueNames()).get('hold')).toHaveLength(MESSAGES - 1)
})

test.each([
  ['flush', {}, 'operation 1 (flush) cannot be undone'],
  ['expire', {}, 'operation 1 (expire) cannot be undone'],
  ['delete', { purge: true }, 'operation 1 (delete) cannot be undone'],
  ['hold', { selection: { kind: 'ids', ids: [] } }, 'operation 1 has changed no message'],
] as const)('%s %j is not undone', async (operation, more, text) => {
  await done(operation, more)
  await expect(world.jobs.undo(undo(1))).rejects.toThrow(text)
})

test('a deletion is undone while the trash has its messages', async () => {
  await done('delete')
  world.clock.jumpTo(T0 + DAY - MINUTE)
  await (
    await world.jobs.undo(undo(1))
  ).ended
  await done('delete')
  world.clock.jumpTo(T0 + 2 * DAY)
  await expect(world.jobs.undo(undo(3))).rejects.toThrow('the trash does not have its messages (trash_lifetime)')
  await expect(world.jobs.undo(undo(9))).rejects.toThrow('there is no operation 9')
})

test('a plan shows what the operation would change, and nothing more is changed', async () => {
  await queue(world.store, { at: T0 - 1, hold: true, to: [{ address: 'bob@else.example' }, { address: 'eve@far.example' }] })
  const plan = await planOf(world.deps, order('delete'))
  expect(plan).toMatchObject({
    matched: MESSAGES + 1,
    bytes: (MESSAGES + 1) * Buffer.byteLength('Subject: hi\r\n\r\nhi\r\n'),
    oldestArrival: T0 - 1,
    inTransfer: 0,
    destinations: [
      { destination: 'far.example', recipients: MESSAGES + 1 },
      { destination: 'else.example', recipients: 1 },
    ],
    tellsSenders: false,
    undoUntil: T0 + DAY,
  })
  expect(plan.examples).toHaveLength(20)
  const later = await queue(world.store, { at: T0 })
  await done('delete', { plan: { ...plan, acceptsGrowth: false } })
  expect((await world.reader.find(ANY_MESSAGE, { after: 0, limit: 10 })).map(({ id }) => id)).toEqual([later])
})

test('a flush says of the mail that it leaves unchanged why', async () => {
  const to = [{ address: 'bob@slow.example' }]
  const tried = async () => {
    const id = await queue(world.store, { at: T0, leased: true, to })
    await settleOne(world.store, id, deferred(recipientId(id, 0), T0 + DAY))
    return id
  }
  const mail = [
    await tried(),
    await tried(),
    await queue(world.store, { at: T0, leased: true, to }),
    await queue(world.store, { at: T0, hold: true, to }),
    await queue(world.store, { at: T0, to }),
  ]
  const there = { kind: 'filter', filter: { ...ANY_MESSAGE, destination: 'slow.example' }, limit: null } as const
  const named = { kind: 'ids', ids: mail.map((id) => queueIdOf({ id, createdAt: T0 })) } as const
  const summaryOf = async (selection: OperationRequest['selection']) => (await world.jobs.start(order('flush', { selection }))).ended
  const rest = { active: 1, hold: 1 }
  const both = { inTransfer: 0, unknown: [] }
  const rehearsed = (selection: OperationRequest['selection']) =>
    new Operations(world.deps).perform({ ...order('flush', { selection }), dryRun: true })
  expect(await rehearsed(there)).toEqual({ matched: 2, changed: 0, ...both, ...rest, due: 1 })
  expect(await rehearsed(named)).toEqual({ matched: 4, changed: 0, ...both, ...rest })
  expect((await planOf(world.deps, order('flush', { selection: there }))).passedOver).toEqual({ ...rest, due: 1 })
  expect((await planOf(world.deps, order('flush', { selection: named }))).passedOver).toEqual(rest)
  expect((await planOf(world.deps, order('hold', { selection: named }))).passedOver).toEqual({})
  // Mail on hold is not counted as mail that is made due, though the filter names its queue.
  const held = { ...there, filter: { ...there.filter, queue: 'hold' } } as const
  for (const selection of [held, { ...held, limit: 10 }, { kind: 'ids', ids: named.ids.slice(3, 4) } as const]) {
    expect(await planOf(world.deps, order('flush', { selection }))).toMatchObject({ matched: 0, passedOver: { hold: 1 } })
    expect(await rehearsed(selection)).toEqual({ matched: 0, changed: 0, ...both, hold: 1 })
  }
  expect(await summaryOf({ ...there, limit: 1 })).toEqual({ matched: 1, changed: 1, ...both, ...rest, due: 1 })
  expect(await summaryOf(there)).toEqual({ matched: 2, changed: 1, ...both, ...rest, due: 2 })
  expect(await summaryOf(named)).toEqual({ matched: 5, changed: 1, ...both, ...rest, due: 2 })
  expect(await summaryOf(named)).toEqual({ matched: 5, changed: 0, ...both, ...rest, due: 3 })
})

test('a plan of named messages counts them', async () => {
  const ids = [queueIdOf({ id: 1, createdAt: T0 }), queueIdOf({ id: 2, createdAt: T0 }), 'absent']
  const plan = await planOf(world.deps, order('expire', { selection: { kind: 'ids', ids } }))
  expect(plan).toMatchObject({ matched: 2, unknown: ['absent'], tellsSenders: true, undoUntil: null, oldestArrival: T0 })
  expect(plan.examples).toEqual(ids.slice(0, 2))
})

test('a plan counts only mail that the operation can change, by filter, by queue and by name', async () => {
  const ids = [1, 2, 3].map((id) => queueIdOf({ id, createdAt: T0 }))
  const all = { kind: 'filter', filter: ANY_MESSAGE, limit: null } as const
  const onHold = { ...all, filter: { ...ANY_MESSAGE, queue: 'hold' } } as const
  const named = { kind: 'ids', ids } as const
  const first = { ...all, limit: 5 }
  await done('hold', { selection: { kind: 'ids', ids: ids.slice(0, 2) } })
  const planned = async (operation: OperationName, selection: OperationRequest['selection']): Promise<number> => {
    const { matched, examples } = await planOf(world.deps, order(operation, { selection }))
    expect(examples.length).toBe(Math.min(matched, 20))
    const rehearsed = await new Operations(world.deps).perform({ ...order(operation, { selection }), dryRun: true })
    expect(rehearsed.matched).toBe(matched)
    return matched
  }
  expect(await planned('hold', all)).toBe(MESSAGES - 2)
  expect(await planned('hold', onHold)).toBe(0)
  expect(await planned('hold', named)).toBe(1)
  expect(await planned('hold', first)).toBe(3)
  expect(await planned('release', named)).toBe(2)
  expect(await planned('release', all)).toBe(2)
  expect(await planned('restore', named)).toBe(0)
  const held = await world.jobs.start(order('hold', { selection: all })).then(({ ended }) => ended)
  expect([held.matched, held.changed]).toEqual([MESSAGES, MESSAGES - 2])
})

test('a release of scheduled mail, which has its own time, is counted in a plan and in a dry run, and sends it', async () => {
  const { store } = world
  const entry = mailOf(store, { at: T0, to: [{ address: 'eve@far.example', dueAt: T0 + DAY }] })
  const message = { ...entry.message, notBefore: T0 + DAY, scheduled: true, holdRequest: 'for;86400' }
  await store.enqueue({ ...entry, message })
  const selections = [
    { kind: 'ids', ids: [queueIdOf(message)] },
    { kind: 'filter', filter: { ...ANY_MESSAGE, queue: 'scheduled' }, limit: null },
  ] as const
  for (const selection of selections) {
    expect(await planOf(world.deps, order('release', { selection }))).toMatchObject({ matched: 1, examples: [queueIdOf(message)] })
    expect(await new Operations(world.deps).perform({ ...order('release', { selection }), dryRun: true })).toMatchObject({ matched: 1 })
  }
  // No bulk order sends it.
  expect(await planOf(world.deps, order('release'))).toMatchObject({ matched: 0 })
  const { ended } = await world.jobs.start(order('release', { selection: selections[0] }))
  expect(await ended).toMatchObject({ matched: 1, changed: 1 })
  expect(await planOf(world.deps, order('release', { selection: selections[0] }))).toMatchObject({ matched: 0 })
})

/** Queues a message and brings it into a queue. */
async function mailIn(name: QueueName | 'trash'): Promise<string> {
  const id = await queue(world.store, { at: T0, leased: name === 'deferred' })
  const selection = { kind: 'ids', ids: [queueIdOf({ id, createdAt: T0 })] } as const
  if (name === 'deferred') await settleOne(world.store, id, deferred(recipientId(id, 0), T0 + DAY))
  else if (name === 'scheduled') await done('reschedule', { selection, release: { kind: 'span', span: DAY } })
  else if (name === 'hold') await done('hold', { selection })
  else if (name === 'trash') await done('delete', { selection })
  else if (name === 'corrupt') await world.store.quarantine(id, 'the content is damaged')
  return selection.ids[0]
}

/** All but a flush, which counts the mail that it leaves unchanged, and mail in delivery, whose outcome may come first. */
const EACH = OPERATIONS.filter((operation) => operation !== 'flush').flatMap((operation) =>
  [...QUEUE_NAMES.filter((name) => name !== 'active'), 'trash' as const].map((name) => ({ operation, name })),
)

test.each(EACH)('a plan of $operation counts of mail in $name what it then changes', async ({ operation, name }) => {
  world = open()
  const queueId = await mailIn(name)
  const selections = [
    { kind: 'filter', filter: { ...ANY_MESSAGE, queue: name }, limit: null },
    { kind: 'ids', ids: [queueId] },
  ] as const
  const terms = { queues: null, release: { kind: 'span', span: 2 * DAY }, class: 'bulk' } as const
  const asked = selections.map((selection) => order(operation, { ...terms, selection }))
  const planned = []
  for (const one of asked) {
    const { matched } = await planOf(world.deps, one)
    expect((await new Operations(world.deps).perform({ ...one, dryRun: true })).matched).toBe(matched)
    planned.push(matched)
  }
  const { ended } = await world.jobs.start(order(operation, { ...terms, selection: selections[1] }))
  const { changed } = await ended
  expect(planned).toEqual([changed, changed])
})

test('a plan that the queue has outgrown is refused, unless growth is accepted', async () => {
  const { through, matched } = await planOf(world.deps, order('hold'))
  for (let n = 0; n < 150; n++) await queue(world.store, { at: T0 })
  const refused = world.jobs.start(order('hold', { plan: { through, matched, acceptsGrowth: false } }))
  await expect(refused).rejects.toThrow(new PlanOutdated(MESSAGES, MESSAGES + 150))
  expect(await world.reader.records.audit.one(1)).toBeUndefined()
  await done('hold', { plan: { through, matched, acceptsGrowth: true } })
  expect((await queueNames()).get('hold')).toHaveLength(MESSAGES)
})

test('growth is refused above ten percent or a hundred messages', () => {
  const cases = [
    [10, 11],
    [10, 12],
    [1_000, 1_100],
    [5_000, 5_101],
    [5, 5],
    [0, 1],
  ] as const
  expect(cases.map(([shown, now]) => hasOutgrown(shown, now))).toEqual([false, true, false, true, false, true])
})

test('a repeated request has no second effect', async () => {
  const request = { key: 'ci 1', digest: 'a'.repeat(64) }
  const id = await done('hold', { request })
  await expect(world.jobs.start(order('release', { request }))).rejects.toBeInstanceOf(RequestRepeated)
  expect(await world.reader.records.requests.find('ci 1')).toMatchObject({ answer: String(id) })
  expect((await queueNames()).get('hold')).toHaveLength(MESSAGES)
})

test('an operation is done when the answer to its end was lost and the call is repeated', async () => {
  const { store, deps } = world
  const twice = intercepted(store, async (method, [record, call], perform) => {
    const answer = await perform()
    return method === 'record' && record === 'audit' && call === 'end' ? perform() : answer
  })
  const { ended } = await new Operations({ ...deps, store: twice }).jobs.start(order('hold'))
  expect(await ended).toMatchObject({ changed: MESSAGES })
})

test('an operation that fails is recorded with its error and its counts', async () => {
  world.control.afterRound = (round) => (round === 2 ? Promise.reject(new Error('no such thing')) : Promise.resolve())
  const { id, ended } = await world.jobs.start(order('hold'))
  await expect(ended).rejects.toThrow('no such thing')
  await world.jobs.stop()
  expect(await world.reader.records.audit.one(id)).toMatchObject({ state: 'failed', error: 'no such thing', changed: 128, matched: 128 })
  expect(await (await world.jobs.undo(undo(id))).ended).toMatchObject({ changed: 128 })
})

test('a count stops at a number of messages or at a time', async () => {
  const count = (most: number, within: number) => countMatching(world.deps, ANY_MESSAGE, { most, within })
  expect(await count(1_000, 100)).toEqual({ count: MESSAGES, isAtLeast: false })
  expect(await count(MESSAGES, 100)).toEqual({ count: MESSAGES, isAtLeast: false })
  expect(await count(10, 100)).toEqual({ count: 10, isAtLeast: true })
  expect(await countMatching(world.deps, { ...ANY_MESSAGE, queue: 'hold' }, { most: 1, within: 0 })).toEqual({ count: 0, isAtLeast: false })
})
