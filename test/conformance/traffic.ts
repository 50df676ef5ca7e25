/**
 * Promises of the store about traffic. test/conformance/tally.ts checks after every call of the suite that the sums agree with the
 * recipients in the queue.
 */
import { expect, test } from 'vitest'
import { readStatus } from '../../src/queue/queue-status.ts'
import { WallView } from '../../src/system/wall-view.ts'
import { NO_TRAFFIC, OLDER_MINUTES, TRAFFIC_HOURS, TRAFFIC_MINUTES } from '../../src/store/counts/traffic.ts'
import { attempt, bounced, deferred, delivered, first, mail, MIN, ownerOf, queue, settleOne, T0, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

const NEVER = { historyBefore: 0, historyCount: 1_000_000, trashBefore: 0, requestsBefore: 0 }

export function traffic(subject: () => Subject): void {
  test('each minute holds its recipients by kind', async () => {
    const { store, reader } = subject()
    const two = [{ address: 'ann@far.example' }, { address: 'bob@far.example' }]
    expect(await reader.firstTraffic()).toBeNull()
    const [one, other] = [await queue(store, { leased: true, to: two }), await queue(store, { at: T0 + MIN, leased: true })]
    await settleOne(store, one, deferred(first(one), T0 + 5 * MIN), T0 + 1)
    await settleOne(store, one, delivered(first(one) + 1, T0 + MIN + 1), T0 + MIN + 1)
    await settleOne(store, other, bounced(first(other), T0 + 2 * MIN), T0 + 2 * MIN)
    await operate(store, one, { kind: 'delete', now: T0 + 3 * MIN, purge: true })
    expect(await reader.traffic(T0)).toEqual({
      total: { accepted: 3, delivered: 1, deferred: 1, bounced: 1, expired: 0, deleted: 1 },
      minutes: [
        { ...NO_TRAFFIC, at: T0, accepted: 2, deferred: 1 },
        { ...NO_TRAFFIC, at: T0 + MIN, accepted: 1, delivered: 1 },
        { ...NO_TRAFFIC, at: T0 + 2 * MIN, bounced: 1 },
        { ...NO_TRAFFIC, at: T0 + 3 * MIN, deleted: 1 },
      ],
    })
    expect((await reader.traffic(T0 + 2 * MIN)).minutes).toHaveLength(2)
    expect(await reader.firstTraffic()).toBe(T0)
  })

  test('the status without a daemon has the sums', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    await settleOne(store, id, delivered(first(id), T0))
    const { balance, lastHour } = await readStatus(
      { reader, clock: { now: () => T0 + MIN, wall: new WallView(() => T0 + MIN) }, schedules: new Map() },
      null,
    )
    expect(balance).toMatchObject({ accepted: 1, delivered: 1 })
    expect(lastHour).toEqual({ ...NO_TRAFFIC, accepted: 1, delivered: 1 })
  })

  test('a settlement that is repeated is counted once', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    for (let n = 0; n < 2; n++) await settleOne(store, id, delivered(first(id), T0))
    expect((await reader.traffic(0)).total).toEqual({ ...NO_TRAFFIC, accepted: 1, delivered: 1 })
  })

  test('a call that fails is not counted, and others of its batch are', async () => {
    const { store, reader } = subject()
    const [good, twin] = [mail(store), mail(store)]
    const clash = { ...twin, message: { ...twin.message, id: good.message.id } }
    await Promise.allSettled([store.enqueue(good), store.enqueue(clash), store.enqueue(mail(store))])
    expect((await reader.traffic(0)).total.accepted).toBe(2)
  })

  test('requeued mail is not accepted again; deleted mail counts as deleted when it is purged', async () => {
    const { store, reader } = subject()
    const id = await queue(store)
    await operate(store, id, { kind: 'requeue', now: T0 + MIN, newId: store.nextId(), expiresAt: T0 + 9 * MIN })
    expect((await reader.traffic(0)).total).toEqual({ ...NO_TRAFFIC, accepted: 1 })
    const trashed = await queue(store)
    await operate(store, trashed, { kind: 'delete', now: T0, purge: false })
    expect(await reader.trashCount()).toEqual({ messages: 1, recipients: 1 })
    expect((await reader.traffic(0)).total.deleted).toBe(0)
    await store.upkeep.prune({ ...NEVER, trashBefore: T0 + 1 })
    expect(await reader.trashCount()).toEqual({ messages: 0, recipients: 0 })
    expect((await reader.traffic(0)).total.deleted).toBe(1)
  })

  test('minutes and hours are bounded, and the sums stay exact', async () => {
    const { store, reader } = subject()
    const id = await queue(store, { leased: true })
    const late = T0 + TRAFFIC_HOURS + 48 * 60 * MIN
    const minutes = Array.from({ length: TRAFFIC_MINUTES }, (_, n) => late + (60 + n) * MIN)
    const times = [T0, T0 + MIN, late - 60 * MIN, late + MIN, late + 2 * MIN, ...minutes]
    await store.settle({
      owner: ownerOf(store),
      message: id,
      recipients: [deferred(first(id), T0)],
      attempts: times.map((at) => attempt(first(id), at)),
    })
    for (let n = 0; n < 2; n++) {
      await store.upkeep.prune(NEVER)
      const kept = await reader.traffic(0)
      expect([kept.total.accepted, kept.total.deferred, kept.minutes.length]).toEqual([1, times.length, TRAFFIC_MINUTES + 2])
      expect(kept.minutes.slice(0, 3).map(({ at, deferred: count }) => [at, count])).toEqual([
        [late - 60 * MIN, 1],
        [late, 2],
        [late + 60 * MIN, 1],
      ])
      expect(await reader.firstTraffic()).toBe(OLDER_MINUTES)
    }
  })
}
