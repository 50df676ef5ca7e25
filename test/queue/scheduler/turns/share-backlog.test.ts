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

  /** The shares of the next recipients that are still there, which leave the store. */
  claim(backlog: Backlog, limit: number, now = 0): readonly (string | null)[] {
    const taken = backlog.take(limit)
    const there = taken.filter((id) => this.rows.some((one) => one.id === id))
    const shares = there.map((id) => this.shareOf(id))
    for (const id of there) this.remove((one) => one.id === id)
    backlog.claimed({ claimed: there.length, missed: taken.length - there.length }, now)
    return shares
  }

  remove(isRemoved: (one: WaitingRecipient) => boolean): void {
    this.rows.splice(0, this.rows.length, ...this.rows.filter((one) => !isRemoved(one)))
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

test('mail that comes back with an earlier due time is before the mail of its share that is due later, and passes no other share', () => {
  const store = new Store()
  for (const share of ['a', 'b']) store.add(share, 300, 100)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  store.claim(backlog, 40)
  for (let n = 0; n < 20; n++) store.rows.push({ id: 1_000 + n, dueAt: 50, share: 'a' })
  backlog.expect(50)
  store.read(backlog, 1_000)
  expect(backlog.size).toBe(580)
  const next = backlog.take(40)
  expect(next.filter((id) => id >= 1_000).length).toBe(20)
  expect(next.filter((id) => store.shareOf(id) === 'b').length).toBe(20)
})

test('mail that comes a little late, again and again, costs no reading of all the others', () => {
  const store = new Store()
  for (const share of ['a', 'b']) store.add(share, 300, 100)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  for (let n = 0; n < 20; n++) {
    // Two recipients of its share are before it.
    store.rows.push({ id: 1_000 + 2 * n, dueAt: 400 + n, share: 'a' }, { id: 1_001 + 2 * n, dueAt: 400 + n, share: 'a' })
    backlog.expect(400 + n)
    store.read(backlog, 1_000)
    store.rows.push({ id: 2_000 + n, dueAt: 399.5 + n, share: 'a' })
    backlog.expect(399.5 + n)
    expect(store.read(backlog, 1_000)).toBe(1)
  }
  expect(backlog.size).toBe(660)
})

test('the order is not made anew while shares wait for the turn that others have had', () => {
  const store = new Store()
  const shares = Array.from({ length: 30 }, (_, n) => `s${n}`)
  for (const share of shares) store.add(share, 10, 100)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  const begun: (string | null)[] = []
  for (let n = 0; n < 5; n++) {
    // Nine recipients of its share or more are before it.
    store.rows.push({ id: 1_000 + n, dueAt: 50, share: 's0' })
    backlog.expect(50)
    const now = 2_000 + 100 * n
    expect(store.read(backlog, now) > 7).toBe(n === 0)
    begun.push(...store.claim(backlog, 6, now))
  }
  expect(new Set(begun).size).toBe(30)
})

test('the order is made anew at most once in a tenth of a millisecond for each of its recipients', () => {
  const store = new Store()
  store.add('a', 300, 100)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  const slicesAfter = (id: number, now: number): number => {
    store.rows.push({ id, dueAt: 50, share: 'a' })
    backlog.expect(50)
    return store.read(backlog, now)
  }
  // Seven slices up to the end, and again.
  expect(slicesAfter(1_000, 1_000)).toBe(14)
  expect(slicesAfter(1_001, 1_029)).toBe(7)
  expect(slicesAfter(1_002, 1_031)).toBe(14)
  expect(backlog.take(3).toSorted((a, b) => a - b)).toEqual([1_000, 1_001, 1_002])
})

test('a share most of whose mail was held or deleted has its part with the rest', () => {
  const store = new Store()
  for (const share of ['a', 'b']) store.add(share, 400)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  store.remove(({ id }) => id <= 300)
  store.claim(backlog, 20, 1_000)
  store.read(backlog, 1_000)
  expect(backlog.size).toBe(490)
  const next = store.claim(backlog, 40, 1_000)
  expect([countOf(next, 'a'), countOf(next, 'b')]).toEqual([20, 20])
})

test('an order none of whose recipients can be claimed is not made anew', () => {
  const store = new Store()
  store.add('a', 300)
  const backlog = new Backlog()
  store.read(backlog, 1_000)
  for (let n = 0; n < 30; n++) backlog.claimed({ claimed: 0, missed: backlog.take(10).length }, 1_000 + n)
  expect(backlog.size).toBe(0)
  expect(backlog.unreadFrom).toBe(Infinity)
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

/** Reads mail of many shares, one after the other, `of(share)` recipients each. The number of a recipient's share is its id by `most`. */
function backlogOf(keys: number, of: (share: number) => number, shares = weights()): Backlog {
  const backlog = new Backlog()
  const rows: WaitingRecipient[] = []
  for (let round = 0, left = true; left; round++) {
    left = false
    for (let key = 0; key < keys; key++) {
      if (round >= of(key)) continue
      left = true
      rows.push({ id: 1 + key + round * keys, dueAt: 1, share: `tenant${key}.example` })
    }
  }
  for (let from = 0; from < rows.length; from += 500) {
    backlog.beginReading()
    backlog.read({ rows: rows.slice(from, from + 500), size: 500, now: 2 }, shares)
  }
  return backlog
}

test('20,001 shares at one destination have their parts by weights of 3, 1 and 1: none is ahead of another by more than a recipient', () => {
  const KEYS = 20_001
  const weightOf = (key: number): number => (key % 3 === 0 ? 3 : 1)
  const backlog = backlogOf(KEYS, (key) => 2 * weightOf(key), { weightOf: (share) => weightOf(Number(/\d+/.exec(share)?.[0])) })
  const starts = new Uint8Array(KEYS)
  // In each of two rounds a key has as many as its weight: 33,335.
  for (let taken = 0; taken < 66_670; taken += 100) {
    for (const id of backlog.take(100)) starts[(id - 1) % KEYS]!++
    if (taken % 7_000 !== 0) continue
    const bySize = [1, 3].map((weight) => Array.from(starts).filter((_, key) => weightOf(key) === weight))
    const [[least1, most1], [least3, most3]] = bySize.map((counts) => [Math.min(...counts), Math.max(...counts)]) as [
      [number, number],
      [number, number],
    ]
    expect(most1 - least1).toBeLessThanOrEqual(1)
    expect(most3 - least3).toBeLessThanOrEqual(1)
    expect(Math.abs(most3 / 3 - least1)).toBeLessThanOrEqual(1 + 1 / 3)
    expect(Math.abs(most1 - least3 / 3)).toBeLessThanOrEqual(1 + 1 / 3)
  }
  expect(starts.every((count, key) => count === 2 * weightOf(key))).toBe(true)
})

test.each([
  ['a share with one recipient', 50, 20_000, 1],
  ['each recipient of a share with many', 30, 10, 6_000],
] as const)('%s costs at most %i bytes', (_, most, keys, each) => {
  for (const part of [1, 1.1, 1.2, 1.3]) {
    const size = Math.floor(keys * part)
    expect(backlogOf(size, () => each).bytes / (size * each)).toBeLessThan(most)
  }
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
