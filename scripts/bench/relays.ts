/**
 * deferd beside other relays, in turns: CPU time per message and messages delivered per second.
 */
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { shortId } from './base-commit.ts'
import { CASES } from './cases.ts'
import { ROOT, startContestants, type Field } from './contestants.ts'
import { startSink } from './load.ts'
import { describeMachine, type Machine } from './machine.ts'
import { parseOptions, USAGE, UsageError, type Options } from './options.ts'
import { readUse, shareOfOthers } from './processor-time.ts'
import { formatReport, summarize } from './report.ts'
import { playRounds, WARM_UP, warmUp } from './rounds.ts'

interface Run {
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/** Measures the relays that the arguments name, in turns, and prints the report. */
export async function runRelays(args: readonly string[], { signal, say }: Run): Promise<void> {
  const options = parseOptions(args)
  if (options === 'help') return say(USAGE.trimEnd())
  await check(options)
  const undo = new AsyncDisposableStack()
  try {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-bench-'))
    undo.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
    // Postfix' own user has to get through to its spool.
    chmodSync(folder, 0o711)
    await runIn(folder, options, { signal, say, undo })
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

interface Ending extends Run {
  readonly undo: AsyncDisposableStack
}

async function runIn(folder: string, options: Options, { signal, say, undo }: Ending): Promise<void> {
  const began = new Date().toISOString()
  const sink = await startSink(folder, signal)
  undo.defer(() => sink.child.stop())
  const field = await startContestants(options, { folder, sinkPort: sink.port, signal, undo })
  if (field.relays.length === 0) throw new Error(`nothing to measure: ${field.omitted.map(({ reason }) => reason).join('; ')}`)
  const machine = describeMachine(folder)
  const cases = CASES.filter(({ quick }) => quick || !options.quick)
  introduce(options, field, { machine, say })

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

function introduce(options: Options, field: Field, { machine, say }: { readonly machine: Machine; readonly say: Run['say'] }): void {
  say(`${machine.cores} × ${machine.processor}, Node ${machine.node}`)
  say(`queues in ${machine.folder}`)
  if (machine.inMemory !== null) say(`this is a ${machine.inMemory}, where syncs cost nothing: set TMPDIR to a folder on a disk`)
  for (const { name, about } of field.relays) say(`${name}: ${about}`)
  for (const { name, reason } of field.omitted) say(`${name}: omitted, ${reason}`)
  const quarter = field.relays.some(({ share }) => share < 1) ? ', a quarter of them for postfix' : ''
  say(`${options.rounds} rounds of ${options.messages} messages for each${quarter}`)
}
