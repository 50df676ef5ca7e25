/** Contract of the store: counts by destination, provider, domain of the sender, node, cause and delay; samples of the backlog; marks. */
import { expect, test } from 'vitest'
import { delayBucket } from '../../src/store/decisions/series-notes.ts'
import type { Backlog } from '../../src/store/records/backlog.ts'
import { choicesAt, NO_COUNTS, SERIES_HOURS, SERIES_MINUTES, type SeriesDimension } from '../../src/store/records/series.ts'
import { bounced, claim, deferred, delivered, first, MIN, queue, settleOne, T0, type Subject } from './mail.ts'
import { operate } from '../support/operate.ts'

const HOUR = 60 * MIN
const DAY = 24 * HOUR

export function series(subject: () => Subject): void {
  const read = (dimension: SeriesDimension, step = HOUR, name: string | null = null) =>
    subject().store.records.series.of({ dimension, since: T0, until: T0 + 2 * DAY, step, name })
  const folded = async (): Promise<void> => {
    const { store } = subject()
    while (await store.records.series.fold());
  }

  const choose = async (now: number): Promise<void> => {
    for (const choice of choicesAt(now, 1)) await subject().store.records.series.choose(choice)
  }

  test('recipients by destination, domain of the sender, cause and delay, before and after the fold', async () => {
    const { store } = subject()
    const two = [{ address: 'ann@far.example' }, { address: 'bob@far.example' }]
    const one = await queue(store, { leased: true, to: two })
    const other = await queue(store, { leased: true, sender: '', at: T0 + HOUR, to: [{ address: 'eve@near.example' }] })
    await settleOne(store, one, deferred(first(one), T0 + 5 * MIN), T0 + MIN)
    await settleOne(store, one, delivered(first(one) + 1, T0 + MIN), T0 + MIN)
    await settleOne(store, other, bounced(first(other), T0 + HOUR), T0 + HOUR)
    for (let n = 0; n < 2; n++) {
      expect(await read('destination')).toEqual([
        { ...NO_COUNTS, slot: 0, name: 'far.example', accepted: 2, delivered: 1, deferred: 1 },
        { ...NO_COUNTS, slot: 1, name: 'near.example', accepted: 1, bounced: 1 },
      ])
      expect(await read('sender_domain', DAY)).toEqual([
        { ...NO_COUNTS, slot: 0, name: '<>', accepted: 1, bounced: 1 },
        { ...NO_COUNTS, slot: 0, name: 'us.example', accepted: 2, delivered: 1, deferred: 1 },
      ])
      expect(await read('cause', MIN)).toEqual([{ ...NO_COUNTS, slot: 1, name: '450 4.2.1', deferred: 1 }])
      expect(await read('delay', MIN)).toEqual([{ ...NO_COUNTS, slot: 1, name: delayBucket(10), delivered: 1 }])
      expect((await read('destination', DAY, 'near.example')).map(({ accepted }) => accepted)).toEqual([1])
      await folded()
    }
    expect(await store.records.series.fold()).toBe(false)
  })

  test('claimed mail is counted by its destination, and a settlement that is repeated once', async () => {
    const { store } = subject()
    const id = await queue(store)
    await claim(store, T0)
    for (let n = 0; n < 2; n++) await settleOne(store, id, delivered(first(id), T0))
    await folded()
    expect(await read('destination')).toEqual([{ ...NO_COUNTS, slot: 0, name: 'far.example', accepted: 1, delivered: 1 }])
  })

  test('deleted mail is counted in the traffic alone', async () => {
    const { store, reader } = subject()
    await operate(store, await queue(store), { kind: 'delete', now: T0, purge: true })
    expect((await reader.traffic(0)).total.deleted).toBe(1)
    expect(await read('destination')).toEqual([{ ...NO_COUNTS, slot: 0, name: 'far.example', accepted: 1 }])
  })

  test('providers are counted by the destinations that belong to them at the fold', async () => {
    const { store } = subject()
    await store.joinProvider('far.example', 'big')
    await queue(store)
    await queue(store, { to: [{ address: 'bob@near.example' }] })
    const counted = [{ ...NO_COUNTS, slot: 0, name: 'big', accepted: 1 }]
    expect(await read('provider')).toEqual(counted)
    await folded()
    await store.joinProvider('far.example', null)
    expect(await read('provider')).toEqual(counted)
  })

  test('the names with the most deferred recipients of a day are kept, and the sums stay exact', async () => {
    const { store } = subject()
    for (let n = 0; n < 54; n++) {
      const id = await queue(store, { leased: true, at: T0 + (n % 3) * HOUR, to: [{ address: `a@d${n}.example` }] })
      if (n >= 2) await settleOne(store, id, deferred(first(id), T0), T0 + (n % 3) * HOUR)
    }
    await folded()
    await choose(T0 + 2 * HOUR)
    expect(await read('destination', DAY)).toHaveLength(54)
    await choose(T0 + DAY)
    const kept = await read('destination', DAY)
    expect(kept).toHaveLength(51)
    expect(kept[0]).toEqual({ ...NO_COUNTS, slot: 0, name: '', accepted: 4, deferred: 2 })
    expect(kept.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(54)
    await choose(T0 + DAY)
    expect(await read('destination', DAY)).toEqual(kept)
  })

  test('minutes become hours, and the oldest hours are deleted', async () => {
    const { store } = subject()
    for (const at of [T0 + MIN, T0 + 5 * MIN, T0 + HOUR]) {
      const id = await queue(store, { leased: true, at })
      await settleOne(store, id, deferred(first(id), at), at)
    }
    await folded()
    const slots = async () => (await read('cause', MIN)).map(({ slot, deferred: count }) => [slot, count])
    const now = T0 + SERIES_MINUTES + 30 * MIN
    await store.records.series.prune(now)
    expect(await slots()).toEqual([
      [0, 2],
      [60, 1],
    ])
    await store.records.series.prune(T0 + HOUR + SERIES_HOURS)
    expect(await slots()).toEqual([[60, 1]])
    expect((await read('destination')).map(({ slot }) => slot)).toEqual([1])
  })

  test('one sample of the backlog in a minute; after a week the largest of each hour', async () => {
    const { backlogs } = subject().store.records
    const sample = (at: number, count: number): Backlog => ({
      at,
      incoming: 0,
      active: 1,
      deferred: count,
      hold: 10 - count,
      scheduled: 0,
      oldest: MIN,
    })
    expect(await backlogs.add(sample(T0, 1))).toBe(true)
    expect(await backlogs.add(sample(T0, 9))).toBe(false)
    await backlogs.add(sample(T0 + MIN, 4))
    await backlogs.add(sample(T0 + HOUR + MIN, 2))
    expect(await backlogs.of(T0, T0 + HOUR)).toEqual([sample(T0, 1), sample(T0 + MIN, 4)])
    for (let n = 0; n < 2; n++) {
      await backlogs.prune(T0 + HOUR + SERIES_MINUTES)
      expect(await backlogs.of(0, T0 + DAY)).toEqual([{ ...sample(T0, 4), hold: 9 }, sample(T0 + HOUR + MIN, 2)])
    }
    await backlogs.prune(T0 + HOUR + SERIES_HOURS)
    expect(await backlogs.of(0, T0 + DAY)).toHaveLength(1)
  })

  test('marks of a time, in order', async () => {
    const { marks } = subject().store.records
    const [start, suspension] = [
      { at: T0, node: 'mx1', kind: 'restart', text: '0.9.0' },
      { at: T0 + MIN, node: 'mx1', kind: 'suspended', text: 'far.example' },
    ] as const
    for (const one of [suspension, start, start]) await marks.add(one)
    expect(await marks.of(T0, T0 + HOUR)).toEqual([start, suspension])
    await marks.prune(T0 + MIN + SERIES_HOURS)
    expect(await marks.of(0, T0 + HOUR)).toEqual([suspension])
  })
}
