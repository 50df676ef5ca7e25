/** The compact tables of fair shares behave as those of the language. */
import { expect, test } from 'vitest'
import { numberOf, NumberTable } from '../../../../src/queue/scheduler/turns/number-table.ts'
import { ShareTags } from '../../../../src/queue/scheduler/turns/share-tags.ts'
import { TagHeap } from '../../../../src/queue/scheduler/turns/tag-heap.ts'
import { mulberry32 } from '../../../../src/system/random.ts'

const SEEDS = [1, 2, 3, 4, 5]

test.each(SEEDS)('a heap returns numbers by their tags, equal ones in their order (seed %i)', (seed) => {
  const random = mulberry32(seed)
  const heap = new TagHeap()
  const kept: (readonly [number, number])[] = []
  for (let step = 1; step < 2_000; step++) {
    if (random() < 0.6) {
      const entry = [Math.floor(random() * 50), step] as const
      heap.push(...entry)
      kept.push(entry)
    } else {
      kept.sort(([a, n], [b, m]) => a - b || n - m)
      const first = kept.shift()
      expect([heap.first === undefined ? Infinity : heap.tag, heap.first]).toEqual([first?.[0] ?? Infinity, first?.[1]])
      heap.pop()
    }
    expect(heap.size).toBe(kept.length)
  }
})

test.each(SEEDS)('a table of numbers answers as a map does (seed %i)', (seed) => {
  const random = mulberry32(seed)
  const table = new NumberTable({ hasValues: true })
  const map = new Map<number, number>()
  for (let step = 0; step < 5_000; step++) {
    const key = 1 + Math.floor(random() * 400) * 131_072
    if (random() < 0.6) {
      table.set(key, step)
      map.set(key, step)
    } else {
      table.delete(key)
      map.delete(key)
    }
    if (step % 700 === 699) {
      table.keep((value) => value % 2 === 0)
      for (const [one, value] of map) if (value % 2 !== 0) map.delete(one)
    }
    expect([table.size, table.get(key), table.has(key)]).toEqual([map.size, map.get(key), map.has(key)])
  }
  for (const [key, value] of map) expect(table.get(key)).toBe(value)
})

test('texts have different numbers', () => {
  const numbers = new Set(Array.from({ length: 20_000 }, (_, n) => numberOf(`tenant${n}.example`)))
  expect(numbers.size).toBe(20_000)
  for (const number of numbers) expect(Number.isSafeInteger(number) && number >= 1).toBe(true)
})

test('a share is charged by its weight, refunded, and begins at the present after a rest', () => {
  const tags = new ShareTags()
  expect([tags.charge('a', 4, 2), tags.charge('a', 1, 1), tags.charge('b', 1, 1)]).toEqual([0, 2, 0])
  tags.refund('a', 1, 1)
  expect(tags.charge('a', 1, 1)).toBe(2)
  tags.started(2)
  expect([tags.charge('b', 1, 1), tags.charge('c', 1, 1), tags.charge('a', 1, 1)]).toEqual([2, 2, 3])
})

test('shares whose charges have passed are forgotten', () => {
  const tags = new ShareTags()
  for (let n = 0; n < 10_000; n++) tags.started(tags.charge(`s${n}`, 1, 1))
  tags.started(5)
  for (let n = 0; n < 10_000; n++) expect(tags.charge(`s${n}`, 1, 1)).toBe(5)
})
