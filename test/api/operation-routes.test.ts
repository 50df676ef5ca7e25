import { deflateRawSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import type { Reply } from '../support/api-server.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const opened = async (store: 'memory' | 'sqlite' = 'sqlite'): Promise<ApiWorld> => (world = await ApiWorld.open(store))

const ofDestination = (destination: string) => ({ kind: 'filter', filter: { destination } })

async function inQueue({ queue }: ApiWorld, name: 'deferred' | 'scheduled' | 'hold' | 'trash'): Promise<number> {
  return (await queue.reader.find({ ...ANY_MESSAGE, queue: name }, { after: 0, limit: 100_000 })).length
}

const post = (one: ApiWorld, path: string, body: unknown, key?: string): Promise<Reply> =>
  one.api.post(path, body, { as: 'operator', ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) })

test('an operation changes messages, is in the audit log, and is undone', async () => {
  const one = await opened()
  const ids = await one.fill(3)
  const held = await post(one, '/operations', {
    operation: 'hold',
    selection: { kind: 'ids', ids: [...ids, '4SVLCh0sf8z7Qhl'] },
    reason: 'spam',
  })
  expect(held.status).toBe(200)
  expect(held.json).toMatchObject({
    operation: 'hold',
    state: 'done',
    matched: 3,
    changed: 3,
    unknown: 1,
    who: 'token:operator (127.0.0.1)',
    reason: 'spam',
  })
  expect(await inQueue(one, 'hold')).toBe(3)
  const undone = await post(one, `/operations/${held.json.id}/undo`, undefined)
  expect(undone.json).toMatchObject({ operation: 'release', undoes: held.json.id, changed: 3 })
  expect(await inQueue(one, 'hold')).toBe(0)
  const { records } = (await one.api.get('/audit')).json
  expect(records).toMatchObject([
    { action: 'release', undoes: held.json.id },
    { action: 'hold', undone_by: undone.json.id, arguments: `${ids.join(' ')} 4SVLCh0sf8z7Qhl` },
  ])
  expect((await one.api.get('/audit?action=hold&limit=1')).json.records).toHaveLength(1)
  const at = (records as readonly { readonly time: number }[])[0]?.time ?? Number.NaN
  expect((await one.api.get(`/audit?recorded_after=${at + 1}`)).json.records).toEqual([])
  expect((await one.api.get(`/audit?recorded_after=${at}&recorded_before=${at + 1}`)).json.records).toEqual(records)
  expect((await one.api.get(`/audit?recorded_after=${at}&recorded_before=${at}`)).status).toBe(422)
  expect((await post(one, `/operations/${held.json.id + 100}/undo`, undefined)).status).toBe(404)
  const flushed = await post(one, '/operations', { operation: 'flush', selection: { kind: 'ids', ids } })
  expect((await post(one, `/operations/${flushed.json.id}/undo`, undefined)).json.type).toMatch(/not-undoable$/)
})

test('an empty filter without "all" is refused, and nothing is changed', async () => {
  const one = await opened()
  await one.fill(2)
  const refused = await post(one, '/operations', { operation: 'delete', selection: { kind: 'filter', filter: {} } })
  expect(refused.status).toBe(422)
  expect(refused.json.errors).toMatchObject([{ pointer: '/selection/filter' }])
  expect((await post(one, '/operations', { operation: 'delete' })).status).toBe(422)
  expect((await post(one, '/operations', { operation: 'delete', selection: { kind: 'ids', ids: [] } })).status).toBe(422)
  expect((await post(one, '/operations', { operation: 'hold', selection: ofDestination('a.example.org'), purge: true })).status).toBe(422)
  expect((await post(one, '/operations', { operation: 'hold', selection: ofDestination('a.example.org'), force: true })).status).toBe(422)
  expect(await inQueue(one, 'deferred')).toBe(2)
  expect((await one.api.get('/audit')).json.records).toEqual([])
  const all = await post(one, '/operations', { operation: 'delete', selection: { kind: 'filter', filter: {} }, all: true })
  expect(all.json).toMatchObject({ changed: 2, arguments: '--all' })
})

test('a viewer and a sender change nothing', async () => {
  const one = await opened()
  const ids = await one.fill(1)
  for (const as of ['viewer', 'sender'])
    expect((await one.api.post('/operations', { operation: 'delete', selection: { kind: 'ids', ids } }, { as })).status).toBe(403)
  expect(await inQueue(one, 'deferred')).toBe(1)
  expect((await one.api.get('/audit')).json.records).toEqual([])
})

