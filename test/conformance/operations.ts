/**
 * Contract of the store: operations.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/mail/message.ts'
import { operate } from '../support/operate.ts'
import { begin } from './audit.ts'
import {
  bounced,
  claim,
  contentOf,
  deferred,
  delivered,
  first,
  LIFETIME,
  messagesIn,
  MIN,
  OK,
  queue,
  settleOne,
  T0,
  type Subject,
  ownerOf,
} from './mail.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

export function operators(subject: () => Subject): void {
  const stateOf = (id: number) => subject().reader.details(formatQueueId(T0, id))

  test('flushed mail is due now, and its lease has the earlier due time', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, deferred(first(id), T0 + 60 * MIN))
    expect(await operate(store, id, { kind: 'flush', now: T0 + MIN })).toEqual({
      changed: true,
      woken: [{ destination: 'far.example', dueAt: T0 + MIN }],
    })
    expect((await operate(store, id, { kind: 'flush', now: T0 + MIN })).changed).toBe(false)
    const { requests } = await claim(store, T0 + MIN)
    expect(requests[0]?.recipients).toMatchObject([{ dueAt: T0 + 60 * MIN, flushed: true, steps: 1 }])
    await settleOne(store, id, deferred(first(id), T0 + 60 * MIN, { attempts: 2 }))
    expect((await claim(store, T0 + 60 * MIN)).requests[0]?.recipients).toMatchObject([{ flushed: false, attempts: 2 }])
  })

  test('a flush never postpones mail', async () => {
    const { store } = subject()
    const id = await queue(store)
    expect(await operate(store, id, { kind: 'flush', now: T0 + MIN })).toMatchObject({ changed: true, woken: [{ dueAt: T0 }] })
    expect((await claim(store, T0)).requests[0]?.recipients).toMatchObject([{ dueAt: T0, flushed: true }])
  })

  test('held mail is not tried, does not expire and keeps its due time', async () => {
    const { store } = subject()
    const id = await queue(store)
    expect(await operate(store, id, { kind: 'hold' })).toEqual({ changed: true, woken: [] })
    expect((await stateOf(id))?.queue).toBe('hold')
    expect(await operate(store, id, { kind: 'hold' })).toEqual({ changed: false, woken: [] })
    expect((await operate(store, id, { kind: 'flush', now: T0 })).changed).toBe(false)
    expect(await claim(store, T0 + LIFETIME)).toEqual({ requests: [], nextDueAt: null })
    expect(await store.claimExpired(T0 + LIFETIME, 10)).toEqual([])
    expect(await operate(store, id, { kind: 'release' })).toEqual({
      changed: true,
      woken: [{ destination: 'far.example', dueAt: T0 }],
    })
    expect((await operate(store, id, { kind: 'release' })).changed).toBe(false)
  })

  test('mail held in delivery: delivered stays delivered, what failed is held', async () => {
    const { store } = subject()
    const id = await queue(store, {
      leased: true,
      to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }, { address: 'eve@far.example' }],
    })
    const [ann, bob, eve] = [0, 1, 2].map((n) => recipientId(id, n)) as [number, number, number]
    await operate(store, id, { kind: 'hold' })
    expect((await stateOf(id))?.recipients).toMatchObject([{ state: 'leased' }, { state: 'leased' }, { state: 'leased' }])
    await store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(ann, T0), deferred(bob, T0 + MIN)], attempts: [] })
    await store.giveBack([eve], ownerOf(store))
    expect(await stateOf(id)).toMatchObject({
      queue: 'hold',
      recipients: [{ state: 'delivered' }, { state: 'parked', dueAt: T0 + MIN }, { state: 'parked' }],
    })
    expect(await operate(store, id, { kind: 'release' })).toMatchObject({ woken: [{ destination: 'far.example', dueAt: T0 }] })
    expect((await claim(store, T0 + MIN)).requests[0]?.recipients.map((one) => one.id)).toEqual([eve, bob])
  })

  test('deleted mail is in the trash until it is restored', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    expect(await operate(store, id, { kind: 'delete', now: T0, purge: false })).toEqual({ changed: true, woken: [] })
    expect((await operate(store, id, { kind: 'delete', now: T0, purge: false })).changed).toBe(false)
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [delivered(first(id), T0), deferred(recipientId(id, 1), T0 + MIN)],
      attempts: [],
    })
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toEqual([])
    expect(await reader.list({ ...ANY_MESSAGE, queue: 'trash' }, { after: 0, limit: 10 })).toMatchObject([{ message: { id } }])
    expect((await stateOf(id))?.queue).toBe('trash')
    expect(await operate(store, id, { kind: 'restore' })).toMatchObject({
      changed: true,
      woken: [{ dueAt: T0 + MIN }],
    })
    expect((await claim(store, T0 + MIN)).requests[0]?.recipients).toMatchObject([{ address: 'bob@far.example' }])
    expect((await operate(store, id, { kind: 'restore' })).changed).toBe(false)
  })

  test('expired trash is pruned; mail in delivery is pruned after its attempt', async () => {
    const { store } = subject()
    const [old, fresh, busy] = [await queue(store), await queue(store), await queue(store, { leased: true })]
    await operate(store, old, { kind: 'delete', now: T0, purge: false })
    await operate(store, fresh, { kind: 'delete', now: T0 + MIN, purge: false })
    await operate(store, busy, { kind: 'delete', now: T0, purge: false })
    const prune = async () => {
      while ((await store.upkeep.prune({ historyBefore: 0, historyCount: 100, trashBefore: T0 + MIN, requestsBefore: 0 })).more);
    }
    await prune()
    expect((await Promise.all([old, fresh, busy].map(stateOf))).map((state) => state?.queue)).toEqual(['gone', 'trash', 'trash'])
    expect((await stateOf(old))?.recipients).toMatchObject([{ state: 'removed' }])
    await settleOne(store, busy, deferred(first(busy), T0 + MIN))
    await prune()
    expect((await stateOf(busy))?.queue).toBe('gone')
  })

  test('purged mail is removed at once, or after its attempt when in delivery', async () => {
    const { store } = subject()
    const [idle, busy] = [await queue(store), await queue(store, { leased: true })]
    expect(await operate(store, idle, { kind: 'delete', now: T0, purge: true })).toEqual({ changed: true, woken: [] })
    expect((await stateOf(idle))?.queue).toBe('gone')
    expect((await operate(store, idle, { kind: 'delete', now: T0, purge: true })).changed).toBe(false)
    await operate(store, busy, { kind: 'delete', now: T0, purge: true })
    expect((await stateOf(busy))?.queue).toBe('trash')
    expect((await settleOne(store, busy, delivered(first(busy), T0))).removed).toBe(true)
    expect((await stateOf(busy))?.recipients).toMatchObject([{ state: 'delivered', last: OK }])
  })

  test('failures before a deletion are still reported', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [bounced(first(id), T0), deferred(recipientId(id, 1), T0 + MIN)],
      attempts: [],
    })
    await operate(store, id, { kind: 'delete', now: T0, purge: true })
    expect((await store.noticesDueOf(id))?.recipients).toMatchObject([{ noticeDue: 'failure' }])
    expect(
      await store.report({
        message: id,
        noticesSettled: [{ recipient: first(id), noticeDue: 'failure' }],
        notices: [],
        late: [],
        warnings: 0,
        warnAt: null,
      }),
    ).toEqual({ removed: true, entered: true })
  })

  test('deleted mail gets no delay notice', async () => {
    const { store } = subject()
    const id = await queue(store)
    await store.markDelayNoticeDue(id, [first(id)])
    await store.postponeWarning(id, T0 + MIN)
    await operate(store, id, { kind: 'delete', now: T0, purge: false })
    expect(await store.noticesDueOf(id)).toBeUndefined()
    expect(await store.claimWarnings(T0 + MIN, 10)).toEqual([])
  })

  test('a lease of mail marked to expire has the mark', async () => {
    const { store } = subject()
    const id = await queue(store)
    expect(await operate(store, id, { kind: 'expire' })).toEqual({
      changed: true,
      woken: [{ destination: 'far.example', dueAt: T0 }],
    })
    expect((await operate(store, id, { kind: 'expire' })).changed).toBe(false)
    expect((await claim(store, T0)).requests).toMatchObject([{ forcedExpire: true }])
  })

  test('requeued mail is a new entry with a fresh schedule, the same content and the old arrival time', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example', notify: 'never' }, { address: 'bob@far.example' }] })
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [deferred(first(id), T0 + 60 * MIN, { steps: 4 }), delivered(recipientId(id, 1), T0)],
      attempts: [],
    })
    const newId = store.nextId()
    const result = await operate(store, id, { kind: 'requeue', now: T0 + MIN, newId, expiresAt: T0 + MIN + LIFETIME })
    expect(result).toEqual({ changed: true, woken: [{ destination: 'far.example', dueAt: T0 + MIN }] })
    expect(await stateOf(id)).toMatchObject({
      queue: 'gone',
      recipients: [{ state: 'removed', last: { reason: `requeued as ${formatQueueId(T0 + MIN, newId)}` } }, { state: 'delivered' }],
    })
    const [request] = (await claim(store, T0 + MIN)).requests
    expect(request).toMatchObject({ message: { id: newId, createdAt: T0 + MIN, arrivedAt: T0, contentId: id }, fresh: true })
    expect(request?.recipients).toMatchObject([
      { address: 'ann@far.example', notify: 'never', steps: 0, attempts: 0, expiresAt: T0 + MIN + LIFETIME, last: null },
    ])
    expect((await contentOf(store, id)).toString()).toContain('Subject: hi')
    await settleOne(store, newId, delivered(first(newId), T0 + MIN))
    expect(await store.readChunk(id, 0).catch(() => undefined)).toBeUndefined()
  })

  test('a requeue leaves recipients in delivery behind, and keeps the content for both messages', async () => {
    const { store } = subject()
    const id = await queue(store, { to: [{ address: 'ann@far.example' }, { address: 'bob@else.example' }] })
    await claim(store, T0)
    const newId = store.nextId()
    expect(await operate(store, id, { kind: 'requeue', now: T0, newId, expiresAt: T0 + LIFETIME })).toMatchObject({ changed: true })
    expect((await stateOf(id))?.queue).toBe('active')
    expect((await operate(store, id, { kind: 'requeue', now: T0, newId: store.nextId(), expiresAt: T0 })).changed).toBe(false)
    expect((await settleOne(store, id, delivered(first(id), T0))).removed).toBe(true)
    expect((await contentOf(store, id)).toString()).toContain('Subject: hi')
    expect(messagesIn((await claim(store, T0, { destination: 'else.example' })).requests)).toEqual([newId])
  })

  test('an operation on an absent message changes nothing', async () => {
    const { store } = subject()
    expect(await operate(store, 4711, { kind: 'hold' })).toEqual({ changed: false, woken: [] })
  })

  test('waiting mail can be moved to another destination and lifetime; mail in delivery cannot', async () => {
    const { store } = subject()
    const [waiting, leased] = [await queue(store), await queue(store, { leased: true })]
    const moves = [waiting, leased].map((id) => ({ recipient: first(id), destination: 'new.example', expiresAt: T0 + 5 }))
    expect(await store.move(moves)).toEqual([{ destination: 'new.example', dueAt: T0 }])
    expect(await store.destinationsDue()).toEqual([{ destination: 'new.example', dueAt: T0 }])
    expect((await stateOf(waiting))?.recipients).toMatchObject([{ destination: 'new.example', expiresAt: T0 + 5 }])
    expect((await stateOf(leased))?.recipients).toMatchObject([{ destination: 'far.example', state: 'leased' }])
  })

  test('a shorter lifetime brings the last attempt forward', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, deferred(first(id), T0 + 60 * MIN))
    await store.move([{ recipient: first(id), destination: 'far.example', expiresAt: T0 + 10 * MIN }])
    expect((await stateOf(id))?.recipients).toMatchObject([{ dueAt: T0 + 10 * MIN, expiresAt: T0 + 10 * MIN }])
  })

  test('the audit log keeps user, operation and filter', async () => {
    const { store, reader } = subject()
    const rows = ['hold', 'release'].map((action, n) => ({ at: T0 + n, who: 'root', action, arguments: 'ABC', changed: n }))
    for (const row of rows) await store.records.audit.add(row)
    const [first_, second] = await reader.records.audit.after({ after: 0, limit: 10 })
    expect([first_, second]).toMatchObject(rows)
    expect(await reader.records.audit.after({ after: first_?.id ?? 0, limit: 10 })).toEqual([second])
  })

  test('the audit log counts changes in the same commit', async () => {
    const { store, reader } = subject()
    const ids = [await queue(store), await queue(store), await queue(store)]
    const operation = await store.records.audit.begin(begin('delete'))
    const remove = (id: number) => ({ message: id, operation: { kind: 'delete', now: T0, purge: false } as const })
    await store.operate(ids.slice(0, 2).map(remove), { operation, at: T0 + 1, matched: 2 })
    expect(await reader.records.audit.after({ after: 0, limit: 10 })).toMatchObject([
      { id: operation, state: 'running', changed: 2, matched: 2, lastAt: T0 + 1 },
    ])
    await store.operate(ids.map(remove), { operation, at: T0 + 2, matched: 3 })
    expect(await reader.records.audit.after({ after: 0, limit: 10 })).toMatchObject([{ id: operation, changed: 3, matched: 3 }])
  })

  test('destinations that are not open are stored until they are open', async () => {
    const { store, reader } = subject()
    const dead = { name: 'far.example', deadUntil: T0 + MIN, probeInterval: 300_000, suspension: null, siteStatus: OK }
    const ordinary = { name: 'far.example', deadUntil: null, probeInterval: null, suspension: null, siteStatus: OK }
    await store.saveDestination({ ...dead, deadUntil: T0 })
    await store.saveDestination(dead)
    expect(await store.destinations()).toEqual([dead])
    expect(await reader.destinationRecords()).toEqual([dead])
    await store.saveDestination(ordinary)
    expect(await store.destinations()).toEqual([])
  })

  test('the store answers a ping and reports its free space', async () => {
    const { store } = subject()
    await store.upkeep.ping()
    await store.upkeep.ping()
    expect(await store.upkeep.freeSpace()).toBeGreaterThan(0)
  })
}
