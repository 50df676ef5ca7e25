/**
 * Contract of the store: outcomes and history.
 */
import { expect, test } from 'vitest'
import { formatQueueId } from '../../src/mail/queue-id.ts'
import { recipientId } from '../../src/mail/message.ts'
import { operate } from '../support/operate.ts'
import {
  attempt,
  BUSY,
  claim,
  contentOf,
  deferred,
  delivered,
  first,
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

export function outcomes(subject: () => Subject): void {
  test('mail delivered at its first attempt leaves at once, and has a history', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    expect(await settleOne(store, id, delivered(first(id), T0 + 5), T0 + 5)).toEqual({ removed: true, noticeDue: false })
    expect(await store.readChunk(id, 0).catch(() => undefined)).toBeUndefined()
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toEqual([])
    const story = await reader.details(formatQueueId(T0, id))
    expect(story).toMatchObject({ queue: 'gone', leftAt: T0 + 5, message: { id, sender: 'app@us.example' } })
    expect(story?.recipients).toMatchObject([{ state: 'delivered', settledAt: T0 + 5, attempts: 1, last: OK }])
    expect(story?.history).toEqual([attempt(first(id), T0 + 5, 'delivered', OK)])
  })

  test('a failed attempt is repeated at its new due time, and both are in the history', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    expect(await settleOne(store, id, deferred(first(id), T0 + 5 * MIN), T0)).toEqual({ removed: false, noticeDue: false })
    expect((await claim(store, T0 + 5 * MIN - 1)).nextDueAt).toBe(T0 + 5 * MIN)
    expect(await claim(store, T0 + 5 * MIN - 1, { from: T0 + 5 * MIN })).toEqual({ requests: [], nextDueAt: T0 + 5 * MIN })
    expect(await reader.details(formatQueueId(T0, id))).toMatchObject({
      queue: 'deferred',
      recipients: [{ state: 'waiting', steps: 1, attempts: 1, deliveryStarts: 0, last: BUSY }],
      history: [attempt(first(id), T0)],
    })
    await claim(store, T0 + 5 * MIN)
    await settleOne(store, id, { ...delivered(first(id), T0 + 6 * MIN), attempts: 2 }, T0 + 6 * MIN)
    const story = await reader.details(formatQueueId(T0, id))
    expect(story?.history.map(({ at, outcome }) => [at - T0, outcome])).toEqual([
      [0, 'deferred'],
      [6 * MIN, 'delivered'],
    ])
    expect(story?.recipients).toMatchObject([{ attempts: 2, last: OK }])
  })

  test('a repeated settlement changes nothing', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, deferred(first(id), T0 + 5 * MIN))
    await settleOne(store, id, delivered(first(id), T0 + 1))
    const story = await reader.details(formatQueueId(T0, id))
    expect(story).toMatchObject({ queue: 'deferred', recipients: [{ dueAt: T0 + 5 * MIN, state: 'waiting' }] })
    expect(story?.history).toHaveLength(1)
    await claim(store, T0 + 5 * MIN)
    expect((await settleOne(store, id, delivered(first(id), T0 + 6 * MIN))).removed).toBe(true)
    expect(await settleOne(store, id, delivered(first(id), T0 + 6 * MIN))).toEqual({ removed: false, noticeDue: false })
  })

  test('an outcome applies to recipients of its own message only', async () => {
    const { store } = subject()
    const [id, other] = [await queue(store, { leased: true }), await queue(store, { leased: true })]
    await store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(first(other), T0)], attempts: [] })
    expect((await settleOne(store, other, delivered(first(other), T0))).removed).toBe(true)
  })

  test('a message stays until its last recipient is final', async () => {
    const { store, reader } = subject()
    const to = ['ann@far.example', 'bob@far.example', 'eve@far.example'].map((address) => ({ address }))
    const id = await queue(store, { leased: true, to })
    const [ann, bob, eve] = [0, 1, 2].map((n) => recipientId(id, n)) as [number, number, number]
    const settled = [delivered(ann, T0), deferred(bob, T0 + MIN)]
    expect(
      await store.settle({
        owner: ownerOf(store),
        message: id,
        recipients: settled,
        attempts: [attempt(ann, T0, 'delivered', OK), attempt(bob, T0)],
      }),
    ).toEqual({ removed: false, noticeDue: false })
    expect(await reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toMatchObject([
      { queue: 'active', recipients: [{ id: bob }, { id: eve }] },
    ])
    expect((await contentOf(store, id)).toString()).toContain('Subject: hi')
    await claim(store, T0 + MIN)
    expect(
      (
        await store.settle({
          owner: ownerOf(store),
          message: id,
          recipients: [delivered(bob, T0 + MIN), delivered(eve, T0 + MIN)],
          attempts: [],
        })
      ).removed,
    ).toBe(true)
    expect(await reader.details(formatQueueId(T0, id))).toMatchObject({
      leftAt: T0 + MIN,
      recipients: [{ settledAt: T0 }, { last: OK }, { last: OK }],
    })
  })

  test('an unreadable message moves to corrupt with all its recipients, without a notice', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true, to: [{ address: 'ann@far.example' }, { address: 'bob@far.example', leased: false }] })
    await store.quarantine(id, 'part 3 of its content is damaged')
    await store.quarantine(4711, 'no such message')
    expect(await reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10 })).toMatchObject([
      { queue: 'corrupt', recipients: [{ state: 'parked' }, { state: 'parked' }] },
    ])
    expect((await claim(store, T0)).requests).toEqual([])
    expect(await store.noticesDueOf(id)).toBeUndefined()
    await settleOne(store, id, delivered(first(id), T0))
    expect((await reader.details(formatQueueId(T0, id)))?.recipients).toMatchObject([{ state: 'parked' }, { state: 'parked' }])
    expect(await operate(store, id, { kind: 'release' })).toMatchObject({ changed: true })
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([id])
  })

  test('history is kept by age and by count, oldest first', async () => {
    const { store, reader } = subject()
    const ids: number[] = []
    for (let n = 0; n < 6; n++) {
      const id = await queue(store, { leased: true })
      await settleOne(store, id, delivered(first(id), T0 + n * MIN))
      ids.push(id)
    }
    const known = async () =>
      (await Promise.all(ids.map((id) => reader.details(formatQueueId(T0, id))))).map((details) => details !== undefined)
    const prune = async (historyBefore: number, historyCount: number) => {
      while ((await store.upkeep.prune({ historyBefore, historyCount, trashBefore: 0, requestsBefore: 0 })).more);
    }
    await prune(T0, 6)
    expect(await known()).toEqual([true, true, true, true, true, true])
    await prune(T0 + 2 * MIN, 6)
    expect(await known()).toEqual([false, false, true, true, true, true])
    await prune(T0, 3)
    expect(await known()).toEqual([false, false, false, true, true, true])
  })
}
