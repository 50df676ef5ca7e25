/**
 * Runs the long tests, part after part (test/long/parts.ts), and writes a result file for each.
 *
 *   npm run test:long -- [--list] [--shard=N/M] [FILTER…]
 *
 * FILTER is a text in the names of parts, such as `killed`, or a range of a subject, such as `simulation/dense:1-50`. Results go to
 * test/long/results, or to the folder LONG_RESULTS: NAME.json and the output, NAME.log. Exit codes: 0, 1 when a part failed, 64 for
 * wrong arguments.
 */
import { spawn } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { commit } from '../test/support/figures.ts'
import { MOST_MINUTES, nameOf, selectedParts, shardOf, SUBJECTS, suiteOf, type Part } from '../test/long/parts.ts'

const ROOT = join(import.meta.dirname, '..')
const RESULTS = process.env['LONG_RESULTS'] ?? join(ROOT, 'test/long/results')
/** Prints the user and system time of the ended processes to file descriptor 3. */
const TIMED = '"$@"; status=$?; times >&3; exit $status'

const STOPS = ['SIGINT', 'SIGTERM'] as const
/** Exit code of a part that a signal has ended, as of a shell. */
const STOPPED = 130

/** The content of a result file. */
interface PartResult {
  readonly part: string
  readonly commit: string
  /** Start, as ISO 8601. */
  readonly start: string
  /** Seconds. */
  readonly wall: number
  /** User and system time in seconds, also of the processes that the tests started and awaited. */
  readonly cpu: number
  readonly exit: number
  readonly tests: { readonly passed: number; readonly failed: number; readonly skipped: number }
  /** Printed by the suite with printFigures. */
  readonly figures: readonly unknown[]
}

const fileOf = (part: Part): string => join(RESULTS, nameOf(part).replaceAll(/[/:]/g, '.'))

function chosenParts(args: readonly string[]): { readonly parts: readonly Part[]; readonly list: boolean } {
  const options = { shard: { type: 'string' }, list: { type: 'boolean', default: false } } as const
  const { positionals, values } = parseArgs({ args: [...args], options, allowPositionals: true })
  const parts = selectedParts(positionals)
  if (values.shard === undefined) return { parts, list: values.list }
  const [n = 0, of = 0] = /^(\d+)\/(\d+)$/.exec(values.shard)?.slice(1).map(Number) ?? []
  if (n < 1 || n > of) throw new Error(`--shard=${values.shard}: give N/M with N from 1 to M, such as --shard=1/4`)
  return { parts: shardOf(parts, { n, of }), list: values.list }
}

const minutes = (seconds: number): string => `${(seconds / 60).toFixed(1).padStart(5)} min`
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Prints the expected time of each part, and that of its last run. */
function list(parts: readonly Part[]): void {
  for (const part of parts) {
    const file = `${fileOf(part)}.json`
    const last = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PartResult) : null
    const ran = last === null ? '' : `  ${minutes(last.wall)} at ${last.commit}, exit ${last.exit}`
    const { runs } = SUBJECTS[part.subject]
    console.log(`${minutes(part.minutes * 60)}  ${nameOf(part)}${runs === null ? '' : ` (${runs.of})`}${ran}`)
  }
  console.log(`${minutes(60 * sum(parts.map((part) => part.minutes)))}  expected for ${parts.length} parts`)
}

interface Ended {
  readonly exit: number
  readonly cpu: number
}

/** Runs vitest with its output on the terminal and in a file. */
function vitest(part: Part, folder: string): Promise<Ended> {
  const log = createWriteStream(`${fileOf(part)}.log`)
  const args = [
    join(ROOT, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--config',
    'vitest.long.config.ts',
    `test/long/${suiteOf(part.subject)}`,
  ]
  const reports = ['--reporter=default', '--reporter=json', `--outputFile.json=${join(folder, 'report.json')}`]
  const child = spawn('sh', ['-c', TIMED, 'sh', process.execPath, ...args, ...reports], {
    cwd: ROOT,
    env: { ...process.env, LONG_PART: nameOf(part), LONG_FIGURES: join(folder, 'figures') },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // A group of its own, so that a signal ends all of it.
    detached: true,
  })
  let times = ''
  child.stdio[3]?.on('data', (bytes: Buffer) => (times += bytes.toString()))
  child.stdout?.on('data', (bytes: Buffer) => (process.stdout.write(bytes), log.write(bytes)))
  child.stderr?.on('data', (bytes: Buffer) => (process.stderr.write(bytes), log.write(bytes)))
  let isStopped = false
  const stop = (signal: NodeJS.Signals): void => {
    isStopped = true
    if (child.pid !== undefined) process.kill(-child.pid, signal)
  }
  for (const signal of STOPS) process.on(signal, stop)
  return new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => log.end(() => resolve({ exit: isStopped ? STOPPED : (code ?? 1), cpu: secondsIn(times) })))
  }).finally(() => STOPS.forEach((signal) => process.off(signal, stop)))
}

/** Sum of the times that the shell prints, such as `0m1.50s 0m0.25s`. */
const secondsIn = (times: string): number =>
  sum([...times.matchAll(/(\d+)m([\d.]+)s/g)].map(([, minute, second]) => 60 * Number(minute) + Number(second)))

interface Report {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
}

async function run(part: Part): Promise<PartResult> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-long-'))
  const begun = performance.now()
  const start = new Date().toISOString()
  try {
    const { exit, cpu } = await vitest(part, folder)
    const read = (name: string): string => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8') : '')
    const report = JSON.parse(read('report.json') || '{"numPassedTests":0,"numFailedTests":0,"numPendingTests":0}') as Report
    return {
      part: nameOf(part),
      commit: commit(),
      start,
      wall: Math.round((performance.now() - begun) / 100) / 10,
      cpu,
      exit,
      tests: { passed: report.numPassedTests, failed: report.numFailedTests, skipped: report.numPendingTests },
      figures: read('figures')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A part none of whose tests ran, because a component is absent, did not fail. */
function summaryOf({ part, wall, cpu, exit, tests }: PartResult): string {
  const nothing = tests.passed + tests.failed === 0
  const state = exit !== 0 ? 'FAILED' : nothing ? 'not run' : wall > MOST_MINUTES * 60 ? 'passed, too long' : 'passed'
  return `${minutes(wall)} ${minutes(cpu)} CPU  ${part}: ${state}`
}

/** Runs the parts; returns the exit code. */
async function runAll(parts: readonly Part[]): Promise<number> {
  mkdirSync(RESULTS, { recursive: true })
  const results: PartResult[] = []
  for (const [n, part] of parts.entries()) {
    console.log(`\n[${n + 1}/${parts.length}] ${nameOf(part)}: ${part.minutes.toFixed(0)} min expected`)
    const result = await run(part)
    writeFileSync(`${fileOf(part)}.json`, `${JSON.stringify(result, null, 2)}\n`)
    results.push(result)
    if (result.exit === STOPPED) break
  }
  const failed = results.filter(({ exit }) => exit !== 0)
  console.log(`\n${results.map(summaryOf).join('\n')}`)
  console.log(`${minutes(sum(results.map(({ wall }) => wall)))}  ${results.length} of ${parts.length} parts, ${failed.length} failed`)
  for (const { part } of failed) console.log(`failed: ${part}`)
  return failed.length === 0 ? 0 : 1
}

try {
  const { parts, list: isListed } = chosenParts(process.argv.slice(2))
  if (isListed) list(parts)
  else process.exitCode = await runAll(parts)
} catch (error) {
  console.error(`test:long: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 64
}
