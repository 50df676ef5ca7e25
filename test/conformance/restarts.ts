/**
 * Promises of a durable store to its next owner.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { operate } from '../support/operate.ts'
import { bounced, claim, contentOf, deferred, first, LIFETIME, messagesIn, MIN, OK, queue, settleOne, T0, type Subject } from './mail.ts'

export function restarts(subject: () => Subject, replace: (next: Subject) => void): void {
  const crash = async (): Promise<Subject> => {
    const { crash: die } = subject()
    if (die === undefined) throw new Error('this store dies with its owner')
    const next = await die()
    replace(next)
    return next
  }

  test('what was acknowledged is there after a crash, to the millisecond', async () => {
    const id = await queue(subject().store, { leased: true, content: [Buffer.alloc(70_000, 'x')] })
    await settleOne(subject().store, id, deferred(first(id), T0 + 5 * MIN + 123))
    await subject().store.saveDestination({ name: 'far.example', deadUntil: null, probeInterval: null, suspendedBy: 'root', reason: OK })
    const { store, reader } = await crash()
    expect(await store.destinationsDue()).toEqual([{ destination: 'far.example', dueAt: T0 + 5 * MIN + 123 }])
    expect(await store.destinations()).toMatchObject([{ suspendedBy: 'root' }])
    expect(reader.story(formatQueueId(T0, id), T0)?.history).toHaveLength(1)
    expect((await contentOf(store, id)).byteLength).toBe(70_000)
  })

  test('leases end with their owner; due times and steps stay', async () => {
    const id = await queue(subject().store, { leased: true })
    const held = await queue(subject().store, { leased: true })
    await operate(subject().store, held, { kind: 'hold' })
    const { store, reader } = await crash()
    expect(reader.story(formatQueueId(T0, held), T0)).toMatchObject({ queue: 'hold', recipients: [{ state: 'parked' }] })
    const { requests } = await claim(store, T0)
    expect(messagesIn(requests)).toEqual([id])
    expect(requests[0]?.recipients).toMatchObject([{ dueAt: T0, steps: 0, attempts: 0 }])
  })

  test('ids go on above every id that was ever used', async () => {
    const { store } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, { ...bounced(first(id), T0), debt: undefined })
    const body = store.nextId()
    await store.stage(body, 0, [Buffer.from('half')])
    expect((await crash()).store.nextId()).toBeGreaterThan(body)
  })

  test('contents that never became mail are swept, those that did stay', async () => {
    const { store } = subject()
    const [lost, kept] = [store.nextId(), store.nextId()]
    await store.stage(lost, 0, [Buffer.from('half')])
    await store.stage(kept, 0, [Buffer.alloc(65_536)])
    await queue(store, { body: kept, content: [] })
    const next = await crash()
    expect(next.swept).toBe(1)
    expect(await next.store.readBody(lost, 0).catch(() => undefined)).toBeUndefined()
    expect((await contentOf(next.store, kept)).byteLength).toBe(65_536)
    expect((await crash()).swept).toBe(0)
  })

  test('debts survive', async () => {
    const id = await queue(subject().store, { leased: true })
    await settleOne(subject().store, id, bounced(first(id), T0))
    expect(await (await crash()).store.debtsOf(id)).toMatchObject({ recipients: [{ debt: 'failure' }] })
  })

  test('mail in delivery at two crashes is tried alone, and a third one convicts it', async () => {
    const poison = await queue(subject().store, { leased: true })
    expect(messagesIn((await claim((await crash()).store, T0)).requests)).toEqual([poison])
    const innocent = await queue(subject().store)
    const { store, quarantined } = await crash()
    expect(quarantined).toEqual([])
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([innocent])
    expect(await store.claimSuspect(T0 - 1)).toBeUndefined()
    expect(await store.claimSuspect(T0)).toMatchObject({ message: { id: poison }, recipients: [{ id: first(poison) }] })
    expect(await store.claimSuspect(T0)).toBeUndefined()
    const last = await crash()
    expect(last.quarantined).toMatchObject([{ queueId: formatQueueId(T0, poison) }])
    expect(last.reader.story(formatQueueId(T0, poison), T0)).toMatchObject({ queue: 'corrupt', recipients: [{ state: 'parked' }] })
    expect(messagesIn((await claim(last.store, T0)).requests)).toEqual([innocent])
  })

  test('an attempt that ends clears a suspicion, and so does being given back', async () => {
    const [tried, returned] = [await queue(subject().store, { leased: true }), await queue(subject().store, { leased: true })]
    await claim((await crash()).store, T0)
    const { store } = await crash()
    await store.claimSuspect(T0)
    await settleOne(store, tried, deferred(first(tried), T0 + 1))
    await store.claimSuspect(T0)
    await store.giveBack([first(returned)])
    expect(messagesIn((await claim(store, T0 + 1)).requests)).toEqual([returned, tried])
    expect((await crash()).quarantined).toEqual([])
  })

  test('a suspect still expires', async () => {
    const id = await queue(subject().store, { leased: true })
    await claim((await crash()).store, T0)
    const { store } = await crash()
    expect(await store.nextDeadlines()).toMatchObject({ expiresAt: T0 + LIFETIME })
    expect(messagesIn(await store.claimExpired(T0 + LIFETIME, 10))).toEqual([id])
  })
}
