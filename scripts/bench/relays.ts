/**
 * deferd beside other relays, in turns: CPU time per message and messages delivered per second.
 */
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { shortId } from './base-commit.ts'
import type { Case, Counts, SetUp } from './cases.ts'
import { prepareContestants, type Contestant, type Omitted } from './contestants.ts'
import { ROOT } from './deferd.ts'
import { Field } from './field.ts'
import { describeMachine, type Machine } from './machine.ts'
import { parseOptions, USAGE, UsageError, type Options } from './options.ts'
import { readUse, shareOfOthers } from './processor-time.ts'
import { formatReport, summarize, type Summary } from './report.ts'
import { playRounds, WARM_UP, warmUp } from './rounds.ts'
import { startSink, type Sink } from './sink.ts'
import { reasonAgainstClient, startSmtpSink } from './smtp-source.ts'
import type { Turn } from './statistics.ts'

interface Run {
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/** The result of a run, as it is written. */
export interface Result extends Counts {
  readonly began: string
  readonly machine: Machine
  /** Part of the CPU time that other programs took, 0 to 1. */
  readonly others: number
  readonly rounds: number
  readonly warmUp: number
  readonly contestants: readonly Pick<Contestant, 'name' | 'about'>[]
  readonly omitted: readonly Omitted[]
  readonly cases: readonly Case[]
  readonly summaries: readonly Summary[]
  readonly turns: readonly Turn[]
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
  const sinkOf = await startSinks(folder, options.cases, { signal, undo })
  const place = { folder, sinkPort: (setUp: SetUp) => sinkOf(setUp).port, signal, undo }
  const { contestants, omitted } = await prepareContestants(options, place)
  if (contestants.length === 0) throw new Error(`nothing to measure: ${omitted.map(({ reason }) => reason).join('; ')}`)
  const machine = describeMachine(folder)
  const { rounds, messages, drained, cases } = options
  const left = [...omitted, ...omittedCases(contestants, cases)]
  introduce(contestants, left, { machine, say })
  say(`${rounds} rounds of ${messages} messages or a part of them`)

  const counts = { messages, drained }
  const benchOf = ({ setUp }: Case) => ({ sink: sinkOf(setUp), folder, signal })
  const plan = { benchOf, field: new Field(place), contestants, cases, rounds, counts, say }
  await warmUp(plan)
  const before = readUse(process.pid)
  const turns = await playRounds(plan)
  const others = shareOfOthers(before, readUse(process.pid))
  const summaries = summarize(turns)
  say(`\n${formatReport(cases, summaries)}`)
  say(`other programs took ${(others * 100).toFixed(0)} % of the CPU time that this machine had meanwhile`)

  const names = contestants.map(({ name, about }) => ({ name, about }))
  const result: Result = {
    began,
    machine,
    others,
    rounds,
    ...counts,
    warmUp: Math.min(WARM_UP, messages),
    contestants: names,
    omitted: left,
    cases,
    summaries,
    turns,
  }
  writeFileSync(options.json, `${JSON.stringify(result, null, 2)}\n`)
  say(`written to ${resolve(options.json)}`)
}

/** Starts the sinks of the cases. Returns the one to which an instance with some settings relays. */
async function startSinks(folder: string, cases: readonly Case[], { signal, undo }: Omit<Ending, 'say'>): Promise<(setUp: SetUp) => Sink> {
  const own = await startSink(folder, signal)
  undo.defer(() => own.child.stop())
  if (!cases.some((load) => load.client === 'smtp-source' && reasonAgainstClient(load) === null)) return () => own
  const smtpSink = await startSmtpSink(folder, signal)
  undo.defer(() => smtpSink.child.stop())
  return (setUp) => (setUp === 'smtp-sink' ? smtpSink : own)
}

const omittedCases = (contestants: readonly Contestant[], cases: readonly Case[]): readonly Omitted[] =>
  contestants.flatMap(({ name, reasonAgainst }) =>
    cases.flatMap((load) => {
      const reason = reasonAgainst(load)
      return reason === null ? [] : [{ name, case: load.name, reason }]
    }),
  )

interface Introduction {
  readonly machine: Machine
  readonly say: Run['say']
}

function introduce(contestants: readonly Contestant[], omitted: readonly Omitted[], { machine, say }: Introduction): void {
  say(`${machine.cores} × ${machine.processor}, Node ${machine.node}`)
  say(`queues in ${machine.folder}`)
  if (machine.inMemory !== null) say(`this is a ${machine.inMemory}, where syncs cost nothing: set TMPDIR to a folder on a disk`)
  for (const { name, about } of contestants) say(`${name}: ${about}`)
  for (const one of omitted.filter((each) => each.case === null)) say(`${one.name}: omitted, ${one.reason}`)
  for (const group of Map.groupBy(omitted, ({ name, reason }) => `${name}: ${reason}`).values()) {
    const cases = group.flatMap(({ case: name }) => name ?? [])
    if (cases.length > 0) say(`${group[0]?.name}: without ${cases.join(', ')}, because ${group[0]?.reason}`)
  }
}
