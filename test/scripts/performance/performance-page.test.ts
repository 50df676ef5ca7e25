import { expect, test } from 'vitest'
import { CASES } from '../../../scripts/bench/cases.ts'
import type { Result } from '../../../scripts/bench/relays.ts'
import { UsageError } from '../../../scripts/bench/options.ts'
import { summarize } from '../../../scripts/bench/report.ts'
import type { Turn } from '../../../scripts/bench/statistics.ts'
import { goalsOf } from '../../../scripts/performance/goals.ts'
import { performancePage } from '../../../scripts/performance/performance-page.ts'
import { report } from '../../../scripts/performance/publish-files.ts'
import { publish, type Published } from '../../../scripts/performance/published.ts'
import { turnOf } from '../bench/turn-of.ts'

const NOTHING: Published = { relays: [], parts: [] }
const machine = { node: 'v24.1.0', processor: 'a processor', cores: 2, folder: '/tmp/x', inMemory: null }

/** Three rounds of deferd, without and with a store, and Postfix. */
const TURNS: readonly Turn[] = [1, 2, 3].flatMap((round) => [
  turnOf({ round, cpu: 0.25 + round / 100, rate: 4_000 + round, accept50: 2, accept99: 10 + round, rss: 180 }),
  turnOf({ round, contestant: 'without-store', cpu: 0.2, rate: 5_000 }),
  turnOf({ round, contestant: 'postfix', cpu: 2 + round / 10, rate: 500 }),
])

/** The same rounds with another client. */
const SMTP_SOURCE_TURNS: readonly Turn[] = [1, 2, 3].flatMap((round) => [
  turnOf({ round, case: 'smtp-source-kept', rate: 4_500 + round }),
  turnOf({ round, case: 'smtp-source-kept', contestant: 'postfix', rate: 500 }),
])

const result = (turns: readonly Turn[]): Result => ({
  began: '2026-11-23T07:00:00.000Z',
  machine,
  others: 0.031_234_5,
  rounds: 3,
  messages: 4_000,
  drained: 100_000,
  warmUp: 2_000,
  contestants: [
    { name: 'tree', about: 'abc1234' },
    { name: 'without-store', about: 'the working tree' },
    { name: 'postfix', about: 'Postfix 3.7.11' },
  ],
  omitted: [{ name: 'without-store', case: '5-MB', reason: 'it takes messages of at most 256 kB' }],
  cases: CASES.filter(({ name }) => name === 'kept' || name === 'store'),
  summaries: summarize(turns),
  turns,
})

const figures = (median: number) => ({
  subject: 'page',
  commit: 'abc1234',
  began: '2026-11-22T07:00:00.000Z',
  machine,
  rounds: 3,
  size: 0.5,
  parts: [
    { part: 'open', others: 0, figures: [{ name: 'RSS', unit: 'MB', target: { most: 30 }, values: [median, 40, 20], reached: true }] },
  ],
})

const SOAK = {
  began: '2026-11-21T07:00:00.000Z',
  machine,
  options: { minutes: 75 },
  others: 0,
  figures: [{ name: 'lost', unit: '', target: null, values: [0] }],
  minutes: [],
}

const published = (...contents: readonly unknown[]): Published =>
  publish(
    NOTHING,
    contents.map((content) => ({ name: 'a file', content })),
  )

test('goals compare turns of the same round, where both were measured', () => {
  const goals = goalsOf([...TURNS, ...SMTP_SOURCE_TURNS])
  expect(goals.map(({ name }) => name)).toEqual([
    'CPU per message ÷ Postfix, kept',
    'delivered/s ÷ Postfix, smtp-source-kept',
    'delivered/s ÷ without a store, kept',
    'CPU per message of the store, kept',
  ])
  expect(goals[0]?.values[1]).toBeCloseTo(0.27 / 2.2)
  expect(goals[3]?.values[2]).toBeCloseTo(0.08)
})

test('a result is reduced to medians with their spread', () => {
  const [relays] = published(result([...TURNS, ...SMTP_SOURCE_TURNS])).relays
  expect(relays?.summaries[0]).toMatchObject({
    case: 'kept',
    contestant: 'tree',
    cpu: { median: 0.27, min: 0.26, max: 0.28 },
    loop99: null,
  })
  expect(relays?.goals[1]?.values).toEqual([9.002, 9.004, 9.006])
  expect(relays).not.toHaveProperty('turns')
  expect(relays?.machine).not.toHaveProperty('folder')
})

test('results take the place of those of the same part', () => {
  const before = published(result(TURNS), figures(10), SOAK)
  const after = publish(before, [{ name: 'b', content: figures(35) }])
  expect(after.relays).toEqual(before.relays)
  expect(after.parts.map(({ subject, part }) => [subject, part])).toEqual([
    ['page', 'open'],
    ['soak', '75 minutes'],
  ])
  expect(after.parts[0]?.figures[0]?.values).toEqual([20, 35, 40])
  expect(publish(after, [{ name: 'c', content: result(TURNS.slice(0, 3)) }]).relays).toHaveLength(1)
})

test('a file of something else is refused', () => {
  expect(() => publish(NOTHING, [{ name: 'x.json', content: { figures: [] } }])).toThrow(
    'x.json is no result of npm run bench or npm run soak',
  )
  expect(() => publish(NOTHING, [{ name: 'x.json', content: null }])).toThrow('x.json is no result')
})

test('the page has a table for each measure beside other relays, then the subjects, without targets', () => {
  const page = performancePage(published(result(TURNS), figures(10), SOAK))
  expect(page.split('\n').filter((line) => line.startsWith('#'))).toEqual(['# Performance', '## Beside Postfix', '## page', '## soak'])
  expect(page).toContain(
    '3 rounds of 4,000 messages or a part of them, 2026-11-23, 2 × a processor, Node 24.1.0; other programs took 3 % of',
  )
  expect(page).toContain('| case | deferd | Postfix |\n| --- | --- | --- |\n| `kept` | 0.270 (0.260–0.280) | 2.200')
  expect(page).toContain('| `kept` | 0.12 (0.12–0.12) | 8.00 (8.00–8.01) |')
  expect(page).toContain('| `kept` | 2.0, 12.0 (11.0–13.0) |  |')
  expect(page).toContain('`npm run bench -- page --only open`, 3 rounds at 0.5 of the full size, commit abc1234, 2026-11-22, 2 ×')
  expect(page).toContain('`npm run soak`, 75 minutes, 2026-11-21, 2 ×')
  expect(page).toMatch(/\| RSS, MB \| 20 \(10–40\) +\|$/m)
  expect(page).not.toMatch(/without a store|target|reached/)
  // A measure without values has no table.
  expect(page).not.toContain('event loop')
})

test.each([
  [[], 'report takes files of results; --help explains it'],
  [['--json'], 'report takes files of results; --help explains it'],
  [['/nowhere.json'], /^\/nowhere\.json cannot be read as JSON: ENOENT/],
  [[import.meta.filename], /performance-page\.test\.ts cannot be read as JSON/],
])('report refuses %j', (args, sentence) => {
  const refused = (): void => report(args, () => undefined)
  expect(refused).toThrow(UsageError)
  expect(refused).toThrow(sentence)
})

test('without results the page has its introduction only', () => {
  expect(performancePage(NOTHING)).toMatch(/^# Performance\n[^#]*\n$/)
})