test('a dry run changes nothing and answers with a plan', async () => {
  const one = await opened()
  await one.fill(25)
  const { status, json } = await post(one, '/operations', { operation: 'delete', selection: ofDestination('a.example.org'), dry_run: true })
  expect(status).toBe(200)
  expect(json).toMatchObject({
    operation: 'delete',
    dry_run: true,
    plan: { matched: 25, bytes: 25 * 19, destinations: 1, told_senders: false },
  })
  expect(json.plan.examples).toHaveLength(20)
  expect(json.plan.undo).toBeGreaterThan(0)
  expect(await inQueue(one, 'deferred')).toBe(25)
  expect((await one.api.get('/audit')).json.records).toEqual([])
})

test('a plan is carried out on the messages that were shown, and refused when many more match', async () => {
  const one = await opened()
  await one.fill(50)
  const planned = await post(one, '/operations', { operation: 'delete', selection: ofDestination('a.example.org'), dry_run: true })
  const { token } = planned.json.plan
  await one.fill(5)
  await one.fill(1)
  const refused = await post(one, '/operations', { plan: token })
  expect(refused.status).toBe(409)
  expect(refused.json.type).toMatch(/plan-outdated$/)
  expect(await inQueue(one, 'trash')).toBe(0)
  const accepted = await post(one, '/operations', { plan: token, accept_growth: true })
  expect(accepted.json).toMatchObject({ operation: 'delete', changed: 50, expected: 50 })
  expect(await inQueue(one, 'deferred')).toBe(6)
  expect((await post(one, '/operations', { plan: 'AAAA' })).json.type).toMatch(/plan$/)
})

test('a reschedule needs its time, is carried out by its plan, and undone', async () => {
  const one = await opened()
  const [id = ''] = await one.fill(2)
  const order = { operation: 'reschedule', selection: ofDestination('a.example.org') }
  for (const wrong of [order, { ...order, not_before: 'soon' }, { ...order, operation: 'hold', not_before: '2h' }])
    expect((await post(one, '/operations', wrong)).json.errors).toMatchObject([{ pointer: '/not_before' }])
  const planned = await post(one, '/operations', { ...order, not_before: '2h', dry_run: true })
  expect(planned.json.plan).toMatchObject({ matched: 2 })
  const done = await post(one, '/operations', { plan: planned.json.plan.token })
  expect(done.json).toMatchObject({ changed: 2, arguments: '--destination=a.example.org --in=2h' })
  expect((await one.api.get(`/messages/${id}`)).json).toMatchObject({ scheduled: true, waits_for: 'schedule' })
  expect(await inQueue(one, 'scheduled')).toBe(2)
  expect((await post(one, `/operations/${done.json.id}/undo`, {})).json).toMatchObject({ operation: 'reschedule', changed: 2 })
  expect(await inQueue(one, 'scheduled')).toBe(0)
})

test('a reclass names a class with a table, is carried out by its plan, and undone', async () => {
  const config = { class: { fast: { weight: 100 }, bulk: { weight: 1 } }, default_class: 'bulk' }
  const one = (world = await ApiWorld.open('sqlite', undefined, config))
  const [id = ''] = await one.fill(2)
  const order = { operation: 'reclass', selection: ofDestination('a.example.org') }
  for (const wrong of [
    order,
    { ...order, class: 'slow' },
    { ...order, class: 'slow', dry_run: true },
    { ...order, operation: 'hold', class: 'fast' },
  ])
    expect((await post(one, '/operations', wrong)).json.errors).toMatchObject([{ pointer: '/class' }])
  const planned = await post(one, '/operations', { ...order, class: 'fast', dry_run: true })
  expect(planned.json.plan).toMatchObject({ matched: 2 })
  const done = await post(one, '/operations', { plan: planned.json.plan.token })
  expect(done.json).toMatchObject({ changed: 2, arguments: '--destination=a.example.org fast' })
  expect((await one.api.get(`/messages/${id}`)).json).toMatchObject({ class: 'fast' })
  const undone = await post(one, `/operations/${done.json.id}/undo`, {})
  expect(undone.json).toMatchObject({ operation: 'reclass', changed: 2 })
  expect((await one.api.get(`/messages/${id}`)).json).not.toMatchObject({ class: 'fast' })
  const { json } = await one.api.get('/audit?action=reclass')
  expect(json.records).toHaveLength(2)
})

