import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeySet } from '../../src/suppression/key-set.ts'

test('it has what was added and not deleted', () => {
  const key = fc.integer({ min: 0, max: 60 }).map((n) => `us.example user${n}@far.example`)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), key), { maxLength: 200 }), (steps) => {
      const [set, model] = [new KeySet(), new Set<string>()]
      for (const [isAdded, one] of steps) {
        if (isAdded) {
          set.add(one)
          model.add(one)
        } else {
          set.delete(one)
          model.delete(one)
        }
      }
      expect(set.size).toBe(model.size)
      for (let n = 0; n <= 60; n++) {
        const one = `us.example user${n}@far.example`
        expect(set.has(one)).toBe(model.has(one))
      }
    }),
    { numRuns: 60 },
  )
})

test('it grows, and has no key by accident', () => {
  const set = new KeySet()
  for (let n = 0; n < 20_000; n++) set.add(`us.example user${n}@far.example`)
  expect(set.size).toBe(20_000)
  for (let n = 0; n < 20_000; n += 2) set.delete(`us.example user${n}@far.example`)
  let wrong = 0
  for (let n = 0; n < 40_000; n++) if (set.has(`us.example user${n}@far.example`) !== (n < 20_000 && n % 2 === 1)) wrong++
  expect(wrong).toBe(0)
})

test('it has at most 15 bytes for a key, and 10 before it grows', () => {
  const set = new KeySet()
  const perKey: number[] = []
  for (let n = 1; n <= 60_000; n++) {
    set.add(`us.example user${n}@far.example`)
    if (n >= 30_000 && n % 500 === 0) perKey.push(set.bytes / n)
  }
  expect(Math.max(...perKey)).toBeLessThan(16)
  expect(Math.min(...perKey)).toBeLessThan(12)
})
