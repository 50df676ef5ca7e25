import { expect, test } from 'vitest'
import { ratios, rotated, spreadOf, valuesOf, type Turn } from '../../../scripts/bench/statistics.ts'
import { turnOf } from './turn-of.ts'

const turn = (round: number, contestant: string, cpu: number, name = 'kept'): Turn =>
  turnOf({ round, case: name, contestant, cpu, rate: 1_000 / cpu })

test('a spread is the median with the smallest and the largest value', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 })
  expect(spreadOf([10, 1, 2, 3])).toEqual({ median: 2.5, min: 1, max: 10 })
  expect(spreadOf([])).toBeNull()
})

test('ratios compare turns of the same round and case only', () => {
  const tree = [turn(1, 'tree', 1), turn(2, 'tree', 2), turn(1, 'tree', 8, 'new')]
  const base = [turn(2, 'base', 3), turn(1, 'base', 2), turn(3, 'base', 9)]
  expect(ratios(base, tree, 'cpu')).toEqual([1.5, 2])
  expect(ratios(base, tree, 'rate')).toEqual([1000 / 3 / 500, 0.5])
})

test('a turn too short to measure makes no ratio', () => {
  expect(ratios([turn(1, 'base', 3)], [turn(1, 'tree', 0)], 'cpu')).toEqual([])
})

test('turns without a measure make no ratio and no value', () => {
  const [timed, untimed] = [turnOf({ accept50: 3 }), turnOf({ contestant: 'base' })]
  expect(ratios([untimed], [timed], 'accept50')).toEqual([])
  expect(ratios([timed], [untimed], 'accept50')).toEqual([])
  expect(valuesOf([timed, untimed], 'accept50')).toEqual([3])
})

test('another contestant comes first in each round', () => {
  expect([0, 1, 2, 3].map((round) => rotated(['a', 'b', 'c'], round).join(''))).toEqual(['abc', 'bca', 'cab', 'abc'])
  expect(rotated([], 2)).toEqual([])
})