/** A token that a client has made up. */
const madeUp = (plan: unknown): string => deflateRawSync(JSON.stringify(plan)).toString('base64url')

const purging = (ids: readonly string[]) => ({
  operation: 'delete',
  selection: { kind: 'ids', ids },
  queues: null,
  purge: true,
  release: null,
  class: null,
  through: 1_000_000_000,
  matched: 1,
})

test('a plan that a client made up is recorded as what it does', async () => {
  const one = await opened()
  const [id = '', other = ''] = await one.fill(2)
  const forged = await post(one, '/operations', {
    plan: madeUp({ ...purging([id]), commandLine: '--sender=newsletter@spam.example --limit=1' }),
  })
  expect([forged.status, forged.json.type]).toEqual([422, expect.stringMatching(/plan$/)])
  expect(await inQueue(one, 'deferred')).toBe(2)
  const purged = await post(one, '/operations', { plan: madeUp(purging([id])) })
  expect(purged.json).toMatchObject({ changed: 1, arguments: `--now ${id}` })
  const filter = { ...ANY_MESSAGE, sender: 'app@us.example', reply: "it's; $(x)", olderThan: 1_767_225_600_000 - 7_200_000 }
  const selection = { kind: 'filter', filter, limit: null }
  const planned = await post(one, '/operations', { plan: madeUp({ ...purging([]), selection, purge: false }) })
  expect(planned.json).toMatchObject({ changed: 0, arguments: `--sender=app@us.example --older-than=2h --reply='it'\\''s; $(x)'` })
  expect((await one.api.get('/audit')).json.records).toHaveLength(2)
  expect((await one.api.get(`/messages/${other}`)).status).toBe(200)
})

test('a plan that inflates beyond the size of a plan is refused, and nothing of it is recorded', async () => {
  const one = await opened()
  await one.fill(1)
  for (const bomb of [
    madeUp({ ...purging([]), commandLine: 'x'.repeat(60_000_000) }),
    madeUp(purging(Array.from({ length: 2_000_000 }, () => 'x'))),
    madeUp({ ...purging([]), selection: { kind: 'filter', filter: { ...ANY_MESSAGE, reply: 'x'.repeat(60_000_000) }, limit: null } }),
  ]) {
    const { status, json } = await post(one, '/operations', { plan: bomb })
    expect([status, json.type]).toEqual([422, expect.stringMatching(/plan$/)])
    expect(json.detail).toBe('the plan has more than 2.1 MB, which no dry run makes: repeat the dry run')
  }
  expect((await one.api.get('/audit')).json.records).toEqual([])
})

