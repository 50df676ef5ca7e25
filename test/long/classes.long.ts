/** 200,000 bulk messages that are due beside fast mail, two per second: at one destination, and spread over 2,000; and a backlog of 20,001 shares. */
import { expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { besideBacklog } from '../support/bulk-backlog.ts'
import { besideBacklogOfDaemon } from '../support/daemon-backlog.ts'
import { printFigures } from '../support/figures.ts'
import { startsOfShares, weightOf } from '../support/many-shares.ts'
import { portion } from './portion.ts'

const BULK = 200_000

test.runIf(portion('classes/model').isIncluded).each([1, 2_000])(
  'fast mail passes 200,000 bulk messages at %i destinations within a second',
  { timeout: 1_800_000 },
  async (destinations) => {
    const { p99, bulkPerSecond } = await besideBacklog({ bulk: BULK, destinations, fast: 600 })
    console.log(`${destinations} destinations: p99 ${p99} ms, ${bulkPerSecond} bulk messages per second`)
    expect(p99).toBeLessThan(SECOND)
    expect(bulkPerSecond).toBeGreaterThan(0.9 * 40)
  },
)

test.runIf(portion('classes/keys').isIncluded)(
  '20,001 shares at one destination have their parts by weights of 3, 1 and 1',
  { timeout: 1_800_000 },
  async () => {
    const starts = await startsOfShares(20_001)
    const total = starts.reduce((sum, count) => sum + count, 0)
    const parts = [0, 1, 2].map((group) => starts.filter((_, share) => share % 3 === group).reduce((sum, count) => sum + count, 0) / total)
    const apart = Math.max(...starts.map((count, share) => Math.abs(count - weightOf(share))))
    printFigures('shares at one destination', { shares: starts.length, starts: total, 'recipients apart at most': apart, parts })
    for (const [group, fair] of [0.6, 0.2, 0.2].entries()) expect(Math.abs((parts[group] ?? 0) - fair)).toBeLessThan(0.01)
    // The first claim is by due times.
    expect(apart).toBeLessThanOrEqual(2)
  },
)

const daemons = [
  { subject: 'classes/daemon-one', destinations: 1, killed: false, engine: 'sqlite' },
  { subject: 'classes/daemon-many', destinations: 2_000, killed: false, engine: 'sqlite' },
  { subject: 'classes/daemon-killed', destinations: 1, killed: true, engine: 'sqlite' },
  { subject: 'classes/daemon-postgres', destinations: 1, killed: true, engine: 'postgres' },
] as const
const included = daemons.filter(({ subject }) => portion(subject).isIncluded)

test.each(included)('fast mail passes 200,000 bulk messages of five shares at a daemon: $subject', { timeout: 1_800_000 }, async (one) => {
  const { subject: _, ...place } = one
  const { destinations } = place
  const { shares, ...measured } = await besideBacklogOfDaemon({ bulk: BULK, fast: 400, ...place })
  printFigures('fast mail beside a backlog', {
    ...place,
    killed: place.killed ? 'yes' : 'no',
    ...measured,
    'starts of each share': shares.join(' '),
  })
  expect(measured.p99).toBeLessThan(SECOND)
  expect(measured.bulkPerSecond).toBeGreaterThan(0.75 * (destinations === 1 ? 40 : 200))
  const mean = shares.reduce((sum, count) => sum + count, 0) / shares.length
  for (const count of shares) expect(Math.abs(count - mean)).toBeLessThan(0.1 * mean)
})
