import { expect, test } from 'vitest'
import { formatFigures, isReached, percentile, type Figure } from '../../../../scripts/bench/figures/figure.ts'

const figure = (values: readonly number[], target: Figure['target'] = null): Figure => ({ name: 'start', unit: 'ms', target, values })

test('a target is a limit on the median', () => {
  expect(isReached(figure([1, 2, 9], { most: 2 }))).toBe(true)
  expect(isReached(figure([1, 3, 9], { most: 2 }))).toBe(false)
  expect(isReached(figure([1, 3, 9], { least: 3 }))).toBe(true)
  expect(isReached(figure([1, 3, 9], { least: 4 }))).toBe(false)
})

test('a target on each value is a limit on the worst one', () => {
  expect(isReached(figure([1, 2, 9], { most: 9, each: true }))).toBe(true)
  expect(isReached(figure([1, 2, 9], { most: 8, each: true }))).toBe(false)
  expect(isReached(figure([1, 2, 9], { least: 2, each: true }))).toBe(false)
})

test('without a target, or without values, nothing is reached or missed', () => {
  expect(isReached(figure([1]))).toBeNull()
  expect(isReached(figure([], { most: 1 }))).toBeNull()
})

test('a value that is no number misses its target', () => {
  expect(isReached(figure([Number.NaN], { most: 1 }))).toBe(false)
})

test('percentiles are values, by the nearest rank', () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n)
  expect([0, 0.5, 0.99, 1].map((part) => percentile(hundred, part))).toEqual([1, 50, 99, 100])
  expect(percentile([7], 0.99)).toBe(7)
  expect(percentile([], 0.5)).toBe(0)
})

test('the table shows the median, the range, the target and whether it is reached', () => {
  const figures: Figure[] = [
    figure([1_234.4, 900, 2_000], { most: 1_000 }),
    { name: 'ratio', unit: '', target: { least: 0.8 }, values: [0.851, 0.8, 1] },
    { name: 'lost', unit: '', target: { most: 0, each: true }, values: [0] },
    { name: 'rate', unit: 'messages/s', target: null, values: [12.34, 12.36] },
    { name: 'none', unit: 's', target: null, values: [] },
  ]
  expect(formatFigures(figures)).toBe(`| figure           | median (smallest–largest) | target   | reached |
| ---------------- | ------------------------- | -------- | ------- |
| start, ms        | 1,234 (900–2,000)         | ≤ 1,000  | NO      |
| ratio            | 0.85 (0.80–1)             | ≥ 0.80   | yes     |
| lost             | 0                         | ≤ 0 each | yes     |
| rate, messages/s | 12.4 (12.3–12.4)          |          |         |
| none, s          | -                         |          |         |`)
})
