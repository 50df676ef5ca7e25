/** The order of a backlog in the store by shares: read in slices, claimed in turns, made anew after a restart. */
import { expect, test } from 'vitest'
import { Backlog } from '../../../../src/queue/scheduler/turns/share-backlog.ts'
import type { WaitingRecipient } from '../../../../src/store/queue-store.ts'

const SIZE = 50
const weights = (given: Readonly<Record<string, number>> = {}) => ({ weightOf: (share: string) => given[share] ?? 1 })

/** Mail in a store. */
class Store {
  readonly rows: WaitingRecipient[] = []

  add(share: string | null, count: number, dueAt = 1): void {
    for (let n = 0; n < count; n++) this.rows.push({ id: this.rows.length + 1, dueAt: dueAt + n, share })
  }

  shareOf(id: number): string | null {
    return this.rows.find((one) => one.id === id)?.share ?? null
  }

  /** Reads all that is due. Returns the number of slices. */
  read(backlog: Backlog, now: number, shares = weights()): number {
    let slices = 0
    for (; backlog.unreadFrom <= now; slices++) {
      const after = backlog.beginReading()
      const behind = this.rows.filter(({ dueAt, id }) => dueAt > after.dueAt || (dueAt === after.dueAt && id > after.id))
      const rows = behind.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id).slice(0, SIZE)
      backlog.read({ rows, size: SIZE, now }, shares)
    }
    return slices
  }

  /** The shares of the next recipients, which leave the store. */
  claim(backlog: Backlog, limit: number): readonly (string | null)[] {
    const taken = backlog.take(limit)
    const shares = taken.map((id) => this.shareOf(id))
    for (const id of taken)
      this.rows.splice(
        this.rows.findIndex((one) => one.id === id),
        1,
      )
    return shares
  }
}

const countOf = (shares: readonly (string | null)[], share: string | null): number => shares.filter((one) => one === share).length

test('a share with little mail does not wait behind the backlog of another', () => {
  const store = new Store()
  store.add('news', 400)
  store.add('shop', 10, 1_000)
  const backlog = new Backlog()
  expect(store.read(backlog, 2_000)).toBe(9)
  expect(countOf(store.claim(backlog, 20), 'shop')).toBe(10)
  expect(backlog.size).toBe(390)
  expect(backlog.unreadFrom).toBe(Infinity)
})

test('shares have parts by their weights, and each is first in, first out', () => {
  const store = new Store()
  for (const share of ['a', 'b', null]) store.add(share, 100)
  const backlog = new Backlog()
  store.read(backlog, 200, weights({ a: 3 }))
  const first = backlog.take(50)
  expect(
    ['a', 'b', null].map((share) =>
      countOf(
        first.map((id) => store.shareOf(id)),
        share,
      ),
    ),
  ).toEqual([30, 10, 10])
  const ofA = first.filter((id) => store.shareOf(id) === 'a')
  expect(ofA).toEqual(ofA.toSorted((a, b) => a - b))
})

test('mail that becomes due later follows, and mail that is not due yet is no part of the order', () => {
  const store = new Store()
  store.add('news', 100)
  store.add('shop', 3, 500)
  const backlog = new Backlog()
  store.read(backlog, 200)
  expect(backlog.size).toBe(100)
  expect(backlog.unreadFrom).toBe(500)
  expect(countOf(store.claim(backlog, 60), 'news')).toBe(60)
  store.read(backlog, 501)
  expect(backlog.size).toBe(42)
  expect(backlog.unreadFrom).toBe(502)
  expect(countOf(store.claim(backlog, 4), 'shop')).toBe(2)
})

test('mail that comes with an earlier due time is read once, and what is known is not charged again', () => {
  const store = new Store()
  store.add('news', 100, 100)
  const backlog = new Backlog()
  store.read(backlog, 300)
  store.rows.push({ id: 1_000, dueAt: 50, share: 'shop' })
  store.rows.push({ id: 1_001, dueAt: 150, share: 'shop' })
  backlog.expect(50)
  expect(store.read(backlog, 300)).toBe(3)
  expect(backlog.size).toBe(102)
  const next = store.claim(backlog, 4)
  expect(countOf(next, 'shop')).toBe(2)
  expect(countOf(next, 'news')).toBe(2)
})

test('mail that came while the store was read is not lost', () => {
  const store = new Store()
  store.add('news', 10, 100)
  const backlog = new Backlog()
  const after = backlog.beginReading()
  expect(after).toEqual({ dueAt: 0, id: 0 })
  const rows = [...store.rows]
  store.rows.push({ id: 99, dueAt: 20, share: 'shop' })
  backlog.expect(20)
  backlog.read({ rows, size: SIZE, now: 300 }, weights())
  expect(backlog.unreadFrom).toBe(20)
  store.read(backlog, 300)
  expect(backlog.size).toBe(11)
})

test('mail that was claimed and not attempted is first again, and its share does not pay twice', () => {
  const store = new Store()
  for (const share of ['a', 'b']) store.add(share, 50)
  const backlog = new Backlog()
  store.read(backlog, 100)
  const taken = backlog.take(10)
  backlog.giveBack(taken)
  backlog.giveBack(taken)
  expect(backlog.size).toBe(100)
  expect(backlog.take(10).toSorted((a, b) => a - b)).toEqual(taken.toSorted((a, b) => a - b))
  const rest = backlog.take(40).map((id) => store.shareOf(id))
  expect([countOf(rest, 'a'), countOf(rest, 'b')]).toEqual([20, 20])
})

test('after a restart the order is made from the store alone', () => {
  const store = new Store()
  store.add('news', 300)
  store.add('shop', 30, 400)
  const before = new Backlog()
  store.read(before, 1_000)
  store.claim(before, 40)
  const after = new Backlog()
  store.read(after, 1_000)
  const rest = store.claim(after, 20)
  expect(countOf(rest, 'shop')).toBe(10)
})

test('a reading that failed is repeated', () => {
  const store = new Store()
  store.add('news', 10)
  const backlog = new Backlog()
  backlog.beginReading()
  backlog.notRead()
  expect(backlog.unreadFrom).toBe(0)
  store.read(backlog, 100)
  expect(backlog.size).toBe(10)
})
