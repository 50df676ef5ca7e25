import { expect, test } from 'vitest'
import { SyncPace } from '../../../../src/store/sqlite/durability/sync-pace.ts'

/** Syncs that begin as soon as they may, on a disk where a sync takes `duration` beside `others`. Returns the most that ran at once. */
function most(pace: SyncPace, syncs: number, duration: (others: number) => number): number {
  const running: { readonly ends: number; readonly took: number; readonly others: number }[] = []
  let [now, found] = [0, 0]
  for (let begun = 0; begun < syncs;) {
    const wait = pace.waitFor(running.length, now)
    const [next] = running.toSorted((a, b) => a.ends - b.ends)
    if (wait !== null && (next === undefined || now + wait <= next.ends)) {
      now += wait
      pace.begun(now)
      const took = duration(running.length)
      running.push({ ends: now + took, took, others: running.length })
      found = begun > syncs / 2 ? Math.max(found, running.length) : found
      begun++
    } else if (next !== undefined) {
      now = next.ends
      running.splice(running.indexOf(next), 1)
      pace.ended(next.took, next.others)
    }
  }
  return found
}

test('the thread waits for the syncs of a fast disk, and not for those of a slow one', () => {
  const pace = new SyncPace(4)
  expect(pace.waits).toBe(true)
  for (let n = 0; n < 10; n++) pace.ended(0.2, 0)
  expect(pace.waits).toBe(true)
  for (let n = 0; n < 3; n++) pace.ended(10, 0)
  expect(pace.waits).toBe(false)
  for (let n = 0; n < 20; n++) pace.ended(0.2, 0)
  expect(pace.waits).toBe(true)
})

test('as many syncs run at once as the disk makes at the same time, up to the limit', () => {
  expect(most(new SyncPace(4), 400, () => 10)).toBe(4)
  expect(most(new SyncPace(2), 400, () => 10)).toBe(2)
})

test('on a disk that makes one sync after the other, no more than two wait for each other', () => {
  expect(most(new SyncPace(4), 400, (others) => 10 * (1 + others))).toBeLessThanOrEqual(2)
})

test('overlapping syncs begin evenly', () => {
  const pace = new SyncPace(4)
  for (let n = 0; n < 40; n++) pace.ended(100, 0)
  for (let n = 0; n < 4; n++) pace.ended(100, 1)
  pace.begun(1_000)
  expect(pace.waitFor(1, 1_000)).toBeCloseTo(25, 0)
  expect(pace.waitFor(0, 1_000)).toBe(0)
  expect(pace.waitFor(4, 1_100)).toBe(null)
})
