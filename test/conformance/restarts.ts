/**
 * Contract of a durable store: state after a restart.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { SHARED_STARTS_UNTIL_CORRUPT, STARTS_UNTIL_CORRUPT } from '../../src/mail/message.ts'
import { operate } from '../support/operate.ts'
import {
  bounced,
  claim,
  contentOf,
  deferred,
  delivered,
  first,
  LIFETIME,
  mail,
  messagesIn,
  MIN,
  OK,
  queue,
  settleOne,
  T0,
  type Subject,
  ownerOf,
} from './mail.ts'

export function restarts(subject: () => Subject, replace: (next: Subject) => void, shared: boolean): void {
  const startsUntilCorrupt = shared ? SHARED_STARTS_UNTIL_CORRUPT : STARTS_UNTIL_CORRUPT
  const crash = async (): Promise<Subject> => {
    const { crash: die } = subject()
    if (die === undefined) throw new Error('this store dies with its owner')
    const next = await die()
    replace(next)
    return next
  }

  test('acknowledged mail survives a crash, with due times to the millisecond', async () => {
    const id = await queue(subject().store, { leased: true, content: [Buffer.alloc(70_000, 'x')] })
    await settleOne(subject().store, id, deferred(first(id), T0 + 5 * MIN + 123))
    await subject().store.saveDestination({
      name: 'far.example',
      deadUntil: null,
      probeInterval: null,
      suspension: { by: 'root', until: T0 + 5 * MIN, reason: 'rate limited' },
      siteStatus: OK,
    })
    const { store, reader } = await crash()
    expect(await store.destinationsDue()).toEqual([{ destination: 'far.example', dueAt: T0 + 5 * MIN + 123 }])
    expect(await store.destinations()).toMatchObject([{ suspension: { by: 'root', until: T0 + 5 * MIN, reason: 'rate limited' } }])
    expect((await reader.details(formatQueueId(T0, id)))?.history).toHaveLength(1)
    expect((await contentOf(store, id)).byteLength).toBe(70_000)
  })

  // The nodes of a shared queue follow the clock of the database.
  const unshared = shared ? () => undefined : test
  unshared('the record of the clock survives a crash', async () => {
    const { store, reader } = subject()
    expect(await reader.clockRecord()).toBeNull()
    for (const time of [T0, T0 + MIN]) await store.upkeep.saveClock({ time, offset: -MIN, uptime: 5, boot: 2 ** 47 })
    expect(await (await crash()).reader.clockRecord()).toEqual({ time: T0 + MIN, offset: -MIN, uptime: 5, boot: 2 ** 47 })
  })

  test('the key of a maildrop file survives a crash, also when its message has left', async () => {
    const { store } = subject()
    const entry = { ...mail(store, { leased: true }), maildropFile: 'a 1 2' }
    await store.enqueue(entry)
    await settleOne(store, entry.message.id, { ...bounced(first(entry.message.id), T0), noticeDue: undefined })
    expect(await (await crash()).store.maildropFiles()).toEqual(['a 1 2'])
  })

  test('leases end with their owner; due times and steps stay', async () => {
    const id = await queue(subject().store, { leased: true })
    const held = await queue(subject().store, { leased: true })
    await operate(subject().store, held, { kind: 'hold' })
    const { store, reader } = await crash()
    expect(await reader.details(formatQueueId(T0, held))).toMatchObject({ queue: 'hold', recipients: [{ state: 'parked' }] })
    const { requests } = await claim(store, T0)
    expect(messagesIn(requests)).toEqual([id])
    expect(requests[0]?.recipients).toMatchObject([{ dueAt: T0, steps: 0, attempts: 0 }])
  })

  test('each opening is another owner, which does not settle what an earlier one leased', async () => {
    const before = subject().store
    const id = await queue(before, { leased: true })
    const earlier = before.leaseTerms().owner
    const { store } = await crash()
    expect(store.leaseTerms().owner).toBeGreaterThan(earlier)
    const [request] = (await claim(store, T0)).requests
    expect(request?.lease.owner).toBe(store.leaseTerms().owner)
    const settlement = { owner: earlier, message: id, recipients: [delivered(first(id), T0)], attempts: [] }
    expect(await store.settle(settlement)).toEqual({ removed: false, noticeDue: false })
    await store.giveBack([first(id)], earlier)
    expect((await claim(store, T0)).requests).toEqual([])
  })

  test('no id is given out twice, whether a message took it or not', async () => {
    const { store } = subject()
    const given = [store.nextId(), ...(await store.nextIds(3)), store.nextId(), ...(await store.nextIds(1))]
    expect(new Set(given).size).toBe(6)
    const next = (await crash()).store
    for (const id of [next.nextId(), ...(await next.nextIds(2))]) expect(id).toBeGreaterThan(Math.max(...given))
  })

  test('ids continue above every id used before', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, { ...bounced(first(id), T0), noticeDue: undefined })
    const body = store.nextId()
    await store.stage(body, 0, [Buffer.from('half')])
    expect((await crash()).store.nextId()).toBeGreaterThan(body)
  })

  test('content without a message is removed at start, other content stays', async () => {
    const { store } = subject()
    const [lost, kept] = [store.nextId(), store.nextId()]
    await store.stage(lost, 0, [Buffer.from('half')])
    await store.stage(kept, 0, [Buffer.alloc(65_536)])
    await queue(store, { contentId: kept, content: [] })
    const next = await crash()
    expect(next.swept).toBe(1)
    expect(await next.store.readChunk(lost, 0).catch(() => undefined)).toBeUndefined()
    expect((await contentOf(next.store, kept)).byteLength).toBe(65_536)
    expect((await crash()).swept).toBe(0)
  })

  test('notices due survive', async () => {
    const id = await queue(subject().store, { leased: true })
    await settleOne(subject().store, id, bounced(first(id), T0))
    expect(await (await crash()).store.noticesDueOf(id)).toMatchObject({ recipients: [{ noticeDue: 'failure' }] })
  })

  test(`mail in delivery at two crashes is retried alone, and moves to corrupt at crash ${startsUntilCorrupt}`, async () => {
    const poison = await queue(subject().store, { leased: true })
    expect(messagesIn((await claim((await crash()).store, T0)).requests)).toEqual([poison])
    const innocent = await queue(subject().store)
    const { store, quarantined } = await crash()
    expect(quarantined).toEqual([])
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([innocent])
    expect(await store.claimSuspect(T0 - 1)).toBeUndefined()
    expect(await store.claimSuspect(T0)).toMatchObject({ message: { id: poison }, recipients: [{ id: first(poison) }] })
    expect(await store.claimSuspect(T0)).toBeUndefined()
    for (let starts = 3; starts < startsUntilCorrupt; starts++) {
      const next = await crash()
      expect(next.quarantined).toEqual([])
      expect(await next.store.claimSuspect(T0)).toMatchObject({ message: { id: poison } })
    }
    const last = await crash()
    expect(last.quarantined).toMatchObject([{ queueId: formatQueueId(T0, poison) }])
    expect(await last.reader.details(formatQueueId(T0, poison))).toMatchObject({ queue: 'corrupt', recipients: [{ state: 'parked' }] })
    expect(messagesIn((await claim(last.store, T0)).requests)).toEqual([innocent])
  })

  test('a completed attempt or a release resets the count of starts', async () => {
    const [tried, returned] = [await queue(subject().store, { leased: true }), await queue(subject().store, { leased: true })]
    await claim((await crash()).store, T0)
    const { store } = await crash()
    await store.claimSuspect(T0)
    await settleOne(store, tried, deferred(first(tried), T0 + 1))
    await store.claimSuspect(T0)
    await store.giveBack([first(returned)], ownerOf(store))
    expect(messagesIn((await claim(store, T0 + 1)).requests)).toEqual([returned, tried])
    expect((await crash()).quarantined).toEqual([])
  })

  test('mail retried alone still expires', async () => {
    const id = await queue(subject().store, { leased: true })
    await claim((await crash()).store, T0)
    const { store } = await crash()
    expect(await store.nextDeadlines()).toMatchObject({ expiresAt: T0 + LIFETIME })
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 10))).toEqual([id])
  })
}
