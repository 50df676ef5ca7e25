/** Commits whose answer is lost, statements that arrive late, a database that is away, and a standby that does not answer. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { takeOverNode } from '../../../src/store/postgres/node.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import type { DoubtResolution } from '../../../src/store/membership/writing-events.ts'
import { Fenced, OutcomeUnknown, StoreUnavailable, type DestinationRecord } from '../../../src/store/queue-store.ts'
import type { Clock } from '../../../src/system/clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { claim, deferred, delivered, first, mail, messagesIn, MIN, ownerOf, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { event, SETTINGS } from '../../conformance/outbox.ts'
import { grant } from '../../conformance/shared-grants.ts'
import { startLossyProxy, type LossyProxy } from '../../support/lossy-proxy.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const LABELS = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
const dead = (until: number): DestinationRecord => ({
  name: 'far.example',
  deadUntil: until,
  probeInterval: MIN,
  suspension: null,
  siteStatus: null,
})

/** A clock whose timers run thirty times as fast. */
const HURRIED: Clock = {
  now: () => realClock.now(),
  wall: realClock.wall,
  monotonic: () => realClock.monotonic(),
  after: (delay, action) => realClock.after(delay / 30, action),
  alarm: (at, action) => realClock.alarm(at, action),
  zone: (at) => realClock.zone(at),
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`lost answers${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()
  let url: DatabaseUrl
  let proxy: LossyProxy
  let direct: Connection
  let opened: PostgresQueue[] = []
  let fenced = 0
  let doubts: DoubtResolution[] = []

  beforeEach(async () => {
    url = await emptyQueue()
    proxy = await startLossyProxy(server().port)
    direct = await connectTo(url)
    fenced = 0
    doubts = []
  })
  afterEach(async () => {
    for (const one of opened) await one.destroy()
    opened = []
    await direct.end()
    await proxy.close()
  })

  async function open(clock: Clock = realClock): Promise<PostgresQueue> {
    const one = await openPostgresStore({
      url: urlOf(`postgresql://postgres@127.0.0.1:${proxy.port}/postgres`),
      durability: 'primary',
      labels: LABELS,
      clock,
      onFenced: () => fenced++,
      onEvent: (happened) => happened.kind === 'in-doubt' && doubts.push(happened.resolution),
      tallyKeptFor: 0,
    })
    opened.push(one)
    await direct.query(takeShards, [one.node, SHARDS])
    return one
  }

  const count = async (what: string): Promise<number> => {
    const [row] = await direct.query<{ n: number }>(`select count(*) as n from ${what}`)
    return row?.n ?? 0
  }

  /** Loses the answer of a call: waits until the database shows its effect, then closes the connection. */
  async function afterLoss<T>(call: () => Promise<T>, effect: string, from: 'now' | 'the commit' = 'now'): Promise<T> {
    proxy.dropAnswers(from)
    const answer = call()
    await expect.poll(() => count(effect)).toBe(1)
    proxy.cut()
    return answer
  }

  test('a message is queued once, and acknowledged, when the answer of its commit is lost', async () => {
    const { store } = await open()
    const entry = mail(store, { leased: true })
    await afterLoss(() => store.enqueue(entry), 'message')
    const id = entry.message.id
    expect(await settleOne(store, id, delivered(first(id), T0))).toEqual({ removed: true, noticeDue: false })
    expect([await count('message'), await count('history')]).toEqual([0, 1])
    expect(doubts).toEqual(['committed'])
  })

  test('a message whose transaction never arrived is queued by the next session', async () => {
    const { store } = await open()
    const entries = [mail(store), mail(store)]
    proxy.holdStatements()
    const answers = Promise.all(entries.map((entry) => store.enqueue(entry)))
    await expect.poll(() => count('message')).toBe(0)
    proxy.cut()
    await answers
    expect(doubts).toEqual(['not-committed'])
    expect(await count('message')).toBe(2)
  })

  test('statements of a former session that arrive late change nothing', async () => {
    const { store, node } = await open()
    proxy.holdStatements()
    const saved = store.saveDestination(dead(T0))
    await expect.poll(() => count('destination')).toBe(0)
    proxy.cut()
    await saved
    await store.saveDestination(dead(T0 + MIN))
    proxy.deliver()
    // The server ends the former session when it has run its statements.
    await expect.poll(() => count(`pg_stat_activity where application_name = 'deferd ${node} w'`)).toBeGreaterThan(0)
    await store.upkeep.ping()
    expect(await store.destinations()).toEqual([dead(T0 + MIN)])
  })

  test('an outcome is recorded once when the answer is lost, and the result is found', async () => {
    const { store } = await open()
    const [gone, back] = [await queue(store, { leased: true }), await queue(store, { leased: true })]
    const removed = await afterLoss(() => settleOne(store, gone, delivered(first(gone), T0)), 'history')
    expect(removed).toEqual({ removed: true, noticeDue: false })
    const result = await afterLoss(() => settleOne(store, back, deferred(first(back), T0 + MIN)), 'attempt')
    expect(result).toEqual({ removed: false, noticeDue: false })
    expect([await count('history'), await count('attempt')]).toEqual([1, 1])
    expect(await direct.query('select sum(delivered)::int as delivered, sum(deferred)::int as deferred from traffic')).toEqual([
      { delivered: 1, deferred: 1 },
    ])
  })

  test('what a claim has leased whose answer is lost is claimed again', async () => {
    const { store } = await open()
    const id = await queue(store)
    const { requests } = await afterLoss(() => claim(store, T0), 'recipient where leased_by is not null')
    expect(messagesIn(requests)).toEqual([id])
    expect(await direct.query('select delivery_starts as starts, state from recipient')).toEqual([{ starts: 1, state: 'leased' }])
    expect((await settleOne(store, id, delivered(first(id), T0))).removed).toBe(true)
  })

  test('operations and notices whose answer is lost have effect once', async () => {
    const { store } = await open()
    const id = await queue(store)
    const flush = () => store.operate([{ message: id, operation: { kind: 'flush', now: T0 } }])
    await afterLoss(flush, 'recipient where kept_due_at is not null', 'the commit')
    const newId = store.nextId()
    const requeue = () => store.operate([{ message: id, operation: { kind: 'requeue', now: T0, newId, expiresAt: T0 + MIN } }])
    const result = await afterLoss(requeue, `message where id = ${newId}`, 'the commit')
    expect(result).toMatchObject([{ changed: true }])
    expect([await count('message'), await count('history'), await count('chunk')]).toEqual([1, 1, 1])
  })

  test('events whose answer is lost have one id', async () => {
    const { store } = await open()
    await store.outbox.subscribe({ name: 'app', settings: SETTINGS, at: T0, by: 'root' })
    const died = [event('destination.died')]
    await afterLoss(() => store.saveDestination(dead(T0 + MIN), died), 'event', 'the commit')
    await afterLoss(() => store.outbox.recordEvents([event('store.trouble')]), `event where type = 'store.trouble'`, 'the commit')
    const both = () => Promise.all([store.saveDestination(dead(T0), died), store.outbox.recordEvents([event('store.recovered')])])
    await afterLoss(both, `event where type = 'store.recovered'`)
    const id = await queue(store)
    const flush = () => store.operate([{ message: id, operation: { kind: 'flush', now: T0 }, events: [event('message.operated')] }])
    expect(await afterLoss(flush, `event where type = 'message.operated'`, 'the commit')).toMatchObject([{ changed: true }])
    while (await store.outbox.numberEvents());
    const pulled = await store.outbox.pullEvents('app', 10)
    expect(pulled?.events.map(({ type }) => type)).toEqual([
      'destination.died',
      'store.trouble',
      'destination.died',
      'store.recovered',
      'message.operated',
    ])
    expect(doubts).toEqual(['committed', 'committed', 'committed', 'committed'])
  })

  test('subscriptions, tokens and access entries are added and removed once, and reported so, when the answer is lost', async () => {
    const { store } = await open()
    const none = (table: string) => `(select 1 where not exists (select 1 from ${table})) gone`
    const subscribe = () => store.outbox.subscribe({ name: 'app', settings: SETTINGS, at: T0, by: 'root' })
    const token = {
      name: 'ci',
      role: 'viewer',
      content: false,
      destinations: null,
      addedAt: T0,
      addedBy: 'root',
      expiresAt: null,
      lastUsedAt: null,
    } as const
    expect(await afterLoss(subscribe, 'subscription', 'the commit')).toBe(true)
    expect(await subscribe()).toBe(false)
    expect(await afterLoss(() => store.outbox.unsubscribe('app'), none('subscription'), 'the commit')).toBe(true)
    expect(await store.outbox.unsubscribe('app')).toBe(false)
    expect(await afterLoss(() => store.records.tokens.add({ ...token, hash: '00' }), 'access_token', 'the commit')).toBe(true)
    expect(await afterLoss(() => store.records.tokens.remove('ci'), none('access_token'), 'the commit')).toBe(true)
    await store.records.access.set({ subject: 'client', key: 'a', action: 'OK', addedAt: T0, addedBy: 'root', expiresAt: null })
    expect(await afterLoss(() => store.records.access.remove('client', 'a'), none('access_entry'), 'the commit')).toBe(true)
    await expect.poll(() => doubts).toEqual(['committed', 'committed', 'committed', 'committed', 'committed'])
  })

  test('a claim and a new refresh token are reported once, when the answer is lost', async () => {
    const { store } = await open()
    const claimed = () => store.records.grants.claim('m365', '', { now: T0, until: T0 + MIN })
    expect(await afterLoss(claimed, 'oauth_token', 'the commit')).toBe(true)
    expect(await claimed()).toBe(false)
    const replaced = () => store.records.grants.replace('m365', '', grant(1))
    expect(await afterLoss(replaced, 'oauth_token where generation = 1', 'the commit')).toBe(true)
    expect(await replaced()).toBe(false)
    await claimed()
    await afterLoss(() => store.records.grants.release('m365', ''), 'oauth_token where claimed_until = 0', 'the commit')
    expect(await claimed()).toBe(true)
  })

  test('events whose transaction never arrived are kept by the next session', async () => {
    const { store } = await open()
    await store.outbox.subscribe({ name: 'app', settings: SETTINGS, at: T0, by: 'root' })
    proxy.holdStatements()
    const recorded = store.outbox.recordEvents([event('store.trouble')])
    await expect.poll(() => count('event')).toBe(0)
    proxy.cut()
    await recorded
    expect([await count('event'), doubts]).toEqual([1, ['not-committed']])
  })

  test('a node that was taken over while it had no connection is fenced', async () => {
    const { store, node } = await open()
    const id = await queue(store, { leased: true })
    proxy.holdStatements()
    const settled = store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(first(id), T0)], attempts: [] })
    const refused = expect(settled).rejects.toThrow(OutcomeUnknown)
    expect(await takeOverNode(direct, node, 0)).toMatchObject({ leases: 1 })
    proxy.cut()
    await refused
    await expect(store.upkeep.ping()).rejects.toThrow(Fenced)
    proxy.deliver()
    expect(fenced).toBe(1)
    expect(await direct.query('select state from recipient')).toEqual([{ state: 'waiting' }])
  })

  test('a message stays in doubt when its node was taken over before the look-up', async () => {
    const { store, node } = await open()
    proxy.dropAnswers('now')
    const answer = expect(store.enqueue(mail(store))).rejects.toThrow(OutcomeUnknown)
    await expect.poll(() => count('message')).toBe(1)
    expect(await takeOverNode(direct, node, 0)).not.toBeNull()
    proxy.cut()
    await answer
    expect(doubts).toEqual(['unknown'])
  })

  test('calls are refused while the database is away, and accepted when it is back', async () => {
    const { store } = await open(HURRIED)
    const id = await queue(store, { leased: true })
    await direct.end()
    await server().stop('immediate')
    await expect(store.upkeep.ping()).rejects.toThrow(StoreUnavailable)
    await expect(store.enqueue(mail(store))).rejects.toThrow(StoreUnavailable)
    await server().start()
    direct = await connectTo(url)
    await expect
      .poll(() =>
        store.upkeep.ping().then(
          () => 'back',
          () => 'away',
        ),
      )
      .toBe('back')
    expect((await settleOne(store, id, delivered(first(id), T0))).removed).toBe(true)
  })

  test('a record of the audit log is written once when the answer of its commit is lost', async () => {
    const { store } = await open()
    const record = (at: number) => ({ at, who: 'root', action: 'suspend', arguments: 'far.example', changed: 1 })
    await store.records.audit.add(record(T0))
    await afterLoss(() => store.records.audit.add(record(T0 + 1)), `audit where at = ${T0 + 1}`)
    proxy.holdStatements()
    const late = store.records.audit.add(record(T0 + 2))
    await expect.poll(() => count(`audit where at = ${T0 + 2}`)).toBe(0)
    proxy.cut()
    await late
    expect(await direct.query('select at from audit order by id')).toEqual([{ at: T0 }, { at: T0 + 1 }, { at: T0 + 2 }])
  })

  test('a call in doubt rejects after a minute, and its leases are given back', async () => {
    const { store } = await open(HURRIED)
    const entry = mail(store, { leased: true })
    proxy.dropAnswers('now')
    const answer = expect(store.enqueue(entry)).rejects.toThrow(OutcomeUnknown)
    await expect.poll(() => count('message')).toBe(1)
    await direct.end()
    await server().stop('immediate')
    await answer
    await server().start()
    direct = await connectTo(url)
    await expect
      .poll(() =>
        store.upkeep.ping().then(
          () => 'back',
          () => 'away',
        ),
      )
      .toBe('back')
    expect(await direct.query('select state from recipient')).toEqual([{ state: 'waiting' }])
    // The scheduler, which does not know the message, is told.
    expect(await direct.query('select kind, destination from arrival')).toEqual([{ kind: 'due', destination: 'far.example' }])
  })

  /** Resolves when commits wait for the standby. A commit soon after the reload of the configuration may not. */
  async function standbyIsAwaited(): Promise<void> {
    const probe = await connectTo(url, 'probe')
    const waiting = `pg_stat_activity where wait_event = 'SyncRep' and application_name = 'probe'`
    let commits = 0
    const commit = async (): Promise<void> => {
      commits++
      await probe.command(`select pg_logical_emit_message(true, 'probe', '')`)
      commits--
    }
    let last = commit()
    await expect
      .poll(() => {
        if (commits === 0) last = commit()
        return count(waiting)
      })
      .toBe(1)
    await direct.command(`select pg_cancel_backend(pid) from ${waiting}`)
    await last
    await probe.end()
  }

  test('a message is acknowledged only when the standby has it', async () => {
    const { store, node } = await open()
    await store.upkeep.ping()
    await direct.command(`alter system set synchronous_standby_names = 'absent'`)
    await direct.command('select pg_reload_conf()')
    await standbyIsAwaited()
    let isAcknowledged = false
    const answer = store.enqueue(mail(store)).then(() => (isAcknowledged = true))
    const waiting = `pg_stat_activity where wait_event = 'SyncRep' and application_name = 'deferd ${node} w'`
    await expect.poll(() => count(waiting)).toBe(1)
    await direct.command(`select pg_cancel_backend(pid) from ${waiting}`)
    // The next session waits for the standby too.
    await expect.poll(() => count(`${waiting} and query like '%session + 1%'`)).toBe(1)
    expect([await count('message'), isAcknowledged]).toEqual([1, false])
    await direct.command(`alter system reset synchronous_standby_names`)
    await direct.command('select pg_reload_conf()')
    await answer
    expect(await count('message')).toBe(1)
  })
})
