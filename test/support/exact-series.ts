import { expect } from 'vitest'
import { NO_COUNTS, type SeriesDimension } from '../../src/store/records/series.ts'
import type { CountedSeries } from './killed-series.ts'

/** Expects that the series have the counts of the traffic, and these those of the queue. */
export function expectExact({ acknowledged, traffic, left, sums }: CountedSeries, whole: readonly SeriesDimension[]): void {
  for (const dimension of whole) expect([dimension, sums[dimension]]).toEqual([dimension, traffic])
  expect(sums.cause).toEqual({ ...NO_COUNTS, deferred: traffic.deferred })
  expect(sums.delay).toEqual({ ...NO_COUNTS, delivered: traffic.delivered })
  expect(traffic.accepted).toBe(traffic.delivered + traffic.bounced + traffic.expired + left)
  expect(traffic.accepted).toBeGreaterThanOrEqual(acknowledged)
  expect(traffic.deferred).toBeGreaterThan(0)
}
