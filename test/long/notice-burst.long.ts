import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { noticeBurst } from '../support/notice-burst.ts'

const median = (times: readonly number[]): number => times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0

test('50,000 undeliverable messages: notices at a bounded rate, and other mail within 10 % of its usual latency', async () => {
  const quiet = await noticeBurst(0)
  const storm = await noticeBurst(50_000)
  const { latencies, ...figures } = storm
  printFigures('a burst of notices', {
    ...figures,
    'ms for other mail without it, median': median(quiet.latencies),
    'ms with it, median': median(latencies),
    'ms with it, at most': Math.max(...latencies),
  })
  expect(storm.notices).toBe(50_000)
  expect(storm.arrived).toBe(50_000)
  // 500 at once, then 500 a second.
  expect(storm.mostPerSecond).toBeLessThanOrEqual(1_000)
  expect(storm.notices / storm.lasted).toBeLessThanOrEqual(510)
  expect(median(latencies)).toBeLessThanOrEqual(1.1 * median(quiet.latencies))
  expect(Math.max(...latencies)).toBeLessThanOrEqual(1.1 * Math.max(...quiet.latencies))
})
