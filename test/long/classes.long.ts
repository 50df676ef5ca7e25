/** 200,000 bulk messages that are due beside fast mail, two per second: at one destination, and spread over 2,000; and a backlog of 20,001 shares. */
import { expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { besideBacklog } from '../support/bulk-backlog.ts'
import { besideBacklogOfDaemon, WEIGHTS } from '../support/daemon-backlog.ts'
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
    // Twenty places of a window, or a hundred slots, each for half a second.
    expect(bulkPerSecond).toBeGreaterThan(0.9 * (destinations === 1 ? 40 : 200))
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
  { subject: 'classes/daemon-one', destinations: 1, after: 'nothing', engine: 'sqlite' },
  { subject: 'classes/daemon-many', destinations: 2_000, after: 'nothing', engine: 'sqlite' },
  { subject: 'classes/daemon-killed', destinations: 1, after: 'kill', engine: 'sqlite' },
  { subject: 'classes/daemon-outage', destinations: 1, after: 'outage', engine: 'sqlite' },
  { subject: 'classes/daemon-postgres', destinations: 1, after: 'kill', engine: 'postgres' },
] as const
const included = daemons.filter(({ subject }) => portion(subject).isIncluded)

test.each(included)('fast mail passes 200,000 bulk messages of three shares at a daemon: $subject', { timeout: 1_800_000 }, async (one) => {
  const { subject: _, ...place } = one
  const { minutes, ...measured } = await besideBacklogOfDaemon({ bulk: BULK, fast: 400, ...place })
  printFigures('fast mail beside a backlog', {
    ...place,
    ...measured,
    'starts of each share by minutes': minutes.map((all) => all.join(' ')),
  })
  expect(measured.p99).toBeLessThan(SECOND)
  expect(measured.bulkPerSecond).toBeGreaterThan(0.75 * (place.destinations === 1 ? 40 : 200))
  expect(minutes.length).toBeGreaterThanOrEqual(3)
  for (const starts of minutes) assertParts(starts)
})

/** Shares have their parts of the starts of a minute, to a tenth. */
function assertParts(starts: readonly number[]): void {
  const [total, weights] = [starts, WEIGHTS].map((all) => all.reduce((sum, one) => sum + one, 0)) as [number, number]
  for (const [n, count] of starts.entries()) {
    const fair = (total * (WEIGHTS[n] ?? 0)) / weights
    expect(Math.abs(count - fair)).toBeLessThan(0.1 * fair)
  }
}

test.runIf(portion('classes/daemon-slow').isIncluded)(
  'fast mail passes 200,000 bulk messages that hold every slot for a minute at a daemon',
  { timeout: 1_800_000 },
  async () => {
    const place = { bulk: BULK, destinations: 2_000, after: 'nothing', engine: 'sqlite', bulkTakes: MINUTE } as const
    const { minutes: _, ...measured } = await besideBacklogOfDaemon({ ...place, fast: 400 })
    printFigures('fast mail beside slow hosts', { ...place, ...measured })
    expect(measured.p99).toBeLessThan(SECOND)
    // 95 slots: the other five are reserved.
    expect(measured.bulkPerSecond).toBeGreaterThan(0.75 * (95 / 60))
  },
)
