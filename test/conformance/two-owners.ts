/**
 * Contract of a store that several nodes share: shards, messages between owners, takeover. Mail for far.example belongs to node B, all
 * other mail to node A.
 */
import { expect, onTestFinished, test } from 'vitest'
import { recipientId, type MessageId } from '../../src/mail/message.ts'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { NO_ARRIVALS, type NodesView, type NodeTable } from '../../src/store/membership/node-table.ts'
import { shardUnder } from '../../src/store/membership/shard-keys.ts'
import { SHARDS, shardOf } from '../../src/store/membership/shards.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { Fenced, type DestinationRecord, type QueueStore } from '../../src/store/queue-store.ts'
import { operate } from '../support/operate.ts'
import { SETTINGS } from './outbox.ts'
import { domainCheck } from './domain-checks.ts'
import { run } from './schedule-runs.ts'
import { grant } from './shared-grants.ts'
import {
  bounced,
  claim,
  deferred,
  delivered,
  first,
  LIFETIME,
  mail,
  messagesIn,
  MIN,
  ownerOf,
  queue,
  settleOne,
  T0,
  type SharedNode,
  type Subject,
} from './mail.ts'

const FAR = shardOf('far.example')
/** A provider whose shard is that of far.example, so that node B owns it. */
const PROVIDER_OF_B = Array.from({ length: 100_000 }, (_, n) => `p${n}`).find((name) => shardUnder('near.example', name) === FAR) ?? ''
const BOTH = { to: [{ address: 'ann@far.example' }, { address: 'bob@near.example' }] }
const UNCHANGED = { removed: false, noticeDue: false }
const dead = (name: string): DestinationRecord => ({ name, deadUntil: T0 + MIN, probeInterval: MIN, suspension: null, siteStatus: null })