test('the largest plan of ids is carried out, and a larger one is refused at the dry run', async () => {
  const one = await opened('memory')
  const [id = ''] = await one.fill(1)
  const ids = [id, ...Array.from({ length: 49_999 }, (_, n) => `unknown${n}`.padEnd(30, 'x'))]
  const dryRun = (named: readonly string[]) =>
    post(one, '/operations', { operation: 'hold', selection: { kind: 'ids', ids: named }, dry_run: true })
  const { token } = (await dryRun(ids)).json.plan
  const held = await post(one, '/operations', { plan: token })
  expect(held.json).toMatchObject({ changed: 1, unknown: 49_999, arguments: expect.stringMatching(/ # and 49980 more$/) })
  const refused = await dryRun([...ids, 'more'])
  expect([refused.status, refused.json.type]).toEqual([422, expect.stringMatching(/plan$/)])
  expect(refused.json.detail).toMatch(/^a plan names at most 50,000 messages: /)
})

test('an operation of more than 2 s is answered with 202, is cancelled, and its undo restores exactly its messages', async () => {
  const one = await opened()
  const ids = await one.fill(640)
  await post(one, '/operations', { operation: 'delete', selection: { kind: 'ids', ids: ids.slice(600) } })
  const third = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  let rounds = 0
  one.afterRound = async () => {
    if (++rounds !== 3) return
    third.resolve()
    await resumed.promise
  }
  const begun = post(one, '/operations', { operation: 'delete', selection: ofDestination('a.example.org') })
  await third.promise
  await one.queue.advance(2_000)
  const { status, json, headers } = await begun
  expect(status).toBe(202)
  expect(json).toMatchObject({ state: 'running', changed: 192 })
  const path = headers.get('location')?.replace('/api/v1', '') ?? ''
  expect((await one.api.get(path)).json).toMatchObject({ id: json.id, matched: 192 })
  const cancelled = await one.api.ask('DELETE', path, { as: 'operator' })
  expect(cancelled.json).toMatchObject({ state: 'cancelled', changed: 192, error: 'cancelled by token:operator (127.0.0.1)' })
  resumed.resolve()
  await one.queue.rest()
  expect((await one.api.ask('DELETE', path, { as: 'operator' })).status).toBe(409)
  expect(await inQueue(one, 'trash')).toBe(192 + 40)
  expect((await post(one, `${path}/undo`, undefined)).json).toMatchObject({ operation: 'restore', changed: 192 })
  expect(await inQueue(one, 'trash')).toBe(40)
})

test('the stream of an operation ends with its last state', async () => {
  const one = await opened('memory')
  const ids = await one.fill(1)
  const { id } = (await post(one, '/operations', { operation: 'hold', selection: { kind: 'ids', ids } })).json
  const response = await fetch(`${one.api.base}/operations/${id}/stream`, { headers: { authorization: 'Bearer viewer' } })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toMatch(/^event: operation\ndata: \{"id":\d+,"state":"done"/)
  await reader?.cancel()
})

test('a request with the same key has its effect once', async () => {
  const one = await opened()
  const ids = await one.fill(2)
  const body = { operation: 'hold', selection: { kind: 'ids', ids } }
  const [first, second] = await Promise.all([post(one, '/operations', body, 'k1'), post(one, '/operations', body, 'k1')])
  expect(first.json.id).toBe(second.json.id)
  expect([first, second].map(({ headers }) => headers.get('idempotent-replayed')).filter((field) => field !== null)).toEqual(['true'])
  const other = await post(one, '/operations', { ...body, operation: 'release' }, 'k1')
  expect(other.status).toBe(422)
  expect(other.json.type).toMatch(/idempotency-key-reused$/)
  expect((await one.api.post('/operations', body, { as: 'admin', headers: { 'idempotency-key': 'k1' } })).json.id).not.toBe(first.json.id)
  expect((await one.api.get('/audit')).json.records).toHaveLength(2)
  expect((await post(one, '/operations', body, 'x'.repeat(256))).status).toBe(400)
})

test('a destination is suspended until a time, resumed, and probed', async () => {
  const one = await opened()
  await one.fill(2)
  const until = (one.queue.clock.now() + 3_600_000) / 1000
  const suspended = await post(one, '/destinations/a.example.org/suspend', { reason: 'rate limited', until })
  expect(suspended.json).toMatchObject({
    state: 'suspended',
    suspended_until: until,
    suspend_reason: 'rate limited',
    suspended_by: 'token:operator (127.0.0.1)',
  })
  expect((await post(one, '/destinations/a.example.org/resume', undefined)).json).toMatchObject({ state: 'open' })
  const before = one.queue.attempts('a.example.org').length
  expect((await post(one, '/destinations/a.example.org/probe', undefined)).status).toBe(200)
  await one.queue.rest()
  expect(one.queue.attempts('a.example.org').length).toBe(before + 1)
  expect((await post(one, '/destinations/nowhere.example/resume', undefined)).status).toBe(404)
  expect((await post(one, '/destinations/a.example.org/suspend', { until: 1 })).json.errors).toMatchObject([{ pointer: '/until' }])
  expect((await one.api.get('/audit')).json.records.map(({ action }) => action)).toEqual(['flush', 'resume', 'suspend'])
})

test('a limited token changes mail of its destinations only', async () => {
  const one = await opened()
  const own = await one.fill(2, 'a.example.org')
  const others = await one.fill(1, 'c.example')
  const both = await one.queue.accept(['x@a.example.org', 'y@c.example'])
  await one.queue.rest()
  const hold = (selection: object) => one.api.post('/operations', { operation: 'hold', selection }, { as: 'limited' })
  expect((await hold({ kind: 'ids', ids: [...own, ...others, both] })).json).toMatchObject({ matched: 2, changed: 2 })
  expect(await inQueue(one, 'hold')).toBe(2)
  expect(
    (await one.api.post('/operations', { operation: 'release', selection: { kind: 'filter', filter: {} }, all: true }, { as: 'limited' }))
      .json,
  ).toMatchObject({ changed: 2 })
  expect((await one.api.post('/destinations/c.example/suspend', {}, { as: 'limited' })).status).toBe(403)
  const { id } = (await post(one, '/operations', { operation: 'hold', selection: { kind: 'ids', ids: others } })).json
  expect((await one.api.get(`/operations/${id}`, { as: 'limited' })).status).toBe(404)
})
