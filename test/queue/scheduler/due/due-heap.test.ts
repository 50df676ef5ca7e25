import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DueHeap } from '../../../../src/queue/scheduler/due/due-heap.ts'

/** Removes and returns all names, earliest first. */
function drained(heap: DueHeap): readonly string[] {
  const names: string[] = []
  for (let first = heap.first(); first !== undefined; first = heap.first()) {
    names.push(first.name)
    heap.set(first.name, null)
  }
  return names
}

test('an empty heap has no first entry', () => {
  const heap = new DueHeap()
  heap.set('a', null)
  expect([heap.first(), heap.size]).toEqual([undefined, 0])
})

test('the earliest entry is first, ties in the order of insertion', () => {
  const heap = new DueHeap()
  for (const [name, at] of [
    ['c', 2],
    ['a', 1],
    ['d', 2],
    ['b', 1],
  ] as const)
    heap.set(name, at)
  expect(heap.first()).toMatchObject({ name: 'a', at: 1 })
  expect(drained(heap)).toEqual(['a', 'b', 'c', 'd'])
})

test('an entry can be moved to a new time, and keeps its place among ties', () => {
  const heap = new DueHeap()
  for (const name of ['a', 'b', 'c']) heap.set(name, 5)
  heap.set('a', 9)
  heap.set('c', 1)
  heap.set('a', 5)
  expect([heap.size, drained(heap)]).toEqual([3, ['c', 'a', 'b']])
})

test('any sequence of changes ends in the sorted order', () => {
  const change = fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), at: fc.option(fc.nat(5)) })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const heap = new DueHeap()
      const times = new Map<string, { readonly at: number; readonly order: number }>()
      changes.forEach(({ name, at }, n) => {
        heap.set(name, at)
        if (at === null) times.delete(name)
        else times.set(name, { at, order: times.get(name)?.order ?? n })
      })
      const sorted = [...times].toSorted(([, a], [, b]) => a.at - b.at || a.order - b.order).map(([name]) => name)
      expect([heap.size, drained(heap)]).toEqual([sorted.length, sorted])
    }),
  )
})
