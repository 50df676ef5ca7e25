import { expect, test } from 'vitest'
import { DROPPED, sliceToDrop } from '../../src/store/returned-mail.ts'

const MIB = 2 ** 20
const rows = (count: number, size: number) => Array.from({ length: count }, (_, until) => ({ until, size }))
const slice = (count: number, size: number, limits: { readonly until: number; readonly bytes: number }) => {
  const { dropped, ...rest } = sliceToDrop(rows(count, size), count * size, limits)
  return { dropped: dropped.length, ...rest }
}

test('a call deletes contents up to a number and up to a size, at least one', () => {
  const all = { until: Infinity, bytes: 0 }
  expect(slice(DROPPED, 1, all)).toEqual({ dropped: DROPPED, bytes: 0, more: true })
  expect(slice(20, 10 * MIB, all)).toEqual({ dropped: 4, bytes: 160 * MIB, more: true })
  expect(slice(2, 100 * MIB, all)).toEqual({ dropped: 1, bytes: 100 * MIB, more: true })
  expect(slice(3, 1, all)).toEqual({ dropped: 3, bytes: 0, more: false })
})

test('a call ends at the limits', () => {
  expect(slice(20, 1, { until: 4, bytes: Infinity })).toEqual({ dropped: 5, bytes: 15, more: false })
  expect(slice(20, 1, { until: -1, bytes: 18 })).toEqual({ dropped: 2, bytes: 18, more: false })
})
