/**
 * Measures deferd and other relays, in turns on one machine: CPU time per message and messages delivered per
 * second. docs/bench.md explains the result.
 *
 *   npm run bench -- --quick --base main
 */
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { shortId } from './bench/base-commit.ts'
import { CASES } from './bench/cases.ts'
import { ROOT, startContestants, type Field } from './bench/contestants.ts'
import { startSink } from './bench/load.ts'
import { describeMachine, type Machine } from './bench/machine.ts'
import { parseOptions, USAGE, UsageError, type Options } from './bench/options.ts'
import { readUse, shareOfOthers } from './bench/processor-time.ts'
import { formatReport, summarize } from './bench/report.ts'
import { playRounds, WARM_UP, warmUp } from './bench/rounds.ts'

const EX_USAGE = 64
const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(args: readonly string[]): Promise<number> {
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort(new Error(`ended by ${name}`)))
  // A closed pipe must not end the bench before it has stopped what it started.
  process.stdout.on('error', (cause) => interrupted.abort(new Error(`the output cannot be written: ${cause.message}`, { cause })))
  process.stderr.on('error', (cause) => interrupted.abort(new Error('the terminal is gone', { cause })))
  try {
    const options = parseOptions(args)
    if (options === 'help') say(USAGE.trimEnd())
    else await run(options, interrupted.signal)
    return 0
  } catch (error) {
    const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error
    process.stderr.write(`bench: ${reason instanceof Error ? reason.message : String(reason)}\n`)
    return error instanceof UsageError ? EX_USAGE : 1
  }
}

async function run(options: Options, signal: AbortSignal): Promise<void> {
  if (!existsSync('/proc/self/stat')) throw new Error('CPU times are read from /proc, which this system lacks: run the bench on Linux')
  await check(options)
  const undo = new AsyncDisposableStack()
  try {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-bench-'))
    undo.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
    // Postfix' own user has to get through to its spool.
    chmodSync(folder, 0o711)
    await runIn(folder, options, { signal, undo })
  } finally {
    await undo.disposeAsync()
  }
}

/** Refuses at once what would fail late. */
async function check({ base, json }: Options): Promise<void> {
  try {
    if (base !== null) await shortId(ROOT, base)
  } catch (error) {
    throw new UsageError(`--base takes a commit that git finds here, not "${base}"`, { cause: error })
  }
  try {
    closeSync(openSync(json, 'a'))
  } catch (error) {
    throw new UsageError(`--json takes a file that can be written: ${(error as Error).message}`, { cause: error })
  }
}

interface Ending {
  readonly signal: AbortSignal
  readonly undo: AsyncDisposableStack
}

async function runIn(folder: string, options: Options, { signal, undo }: Ending): Promise<void> {
  const began = new Date().toISOString()
  const sink = await startSink(folder, signal)
  undo.defer(() => sink.child.stop())
  const field = await startContestants(options, { folder, sinkPort: sink.port, signal, undo })
  if (field.relays.length === 0) throw new Error(`nothing to measure: ${field.omitted.map(({ reason }) => reason).join('; ')}`)
  const machine = describeMachine(folder)
  const cases = CASES.filter(({ quick }) => quick || !options.quick)
  introduce(options, field, machine)

  const { rounds, messages } = options
  const plan = { bench: { sink, folder, signal }, relays: field.relays, cases, rounds, messages, say }
  await warmUp(plan)
  const before = readUse(process.pid)
  const turns = await playRounds(plan)
  const others = shareOfOthers(before, readUse(process.pid))
  const summaries = summarize(turns)
  say(`\n${formatReport(cases, summaries)}`)
  say(`other programs took ${(others * 100).toFixed(0)} % of the CPU time that this machine had meanwhile`)

  const contestants = field.relays.map(({ name, about }) => ({ name, about }))
  const setting = { began, machine, others, rounds, messages, warmUp: WARM_UP }
  writeFileSync(options.json, `${JSON.stringify({ ...setting, contestants, omitted: field.omitted, cases, summaries, turns }, null, 2)}\n`)
  say(`written to ${resolve(options.json)}`)
}

function introduce(options: Options, field: Field, machine: Machine): void {
  say(`${machine.cores} × ${machine.processor}, Node ${machine.node}`)
  say(`queues in ${machine.folder}`)
  if (machine.inMemory !== null) say(`this is a ${machine.inMemory}, where syncs cost nothing: set TMPDIR to a folder on a disk`)
  for (const { name, about } of field.relays) say(`${name}: ${about}`)
  for (const { name, reason } of field.omitted) say(`${name}: omitted, ${reason}`)
  const quarter = field.relays.some(({ share }) => share < 1) ? ', a quarter of them for postfix' : ''
  say(`${options.rounds} rounds of ${options.messages} messages for each${quarter}`)
}

process.exitCode = await main(process.argv.slice(2))