export function twoOwners(subject: () => Subject): void {
  const nodeA = (): SharedNode => {
    const { store, reader, shared } = subject()
    if (shared === undefined) throw new Error('this store has one owner at a time')
    return { store, reader, nodes: shared.nodes, done: async () => undefined }
  }
  const join = async (): Promise<SharedNode> => {
    const { shared } = subject()
    if (shared === undefined) throw new Error('this store has one owner at a time')
    const node = await shared.join()
    onTestFinished(() => node.done())
    return node
  }
  /** Both nodes; A has given the shard of far.example to B. */
  const both = async () => {
    const [a, b] = [nodeA(), await join()]
    await a.nodes.releaseShards([FAR])
    expect(await b.nodes.takeShards(1)).toEqual([FAR])
    return { a, b, stateOf: (id: MessageId) => statesIn(a, id) }
  }

  test('one of two nodes makes a run of a schedule, and both see it', async () => {
    const { a, b } = await both()
    const began = await Promise.all([a, b].map(({ store }) => store.records.scheduleRuns.begin(run(T0))))
    expect(began.filter((one) => one)).toHaveLength(1)
    // The next one, while it goes on.
    expect(await b.store.records.scheduleRuns.begin(run(T0 + MIN))).toBe(false)
    await a.store.records.scheduleRuns.end({ name: 'nightly', planned: T0, endedAt: T0 + 1, outcome: 'done', text: 'flushed' })
    expect(await b.reader.records.scheduleRuns.last()).toMatchObject([{ name: 'nightly', planned: T0, text: 'flushed' }])
    expect(await b.store.records.scheduleRuns.begin(run(T0 + MIN))).toBe(true)
  })

  test('one of two nodes makes a check of a domain, and both see its report', async () => {
    const { a, b } = await both()
    const began = await Promise.all([a, b].map(({ store }) => store.records.domainChecks.begin(domainCheck(T0))))
    expect(began.filter((one) => one)).toHaveLength(1)
    const key = { domain: 'far.example', sender: 'us.example', beganAt: T0 }
    await a.store.records.domainChecks.end({ ...key, endedAt: T0 + 1, failure: null, report: { verdict: 'ok' } })
    expect(await b.reader.records.domainChecks.of('far.example', 'us.example')).toMatchObject({ report: { verdict: 'ok' } })
    expect(await b.store.records.domainChecks.begin(domainCheck(T0 + MIN))).toBe(true)
  })

  test('a node joins without shards, and nodes see each other', async () => {
    const [a, b] = [nodeA(), await join()]
    expect(b.nodes.me).toBeGreaterThan(a.nodes.me)
    const view = await beat(b.nodes)
    expect(view.mine).toEqual([])
    expect(view.freeShards).toBe(0)
    expect(view.nodes.toSorted((x, y) => x.id - y.id)).toMatchObject([
      { id: a.nodes.me, shards: SHARDS, draining: false },
      { id: b.nodes.me, shards: 0, draining: false },
    ])
    const again = await beat(b.nodes)
    expect(beatOf(again, b)).not.toBe(beatOf(view, b))
    expect(beatOf(again, a)).toBe(beatOf(view, a))
  })

  test('the ids of two nodes differ', async () => {
    const [a, b] = [nodeA(), await join()]
    const ids = [a.store.nextId(), b.store.nextId(), ...(await a.store.nextIds(3)), ...(await b.store.nextIds(3)), a.store.nextId()]
    expect(new Set(ids).size).toBe(9)
  })

  test('each free shard is taken once, whoever asks', async () => {
    const [a, b, c] = [nodeA(), await join(), await join()]
    await a.nodes.releaseShards(Array.from({ length: 100 }, (_, shard) => shard))
    await b.nodes.releaseShards([200])
    const taken = (await Promise.all([b.nodes.takeShards(80), c.nodes.takeShards(80), b.nodes.takeShards(80)])).flat()
    // A taker passes over shards that another one is just taking.
    taken.push(...(await b.nodes.takeShards(SHARDS)))
    expect(taken.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 100 }, (_, shard) => shard))
    expect((await beat(b.nodes)).freeShards).toBe(0)
    expect((await beat(a.nodes)).mine).toHaveLength(SHARDS - 100)
  })

  test('only the owner of the shard claims, expires and lists mail', async () => {
    const { a, b } = await both()
    const far = await queue(a.store)
    const near = await queue(b.store, { to: [{ address: 'ann@near.example' }] })
    expect(await a.store.destinationsDue()).toEqual([{ destination: 'near.example', dueAt: T0 }])
    expect(await b.store.destinationsDue()).toEqual([{ destination: 'far.example', dueAt: T0 }])
    expect((await claim(a.store, T0)).requests).toEqual([])
    expect((await claim(b.store, T0, { destination: 'near.example' })).requests).toEqual([])
    const { requests } = await claim(b.store, T0)
    expect(messagesIn(requests)).toEqual([far])
    expect(requests[0]?.lease.owner).toBe(b.nodes.me)
    expect(await b.store.nextDeadlines()).toEqual({ expiresAt: null, warnAt: null })
    expect(await b.store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    expect(messagesIn(await a.store.claimExpired(T0 + LIFETIME, 10))).toEqual([near])
  })

  test('a destination of a provider belongs to the owner of the provider, with all its live mail', async () => {
    const { a, b, stateOf } = await both()
    const c = await join()
    const to = [{ address: 'ann@near.example' }]
    const due = await queue(a.store, { to })
    const held = await queue(a.store, { to })
    await operate(a.store, held, { kind: 'hold' })
    const leased = await queue(a.store, { to, leased: true })
    await a.store.saveDestination({ ...dead('near.example'), suspension: { by: 'root', until: null, reason: null } })
    await b.nodes.arrivals()
    await a.store.joinProvider('near.example', PROVIDER_OF_B)
    // The next owner is told of the mail and of the saved state.
    const { due: told, destinations } = await b.nodes.arrivals()
    expect(told).toEqual([{ destination: 'near.example', dueAt: T0, revive: false }])
    expect(destinations).toMatchObject([{ name: 'near.example', suspension: { by: 'root' } }])
    expect((await b.store.destinations()).map(({ name }) => name)).toEqual(['near.example'])
    expect(await a.store.destinations()).toEqual([])
    // Claims, expiry and due times are those of B now, also of mail that was in delivery or on hold, or is queued later, at any node.
    expect((await claim(a.store, T0, { destination: 'near.example' })).requests).toEqual([])
    expect(await a.store.destinationsDue()).toEqual([])
    await settleOne(a.store, leased, deferred(first(leased), T0 + MIN))
    await operate(a.store, held, { kind: 'release' })
    const later = await queue(c.store, { to })
    expect((await b.nodes.arrivals()).due.length).toBeGreaterThan(0)
    const { requests, nextDueAt } = await claim(b.store, T0, { destination: 'near.example' })
    expect(messagesIn(requests).toSorted((x, y) => x - y)).toEqual([due, held, later])
    expect(nextDueAt).toBe(T0 + MIN)
    expect(await b.reader.destinationLoad('near.example')).toMatchObject({ waiting: 1, leased: 3 })
    expect(await stateOf(due)).toEqual(['leased'])
    // It leaves the provider again.
    await b.store.joinProvider('near.example', null)
    expect(await a.store.destinationsDue()).toEqual([{ destination: 'near.example', dueAt: T0 + MIN }])
    expect((await claim(b.store, T0 + MIN, { destination: 'near.example' })).requests).toEqual([])
    expect(messagesIn((await claim(a.store, T0 + MIN, { destination: 'near.example' })).requests)).toEqual([leased])
  })

  test('providers that two nodes change at once', async () => {
    const { a, b } = await both()
    const names = Array.from({ length: 20 }, (_, n) => `d${n}.example`)
    await Promise.all(names.map((name, n) => (n % 2 === 0 ? a : b).store.joinProvider(name, `p${n % 3}`)))
    const members = new Map((await a.store.records.providerMembers.all()).map(({ destination, provider }) => [destination, provider]))
    expect(names.map((name) => members.get(name))).toEqual(names.map((_, n) => `p${n % 3}`))
  })

  test('a recall asks the nodes that lease mail of its messages until they answer, and those that own shards about a destination', async () => {
    const { a, b } = await both()
    const c = await join()
    const id = await queue(a.store, BOTH)
    const other = await queue(a.store, BOTH)
    await claim(b.store, T0, { limit: 1 })
    const recall = { messages: [id, other], destination: null, rests: true }
    let hints = 0
    b.nodes.onHint(() => hints++)
    expect(await a.nodes.recall(1, recall)).toEqual([b.nodes.me])
    expect(await a.nodes.recall(1, recall)).toEqual([b.nodes.me])
    expect(await a.nodes.recall(2, { ...recall, messages: [other] })).toEqual([])
    await expect.poll(() => hints).toBeGreaterThan(0)
    const asked = { asker: a.nodes.me, number: 1, recall }
    for (let look = 0; look < 2; look++) expect((await b.nodes.arrivals()).recalls).toEqual([asked])
    expect(await a.nodes.recallAnswers(1, [b.nodes.me])).toEqual([{ node: b.nodes.me, answer: null }])
    const answer = { given: [id], inTransfer: [other] }
    await b.nodes.answerRecall(asked, answer)
    expect((await b.nodes.arrivals()).recalls).toEqual([])
    expect(await a.nodes.recallAnswers(1, [b.nodes.me])).toEqual([{ node: b.nodes.me, answer }])
    await a.nodes.endRecall(1)

    // A node that waits for nothing of it: c has no shards.
    expect(await c.nodes.recall(1, { messages: [], destination: 'far.example', rests: false })).toEqual(
      [a.nodes.me, b.nodes.me].toSorted((x, y) => x - y),
    )
    const seen = (await beat(c.nodes)).nodes.find((node) => node.id === b.nodes.me)?.beat ?? 0
    await c.nodes.takeOver(b.nodes.me, seen)
    // A node that is gone has no claims.
    expect(await c.nodes.recallAnswers(1, [a.nodes.me, b.nodes.me])).toEqual([{ node: a.nodes.me, answer: null }])
    expect((await a.nodes.arrivals()).recalls).toMatchObject([{ asker: c.nodes.me, recall: { destination: 'far.example' } }])
  })

  test('a refresh token is one for all nodes: one of them has the claim, and stores the next generation', async () => {
    const [a, b, c] = [nodeA(), await join(), await join()]
    for (let generation = 1; generation <= 5; generation++) {
      const at = { now: T0, until: T0 + MIN }
      const claims = await Promise.all([a, b, c].map(({ store }) => store.records.grants.claim('m365', '', at)))
      expect(claims.filter(Boolean)).toEqual([true])
      const stored = await Promise.all(
        [a, b, c].map(({ store }, n) => store.records.grants.replace('m365', '', grant(generation, { accessToken: `${n}` }))),
      )
      expect(stored.filter(Boolean)).toEqual([true])
      const expected = grant(generation, { accessToken: `${stored.indexOf(true)}` })
      for (const { store } of [a, b, c]) expect(await store.records.grants.read('m365', '')).toEqual(expected)
    }
  })

  test('the owner hears of mail that another node queues, moves or wakes, once', async () => {
    const { a, b } = await both()
    let hints = 0
    b.nodes.onHint(() => hints++)
    const id = await queue(a.store, BOTH)
    expect(await b.nodes.arrivals()).toEqual({ ...NO_ARRIVALS, due: [{ destination: 'far.example', dueAt: T0, revive: false }] })
    await expect.poll(() => hints).toBeGreaterThan(0)
    expect(await b.nodes.arrivals()).toEqual(NO_ARRIVALS)
    expect(await a.nodes.arrivals()).toEqual(NO_ARRIVALS)
    await a.store.move([{ recipient: recipientId(id, 1), destination: 'far.example', expiresAt: T0 + LIFETIME }])
    expect(await b.nodes.arrivals()).toMatchObject({ due: [{ destination: 'far.example', revive: false }] })
    await operate(a.store, id, { kind: 'flush', now: T0 })
    expect(await b.nodes.arrivals()).toMatchObject({ due: [{ destination: 'far.example', revive: true }] })
    await operate(a.store, id, { kind: 'hold' })
    expect(await b.nodes.arrivals()).toEqual(NO_ARRIVALS)
    await operate(a.store, id, { kind: 'release' })
    expect(await b.nodes.arrivals()).toMatchObject({ due: [{ destination: 'far.example', dueAt: T0 }] })
  })

  test('mail that was leased when its shard got another owner is settled as usual, and then claimed by that owner', async () => {
    const { a, b, stateOf } = await both()
    const ids = [await queue(b.store, { leased: true }), await queue(b.store, { leased: true }), await queue(b.store, { leased: true })]
    const [back, again, gone] = ids as [MessageId, MessageId, MessageId]
    await b.nodes.releaseShards([FAR])
    await a.nodes.takeShards(1)
    expect((await claim(a.store, T0)).requests).toEqual([])
    await b.store.giveBack([first(back)], b.nodes.me)
    expect((await a.nodes.arrivals()).due).toEqual([{ destination: 'far.example', dueAt: T0, revive: false }])
    await settleOne(b.store, again, deferred(first(again), T0 + MIN))
    expect((await a.nodes.arrivals()).due).toEqual([{ destination: 'far.example', dueAt: T0 + MIN, revive: false }])
    expect(await settleOne(b.store, gone, delivered(first(gone), T0))).toMatchObject({ removed: true })
    expect([await stateOf(back), await stateOf(again)]).toEqual([['waiting'], ['waiting']])
    expect(messagesIn((await claim(a.store, T0 + MIN)).requests)).toEqual([back, again])
  })

  test('the owner of a shard hears of mail there that a node which is taken over had leased', async () => {
    const { a, b } = await both()
    const [gone, own] = [await queue(b.store, { leased: true }), await queue(b.store)]
    await b.nodes.releaseShards([FAR])
    await a.nodes.takeShards(1)
    expect(messagesIn((await claim(a.store, T0)).requests)).toEqual([own])
    expect(await a.nodes.takeOver(b.nodes.me, beatOf(await beat(a.nodes), b))).toMatchObject({ leases: 1 })
    expect((await a.nodes.arrivals()).due).toEqual([{ destination: 'far.example', dueAt: T0, revive: false }])
    expect(messagesIn((await claim(a.store, T0)).requests)).toEqual([gone])
  })

  test('messages to the owner of a shard wait for the next owner', async () => {
    const { a, b } = await both()
    await b.nodes.releaseShards([FAR])
    await queue(a.store)
    expect(await b.nodes.arrivals()).toEqual(NO_ARRIVALS)
    expect(await a.nodes.takeShards(1)).toEqual([FAR])
    expect((await a.nodes.arrivals()).due).toHaveLength(1)
  })

  test('a lease of another owner is neither settled nor given back', async () => {
    const { a, b, stateOf } = await both()
    const id = await queue(a.store, { leased: true, to: [{ address: 'bob@near.example' }] })
    expect(await settleOne(b.store, id, delivered(first(id), T0))).toEqual(UNCHANGED)
    const stolen = { owner: a.nodes.me, message: id, recipients: [delivered(first(id), T0)], attempts: [] }
    expect(await b.store.settle(stolen)).toEqual(UNCHANGED)
    await b.store.giveBack([first(id)], b.nodes.me)
    await b.store.giveBack([first(id)], a.nodes.me)
    expect(await stateOf(id)).toEqual(['leased'])
    expect((await settleOne(a.store, id, delivered(first(id), T0))).removed).toBe(true)
  })

  test('an operation leaves the leases of all nodes, and its placement applies at their end', async () => {
    const { a, b, stateOf } = await both()
    const held = await queue(b.store, { leased: true })
    const corrupt = await queue(b.store, { leased: true })
    await operate(a.store, held, { kind: 'hold' })
    await a.store.quarantine(corrupt, 'test')
    expect([await stateOf(held), await stateOf(corrupt)]).toEqual([['leased'], ['leased']])
    await b.store.giveBack([first(held)], b.nodes.me)
    await settleOne(b.store, corrupt, deferred(first(corrupt), T0 + 1))
    expect([await stateOf(held), await stateOf(corrupt)]).toEqual([['parked'], ['parked']])
  })

  test('a message leaves when two nodes settle its last recipients at once', async () => {
    const { a, b } = await both()
    for (let n = 0; n < 10; n++) {
      const id = await queue(a.store, BOTH)
      await claim(b.store, T0)
      await claim(a.store, T0, { destination: 'near.example' })
      const results = await Promise.all([
        settleOne(b.store, id, delivered(first(id), T0)),
        settleOne(a.store, id, delivered(recipientId(id, 1), T0)),
      ])
      expect(results.filter(({ removed }) => removed)).toHaveLength(1)
      expect((await a.reader.details(formatQueueId(T0, id)))?.queue).toBe('gone')
    }
  })

  test('a subscription of the configuration stays while an owner has its table, and goes with the last one', async () => {
    const { a, b } = await both()
    const table = (name: string, to = SETTINGS.to) => ({ name, settings: { ...SETTINGS, to } })
    const kept = async () => (await a.reader.allSubscriptions()).map(({ name, settings }) => `${name} ${settings.to}`)
    await a.store.outbox.configureSubscriptions([table('app'), table('log')], T0)
    await b.store.outbox.configureSubscriptions([table('app', 'stdout')], T0)
    expect(await kept()).toEqual(['app stdout', `log ${SETTINGS.to}`])
    await a.store.outbox.configureSubscriptions([table('log')], T0)
    expect(await kept()).toEqual(['app stdout', `log ${SETTINGS.to}`])
    await b.store.outbox.configureSubscriptions([], T0)
    expect(await kept()).toEqual([`log ${SETTINGS.to}`])
    await a.store.outbox.configureSubscriptions([], T0)
    expect(await kept()).toEqual([])
  })

  test('notices are due at the owner of the first recipient', async () => {
    const { a, b } = await both()
    const id = await queue(b.store, BOTH)
    await claim(b.store, T0)
    await claim(a.store, T0, { destination: 'near.example' })
    expect(await settleOne(a.store, id, bounced(recipientId(id, 1), T0))).toEqual(UNCHANGED)
    expect((await b.nodes.arrivals()).notices).toEqual([id])
    expect(await a.store.messagesWithNoticesDue(0, 10)).toEqual([])
    expect(await b.store.messagesWithNoticesDue(0, 10)).toMatchObject([{ message: { id } }])
    expect(await settleOne(b.store, id, bounced(first(id), T0))).toEqual({ removed: false, noticeDue: true })
  })

  test('the state of recipients at other owners comes with a notice', async () => {
    const { a, b } = await both()
    const id = await queue(b.store, BOTH)
    await claim(b.store, T0)
    await settleOne(b.store, id, bounced(first(id), T0))
    expect((await b.store.noticesDueOf(id))?.elsewhere).toEqual({ leased: false, closed: [] })
    await claim(a.store, T0, { destination: 'near.example' })
    expect((await b.store.noticesDueOf(id))?.elsewhere).toEqual({ leased: true, closed: [] })
    await a.store.saveDestination(dead('near.example'))
    await settleOne(a.store, id, deferred(recipientId(id, 1), T0 + MIN))
    expect((await b.nodes.arrivals()).notices).toEqual([id])
    expect((await b.store.noticesDueOf(id))?.elsewhere).toEqual({ leased: false, closed: ['near.example'] })
    await claim(a.store, T0 + MIN, { destination: 'near.example' })
    await settleOne(a.store, id, delivered(recipientId(id, 1), T0 + MIN))
    expect(await b.nodes.arrivals()).toMatchObject({ notices: [id] })
    expect((await b.store.noticesDueOf(id))?.elsewhere).toBeUndefined()
  })

  test('delay warnings are claimed by the owner of the first recipient, who hears of their time', async () => {
    const { a, b } = await both()
    const id = await queue(a.store, BOTH)
    await b.nodes.arrivals()
    await a.store.postponeWarning(id, T0 + MIN)
    expect((await b.nodes.arrivals()).notices).toEqual([id])
    expect(await a.store.nextDeadlines()).toMatchObject({ warnAt: null })
    expect(await b.store.nextDeadlines()).toMatchObject({ warnAt: T0 + MIN })
    expect(await a.store.claimWarnings(T0 + MIN, 10)).toEqual([])
    const [claimed] = await b.store.claimWarnings(T0 + MIN, 10)
    expect(claimed).toMatchObject({ message: { id }, elsewhere: { leased: false, closed: [] } })
    expect(claimed?.recipients).toHaveLength(2)
    await claim(a.store, T0, { destination: 'near.example' })
    const settled = { owner: a.nodes.me, message: id, recipients: [deferred(recipientId(id, 1), T0 + MIN)], attempts: [] }
    expect(await a.store.settle({ ...settled, warnAt: T0 + 2 * MIN })).toEqual(UNCHANGED)
    expect((await b.nodes.arrivals()).notices).toEqual([id])
  })

  test('the saved state of a destination belongs to its owner, who hears of changes by others', async () => {
    const { a, b } = await both()
    const suspension = { by: 'root', until: null, reason: null }
    const record = { ...dead('far.example'), deadUntil: null, probeInterval: null, suspension }
    await a.store.saveDestination(record)
    await a.store.saveDestination(dead('near.example'))
    expect(await a.store.destinations()).toEqual([dead('near.example')])
    expect(await b.store.destinations()).toEqual([record])
    expect(await b.nodes.arrivals()).toEqual({ ...NO_ARRIVALS, destinations: [record] })
    expect(await a.nodes.arrivals()).toEqual(NO_ARRIVALS)
    await a.store.saveDestination({ ...record, suspension: null })
    expect(await b.store.destinations()).toEqual([])
    expect((await b.nodes.arrivals()).destinations).toEqual([{ ...record, suspension: null }])
  })

  test('the owner of a provider hears of effects and suspensions that others save', async () => {
    const { a, b } = await both()
    const effects = [{ rule: '1', action: { kind: 'rate', perMinute: 6 }, until: T0 + MIN, reply: '450 slow' } as const]
    const record = { provider: PROVIDER_OF_B, effects }
    await a.store.records.providers.save(record)
    await b.store.records.providers.save({ ...record, effects: [] })
    await a.store.records.providers.save({ ...record, effects: [] })
    const suspended = { provider: PROVIDER_OF_B, suspension: { by: 'root', until: null, reason: null } }
    await a.store.records.providers.suspend(suspended)
    await a.store.records.providers.resume({ ...record, effects: [] })
    const ended = { ...record, effects: [] }
    expect(await b.nodes.arrivals()).toEqual({ ...NO_ARRIVALS, providers: [record, ended, suspended, ended] })
    expect(await a.nodes.arrivals()).toEqual(NO_ARRIVALS)
  })

  test('a notice for a destination of another owner waits for that owner', async () => {
    const { a, b, stateOf } = await both()
    const id = await queue(a.store, { leased: true, sender: 'app@far.example', to: [{ address: 'bob@near.example' }] })
    await settleOne(a.store, id, bounced(first(id), T0))
    const notice = mail(a.store, { sender: '', to: [{ address: 'app@far.example' }] })
    const noticesSettled = [{ recipient: first(id), noticeDue: 'failure' as const }]
    const report = { message: id, noticesSettled, notices: [notice], late: [], warnings: 0, warnAt: null }
    expect(await a.store.report(report)).toEqual({ removed: true, entered: true })
    expect(await stateOf(notice.message.id)).toEqual(['waiting'])
    expect((await b.nodes.arrivals()).due).toMatchObject([{ destination: 'far.example' }])
    expect(messagesIn((await claim(b.store, T0)).requests)).toEqual([notice.message.id])
  })

  test('a node that has beaten since is not taken over', async () => {
    const { a, b } = await both()
    const seen = beatOf(await beat(b.nodes), a)
    await beat(a.nodes)
    expect(await b.nodes.takeOver(a.nodes.me, seen)).toBeNull()
    expect(await queue(a.store, { leased: true, to: [{ address: 'bob@near.example' }] })).toBeGreaterThan(0)
    expect(await b.nodes.takeOver(999_999, 0)).toBeNull()
  })

  test('a takeover ends the leases of the node, frees its shards and deletes its staged contents', async () => {
    const { a, b } = await both()
    const id = await queue(a.store, { leased: true, to: [{ address: 'bob@near.example' }] })
    const own = await queue(b.store, { leased: true })
    const half = a.store.nextId()
    await a.store.stage(half, 0, [Buffer.from('half')])
    const takeover = await b.nodes.takeOver(a.nodes.me, beatOf(await beat(b.nodes), a))
    expect(takeover).toEqual({ shards: SHARDS - 1, leases: 1, corrupt: [] })
    const view = await beat(b.nodes)
    expect(view.nodes.map((node) => node.id)).toEqual([b.nodes.me])
    expect(view.freeShards).toBe(SHARDS - 1)
    expect([await statesIn(b, id), await statesIn(b, own)]).toEqual([['waiting'], ['leased']])
    expect(await b.store.readChunk(half, 0)).toBeUndefined()
    expect(await b.nodes.takeShards(SHARDS)).toHaveLength(SHARDS - 1)
    const { requests } = await claim(b.store, T0, { destination: 'near.example' })
    expect(messagesIn(requests)).toEqual([id])
    expect(await b.nodes.takeOver(a.nodes.me, 0)).toBeNull()
  })

  test('a node that was taken over changes nothing', async () => {
    const { a, b } = await both()
    const near = { to: [{ address: 'bob@near.example' }] }
    const [leased, waiting] = [await queue(a.store, { ...near, leased: true }), await queue(a.store, near)]
    const entry = mail(a.store, near)
    await b.nodes.takeOver(a.nodes.me, beatOf(await beat(b.nodes), a))
    const before = await everything(b, [leased, waiting])
    const calls: (() => Promise<unknown>)[] = [
      () => a.store.enqueue(entry),
      () => a.store.stage(a.store.nextId(), 0, [Buffer.from('half')]),
      () => settleOne(a.store, leased, delivered(first(leased), T0)),
      () => a.store.giveBack([first(leased)], a.nodes.me),
      () => claim(a.store, T0, { destination: 'near.example' }),
      () => a.store.claimExpired(T0 + LIFETIME, 10),
      () => a.store.claimSuspect(T0),
      () => a.store.quarantine(waiting, 'test'),
      () => a.store.postponeWarning(waiting, T0),
      () => a.store.markDelayNoticeDue(waiting, [first(waiting)]),
      () => a.store.saveDestination(dead('near.example')),
      () => operate(a.store, waiting, { kind: 'hold' }),
      () => a.store.move([{ recipient: first(waiting), destination: 'far.example', expiresAt: T0 }]),
      () => a.store.upkeep.ping(),
      () => a.nodes.takeShards(1),
      () => a.nodes.releaseShards([FAR]),
      () => a.nodes.arrivals(),
      () => a.nodes.takeOver(b.nodes.me, 0),
    ]
    for (const call of calls) await expect(call(), String(call)).rejects.toThrow(Fenced)
    expect(await a.nodes.beat()).toBeNull()
    await a.nodes.leave()
    expect(await everything(b, [leased, waiting])).toEqual(before)
    expect(await statesIn(b, entry.message.id)).toEqual([])
  })

  test('a claim that commits while its node is taken over leaves no lease', async () => {
    const { a, b } = await both()
    const to = [{ address: 'bob@near.example' }]
    const ids = [await queue(a.store, { to }), await queue(a.store, { to })]
    const seen = beatOf(await beat(b.nodes), a)
    const claims = [claim(a.store, T0, { destination: 'near.example', limit: 1 }), queue(a.store, { to, leased: true })]
    const [takeover] = await Promise.all([b.nodes.takeOver(a.nodes.me, seen), Promise.allSettled(claims)])
    expect(takeover).not.toBeNull()
    const last = await Promise.allSettled([claim(a.store, T0, { destination: 'near.example' })])
    expect(last).toMatchObject([{ status: 'rejected' }])
    for (const id of ids) expect(await statesIn(b, id)).toEqual(['waiting'])
    expect(await b.reader.list({ ...ANY_MESSAGE, queue: 'active' }, { after: 0, limit: 10 })).toEqual([])
  })

  test('a node that leaves frees its shards', async () => {
    const { a, b } = await both()
    await b.nodes.leave()
    const view = await beat(a.nodes)
    expect(view.nodes.map(({ id }) => id)).toEqual([a.nodes.me])
    expect(view.freeShards).toBe(1)
    await expect(queue(b.store)).rejects.toThrow(Fenced)
  })

  test('a node can be told to drain', async () => {
    const { a, b } = await both()
    expect(await a.nodes.setDraining(b.nodes.me, true)).toBe(true)
    expect((await beat(b.nodes)).nodes.find(({ id }) => id === b.nodes.me)?.draining).toBe(true)
    expect(await a.nodes.setDraining(b.nodes.me, false)).toBe(true)
    expect((await beat(b.nodes)).nodes.find(({ id }) => id === b.nodes.me)?.draining).toBe(false)
    expect(await a.nodes.setDraining(999_999, true)).toBe(false)
  })

  test('a node shows others its parameters after a reload', async () => {
    const { a, b } = await both()
    const shown = async (): Promise<readonly string[]> => {
      const { nodes } = await beat(b.nodes)
      return [a, b].flatMap((one) =>
        nodes.filter(({ id }) => id === one.nodes.me).map(({ settings, hostname }) => `${hostname} ${settings}`),
      )
    }
    const [, before = ''] = await shown()
    await a.nodes.setParameters({ settings: '{"minimal_backoff_time":"0a1b2c3d"}', hostname: 'mx1.example' })
    expect(await shown()).toEqual(['mx1.example {"minimal_backoff_time":"0a1b2c3d"}', before])
    await b.nodes.takeOver(a.nodes.me, beatOf(await beat(b.nodes), a))
    await expect(a.nodes.setParameters({ settings: '{}', hostname: '' })).rejects.toThrow(Fenced)
  })
}

async function beat(nodes: NodeTable): Promise<NodesView> {
  const view = await nodes.beat()
  if (view === null) throw new Error(`node ${nodes.me} was taken over`)
  return view
}

const beatOf = ({ nodes }: NodesView, { nodes: { me } }: SharedNode): number => nodes.find(({ id }) => id === me)?.beat ?? -1

/** States of the recipients of a message; empty when there is no such message. */
async function statesIn({ reader }: Pick<SharedNode, 'reader'>, id: MessageId): Promise<readonly string[]> {
  return (await reader.details(formatQueueId(T0, id)))?.recipients.map(({ state }) => state) ?? []
}

const everything = async ({ reader, store, nodes }: SharedNode, ids: readonly MessageId[]) => ({
  messages: await Promise.all(ids.map((id) => reader.details(formatQueueId(T0, id)))),
  destinations: await reader.destinationRecords(),
  due: await store.destinationsDue(),
  owner: ownerOf(store satisfies QueueStore),
  shards: (await beat(nodes)).freeShards,
})
