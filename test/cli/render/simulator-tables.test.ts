/** Output of the simulator for people: no line is longer than the terminal, or than 80 columns in a pipe. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Run, simulate } from '../../support/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-tables-'))
afterAll(() => rmSync(folder, { recursive: true }))

const LONG_POLICY = 'table(5m,10m,15m,20m,30m,40m,50m,1h,2h,3h,4h,5h,6h,7h,8h,9h,10h,11h,12h)'
const LONG_DOMAIN = 'mail.customer-relations.department-of-long-names.example'

const scenario = join(folder, 'a-scenario-whose-file-has-a-name-that-is-longer-than-most-names-of-files.toml')
writeFileSync(
  scenario,
  `[mail]
messages = 240
to = ["${LONG_DOMAIN}", "far.example"]
over = "6h"
[config]
delay_warning_time = "10m"
[rule."${'maintenance-'.repeat(6)}"]
domain = "${LONG_DOMAIN}"
connect = "refused"
from = "1h"
until = "4h"
`,
)

const policies = (...names: readonly string[]) => names.flatMap((name) => ['--policy', name])

const COMMANDS: readonly (readonly string[])[] = [
  ['schedule'],
  ['schedule', ...policies('doubling', 'kumomta', 'kumomta(M=4h)', 'exim'), '-o', 'maximal_queue_lifetime=5d'],
  ['schedule', ...policies('doubling', 'age', 'fixed', 'kumomta', 'exim', 'thain', 'google-drive', 'tcp', LONG_POLICY)],
  ['schedule', ...policies(LONG_POLICY, `${LONG_POLICY.slice(0, -1)},13h)`)],
  ['schedule', '--within', '30m', '--tries', '10'],
  ['schedule', '--within', '30m', '--outage', '5d'],
  ['contention', '--client', 'backoff-none', '--client', 'backoff-decorrelated', '--requests', '300', '--runs', '2'],
  ['contention', '--model', 'row', '--clients', '20'],
  ['contention', '--model', 'crash', '--clients', '420'],
  ['contention', '--model', 'limit'],
  ['run', scenario],
]

/** Each command runs once at each width. */
const runs = new Map<string, Promise<Run>>()
function runOf(args: readonly string[], columns: number | null): Promise<Run> {
  const key = JSON.stringify([args, columns])
  const run = runs.get(key) ?? simulate(args, { columns })
  runs.set(key, run)
  return run
}

describe.each([80, 120, null])('at %s columns', (columns) => {
  test.each(COMMANDS.map((args) => [args.join(' ').replaceAll(folder, '').slice(0, 60), args] as const))('%s', async (_, args) => {
    const { out, exitCode } = await runOf(args, columns)
    expect(exitCode).toBeNull()
    for (const line of out.split('\n')) expect(line.length, line).toBeLessThanOrEqual(columns ?? 80)
  })
})

test('long names are cut in the middle', async () => {
  const { out } = await runOf(['run', scenario], null)
  expect(out).toMatch(/^mail\S*…\S*example +120 /m)
  const { out: plan } = await simulate(['schedule', ...policies(LONG_POLICY, 'doubling')])
  expect(plan).toMatch(/^table\(\S*…\S*12h\) +•/m)
})

test('four plans fit beside each other at 80 columns; more are divided into tables of equal size', async () => {
  const headings = async (...names: readonly string[]) => {
    const { out } = await simulate(['schedule', ...policies(...names)])
    return out
      .split('\n')
      .filter((line) => /^ {10,}[a-z]/.test(line))
      .map((line) => line.trim().split(/ +/))
  }
  expect(await headings('doubling', 'kumomta', 'exim', 'age')).toEqual([['doubling', 'kumomta', 'exim', 'age']])
  expect(await headings('doubling', 'kumomta', 'exim', 'age', 'fixed', 'thain')).toEqual([
    ['doubling', 'kumomta', 'exim'],
    ['age', 'fixed', 'thain'],
  ])
})
