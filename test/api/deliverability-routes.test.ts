/** Checks of domains by order over the API, and the resource `deliverability`. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { DomainReportJson } from '../../src/resources/domains/domain-check-json.ts'
import { DomainChecks } from '../../src/relay/domain-checks.ts'
import { StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import { CHECK_LEASE, CHECKS_KEPT_FOR } from '../../src/store/records/domain-check.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { eventLoopTurn } from '../../src/system/event-loop.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { goldenReport } from '../support/domain-reports.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const SETTINGS = { myorigin: 'us.example', provider: { google: { mx: ['.google.example'] } } }

async function opened(store: 'memory' | 'sqlite' = 'memory'): Promise<ApiWorld> {
  world = await ApiWorld.open(store, configFrom(SETTINGS, 'relay.example'), SETTINGS, { providerOf: () => 'google' })
  return world
}

const order = (domain: string, more: object = {}) => (world as ApiWorld).api.post('/domain-checks', { domain, ...more }, { as: 'operator' })

test.each(['memory', 'sqlite'] as const)('an ordered check goes on until its report is there (%s)', async (store) => {
  const { api, queue } = await opened(store)
  const asked: unknown[] = []
  const report = Promise.withResolvers<DomainReportJson>()
  ;(world as ApiWorld).answer = (question) => (asked.push(question), report.promise)
  const state = async () => (await api.get('/domain-checks/FAR.example')).json
  const begun = await order('FAR.example.', { from: 'app@Bücher.example' })
  expect([begun.status, begun.json]).toMatchObject([
    202,
    {
      domain: 'far.example',
      sender_domain: 'xn--bcher-kva.example',
      state: 'running',
      ordered_by: expect.stringContaining('operator') as string,
      report: null,
    },
  ])
  // The same check is not made twice at once.
  expect((await order('far.example', { from: 'bob@bücher.example' })).json).toMatchObject({ state: 'running' })
  expect(asked).toEqual([{ domain: 'far.example', from: 'app@xn--bcher-kva.example' }])
  // It is about other senders.
  expect((await api.get('/domain-checks/far.example')).status).toBe(404)
  report.resolve({ ...goldenReport('good.example'), domain: 'far.example' })
  await expect
    .poll(async () => (await api.get('/domain-checks/far.example?from=b%C3%BCcher.example')).json)
    .toMatchObject({ state: 'done' })
  expect((await api.get('/domain-checks')).json).toMatchObject({
    checks: [
      { domain: 'far.example', verdict: 'ok', problems: [], mail: expect.stringContaining('mail to good.example now: sent') as string },
    ],
  })
  expect((await api.get('/audit')).json.records).toMatchObject([
    { action: 'check domain', arguments: 'far.example from=xn--bcher-kva.example' },
  ])
  // Of myorigin.
  await order('far.example')
  expect(asked.at(-1)).toEqual({ domain: 'far.example', from: 'us.example' })
  await expect.poll(state).toMatchObject({ state: 'done' })
  await queue.advance(CHECKS_KEPT_FOR + 1)
  expect((await api.get('/domain-checks')).json).toMatchObject({ checks: [] })
  expect((await api.get('/domain-checks/far.example')).status).toBe(404)
})

test('at most four checks go on, each for two minutes', async () => {
  const { queue, api } = await opened()
  const signals: AbortSignal[] = []
  ;(world as ApiWorld).answer = (_, signal) => (signals.push(signal), new Promise(() => undefined))
  for (const name of ['a', 'b', 'c', 'd']) expect((await order(`${name}.example`)).status).toBe(202)
  const refused = await order('e.example')
  expect([refused.status, refused.json.type, refused.headers.get('retry-after')]).toEqual([503, '/problems/too-many-checks', '5'])
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false])
  await queue.advance(2 * MINUTE)
  expect((await api.get('/domain-checks/a.example')).json).toMatchObject({
    state: 'failed',
    failure: expect.stringContaining('did not answer within 120 seconds') as string,
  })
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true, true])
  expect((await order('e.example')).status).toBe(202)
})

test('a check that the store does not take, or whose end it does not take, goes on no more', async () => {
  const { queue } = await opened()
  const { records } = queue.store
  let away: 'audit' | 'end' | undefined
  let failures = 0
  const failing = <T>(call: typeof away, made: () => Promise<T>): Promise<T> => {
    if (away !== call) return made()
    failures++
    return Promise.reject(new StoreUnavailable('the disk is full'))
  }
  const store: Pick<QueueStore, 'records'> = {
    records: {
      ...records,
      audit: { ...records.audit, add: (record) => failing('audit', () => records.audit.add(record)) },
      domainChecks: { ...records.domainChecks, end: (row) => failing('end', () => records.domainChecks.end(row)) },
    },
  }
  const answer = async () => goldenReport('good.example')
  const checks = new DomainChecks({ store, clock: new QueueClock(queue.clock), node: 'mx1', answer })
  const ordered = (domain: string) => checks.order({ domain, from: 'us.example' }, { who: 'ann' })
  away = 'audit'
  for (const name of ['a', 'b', 'c', 'd']) await expect(ordered(`${name}.example`)).rejects.toThrow('the disk is full')
  away = 'end'
  for (const name of ['e', 'f', 'g', 'h']) expect(await ordered(`${name}.example`)).toBe('goes-on')
  await expect.poll(() => failures).toBe(8)
  await eventLoopTurn()
  away = undefined
  expect(await ordered('i.example')).toBe('goes-on')
  await checks.stop()
})

test('a failure keeps the report before it, and so does a daemon that ends during a check', async () => {
  const { api, queue } = await opened()
  const state = async () => (await api.get('/domain-checks/far.example')).json
  ;(world as ApiWorld).answer = async () => goldenReport('good.example')
  await order('far.example')
  await expect.poll(state).toMatchObject({ state: 'done' })
  ;(world as ApiWorld).answer = async () => ({ ...goldenReport('good.example'), destination: 'x'.repeat(300_000) })
  await order('far.example')
  await expect
    .poll(state)
    .toMatchObject({ state: 'failed', failure: expect.stringContaining('more than 256 kB') as string, report: { verdict: 'ok' } })
  await queue.store.records.domainChecks.begin({
    domain: 'far.example',
    sender: 'us.example',
    orderedBy: 'ann',
    node: 'gone',
    beganAt: queue.clock.now(),
    endedAt: null,
    failure: null,
    report: null,
  })
  expect(await state()).toMatchObject({ state: 'running', node: 'gone', report: { verdict: 'ok' } })
  await queue.advance(CHECK_LEASE)
  expect(await state()).toMatchObject({
    state: 'failed',
    failure: expect.stringContaining('the daemon ended') as string,
    report: { verdict: 'ok' },
  })
  expect((await order('far.example')).json).toMatchObject({ state: 'running', node: 'api' })
})

test('what is no domain is refused, and a limited token sees nothing', async () => {
  const { api } = await opened()
  expect((await order('far example')).json.errors).toEqual([
    { pointer: '/domain', detail: 'expected the name of a domain, got "far example"' },
  ])
  expect((await order('far.example', { from: 'a@b c' })).json.errors).toEqual([
    { pointer: '/from', detail: 'expected an address or a domain, got "a@b c"' },
  ])
  for (const path of ['/deliverability', '/domain-checks', '/domain-checks/far.example'])
    expect((await api.get(path, { as: 'limited' })).status).toBe(403)
  expect((await api.post('/domain-checks', { domain: 'far.example' }, { as: 'limited' })).status).toBe(403)
  expect((await api.post('/domain-checks', { domain: 'far.example' }, { as: 'viewer' })).status).toBe(403)
})

test('deliverability has the domains that send mail, with their last checks, and looks nothing up', async () => {
  const { api, queue } = await opened()
  const asked: unknown[] = []
  ;(world as ApiWorld).answer = async (question) => (asked.push(question), goldenReport('expired-policy.example'))
  for (const sender of ['app@us.example', 'app@us.example', 'news@shop.example', '']) await queue.accept(['ann@far.example'], { sender })
  await queue.accept(['ann@ok.example'], { sender: 'news@shop.example' })
  await queue.advance(MINUTE)
  const before = (await api.get('/deliverability')).json
  expect(before).toMatchObject({
    sender_domains: [
      { sender_domain: 'us.example', keys: [], accepted: 2, deferred: 2, delivered: 0, delivered_share: null, check: null },
      { sender_domain: 'shop.example', accepted: 2, deferred: 1, delivered: 1, delivered_share: 1, check: null },
    ],
    providers: [{ provider: 'google', delivered: 1 }],
    checks: [],
  })
  expect(asked).toEqual([])
  await order('us.example')
  await order('far.example')
  await expect
    .poll(async () => (await api.get('/deliverability')).json)
    .toMatchObject({
      sender_domains: [
        { sender_domain: 'us.example', check: { verdict: 'wrong', problems: [{ what: 'MTA-STS', verdict: 'wrong' }] } },
        { sender_domain: 'shop.example' },
      ],
      checks: [{ domain: 'far.example', sender_domain: 'us.example', state: 'done' }],
    })
})
