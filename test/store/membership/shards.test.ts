import { expect, test } from 'vitest'
import { SHARDS, shardOf } from '../../../src/store/membership/shards.ts'

test('the shard of a destination never changes, because stored mail is found by its shard', () => {
  expect(['far.example', 'ä.example', 'smtp:[mx.example]:25'].map(shardOf)).toEqual([15, 177, 248])
})

test('destinations are spread evenly over the shards', () => {
  const counts = Array.from({ length: SHARDS }, () => 0)
  for (let n = 0; n < 100 * SHARDS; n++) counts[shardOf(`customer-${n}.example`)]! += 1
  expect(Math.min(...counts)).toBeGreaterThan(50)
  expect(Math.max(...counts)).toBeLessThan(150)
})
