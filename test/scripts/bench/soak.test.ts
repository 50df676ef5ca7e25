import { expect, test } from 'vitest'
import { UsageError } from '../../../scripts/bench/options.ts'
import { isReached } from '../../../scripts/bench/figures/figure.ts'
import { judgeSoak, soakHead, soakLine, type Period, type Soak } from '../../../scripts/bench/soak/soak-figures.ts'
import { parseSoakOptions, SOAK_USAGE } from '../../../scripts/bench/soak/soak-options.ts'
import { readScrape } from '../../../scripts/bench/soak/soak-scrape.ts'

test('a soak takes eight hours unless it is told otherwise', () => {
  expect(parseSoakOptions([])).toEqual({ minutes: 480, rate: 400, failures: 30, json: 'soak.json' })
  const args = ['--minutes', '75', '--rate=200', '--failures', '0', '--json', 'a.json']
  expect(parseSoakOptions(args)).toEqual({ minutes: 75, rate: 200, failures: 0, json: 'a.json' })
  expect(parseSoakOptions(['--help'])).toBe('help')
  for (const name of ['--minutes', '--rate', '--failures', '--json']) expect(SOAK_USAGE).toContain(`  ${name} `)
})

test.each([
  [['--minutes', '0'], '--minutes takes a number from 0.1 to 100000, not "0"'],
  [['--failures', '91'], '--failures takes a whole number from 0 to 90, not "91"'],
  [['--hours', '8'], "Unknown option '--hours'; --help lists the options"],
])('%j is refused in one sentence', (args, sentence) => {
  expect(() => parseSoakOptions(args)).toThrow(new UsageError(sentence))
})

/** Nine minutes that reach all targets: a third of 200 MB, one of 210 MB and one of 214 MB. */
const STEADY: readonly Period[] = Array.from({ length: 9 }, (_, n) => ({
  at: 60 * (n + 1),
  seconds: [200, 210, 214].slice(Math.floor(n / 3), Math.floor(n / 3) + 1).map((resident) => ({ resident, log: 10 })),
  delay: 12,
  heap: 60,
  queued: 1_000,
  accepted: 24_000 * (n + 1),
  delivered: 24_000 * (n + 1) - 1_000,
  deferred: 10_000 * (n + 1),
}))
const SOAK: Soak = {
  rate: 400,
  periods: STEADY,
  reachable: { second: 60, last: 61 },
  greetings: [1, 2],
  accepted: 216_000,
  arrived: 216_000,
}

const missed = (soak: Soak): readonly string[] =>
  judgeSoak(soak)
    .filter((figure) => isReached(figure) === false)
    .map(({ name }) => name)

test('a steady soak reaches all targets', () => {
  expect(missed(SOAK)).toEqual([])
  const figures = new Map(judgeSoak(SOAK).map(({ name, values }) => [name, values[0]]))
  expect(figures.get('RSS, last third − second')).toBe(4)
  expect(figures.get('messages accepted per second')).toBe(400)
  expect(figures.get('attempts that were deferred')).toBeCloseTo(29.5, 1)
})

const changed = (change: (period: Period, n: number) => Partial<Period>): Soak => ({
  ...SOAK,
  periods: STEADY.map((period, n) => ({ ...period, ...change(period, n) })),
})

test.each([
  ['RSS, last third − second', changed((_, n) => ({ seconds: [{ resident: 200 + 2 * n, log: 10 }] }))],
  ['reachable heap, last third − second', { ...SOAK, reachable: { second: 60, last: 64 } }],
  ['largest write-ahead log', changed((_, n) => ({ seconds: [{ resident: 200, log: n === 4 ? 65 : 10 }] }))],
  ['event-loop delay p99 of a minute, 95 of 100', changed((_, n) => ({ delay: n === 4 ? 51 : 12 }))],
  ['messages accepted per second', changed(({ accepted }) => ({ accepted: 0.9 * accepted }))],
  ['accepted messages that did not arrive', { ...SOAK, arrived: SOAK.accepted - 1 }],
  ['messages that arrived twice', { ...SOAK, arrived: SOAK.accepted + 1 }],
] as const)('missed: %s', (name, soak) => {
  expect(missed(soak)).toEqual([name])
})

test('a line has the rates of its minute under the headings', () => {
  const [first, second] = STEADY
  if (first === undefined || second === undefined) throw new Error('there are nine')
  const head = '    time  RSS MB  heap MB  WAL MB  delay p99 ms  queued  accepted/s  delivered/s'
  expect(soakHead()).toBe(head)
  expect(soakLine(first, null)).toBe('00:01:00   200.0     60.0    10.0          12.0    1000         400          383')
  expect(soakLine(second, first)).toBe('00:02:00   200.0     60.0    10.0          12.0    1000         400          400')
})

test('metrics are added up over their labels', () => {
  const page = `# TYPE nodejs_eventloop_lag_p99_seconds gauge
nodejs_eventloop_lag_p99_seconds 0.0125
# TYPE nodejs_heap_size_used_bytes gauge
nodejs_heap_size_used_bytes 1048576
# TYPE deferd_queue_messages gauge
deferd_queue_messages{queue="incoming"} 1
deferd_queue_messages{queue="deferred"} 20
deferd_queue_messages_other 5
# TYPE deferd_accepted_messages_total counter
deferd_accepted_messages_total 7
# TYPE deferd_attempts_total counter
deferd_attempts_total{outcome="delivered",status="2.0"} 5
deferd_attempts_total{outcome="delivered",status="2.1"} 1
deferd_attempts_total{outcome="deferred",status="4.2"} 3
`
  expect(readScrape(page)).toEqual({ delay: 12.5, heap: 1, queued: 21, accepted: 7, delivered: 6, deferred: 3 })
  expect(() => readScrape(page.replace('# TYPE deferd_queue_messages gauge', ''))).toThrow('the daemon has no metric deferd_queue_messages')
})
