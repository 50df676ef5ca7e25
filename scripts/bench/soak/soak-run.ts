/**
 * A daemon under a constant load for hours. The sink refuses a part of the attempts with 4xx, and these are repeated after seconds,
 * so that the queue has a constant size; the history is short for the same reason.
 */
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, type Child } from '../child.ts'
import { treeVersion } from '../deferd.ts'
import type { BenchDaemon } from '../figures/bench-daemon.ts'
import { formatFigures, isReached } from '../figures/figure.ts'
import { describeMachine } from '../machine.ts'
import { startProbedDaemon } from '../memory/probed-daemon.ts'
import { resultOfLoad, startPacedLoad } from '../paced-load.ts'
import { readUse, residentOf, shareOfOthers } from '../processor-time.ts'
import { startSink, type Sink } from '../sink.ts'
import { judgeSoak, soakHead, soakLine, type Period, type Reachable, type Scrape, type Second } from './soak-figures.ts'
import { readScrape } from './soak-scrape.ts'
import type { SoakOptions } from './soak-options.ts'

/** Next hops of the mail: addresses of loopback. */
const DESTINATIONS = 20
/** Length of a period, and the least number of periods. */
const MINUTE = 60
const LEAST_PERIODS = 6
/** Longest time in which the queue must become empty after the last message, in seconds. */
const DRAIN_LIMIT = 600
/** Size from which the file of the daemon's log is emptied. */
const LOG_LIMIT = 64_000_000

interface Run {
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

interface Programs {
  readonly daemon: BenchDaemon
  /** Reachable bytes of the daemon, after a garbage collection. */
  readonly reachable: () => Promise<number>
  readonly sink: Sink
  readonly source: Child
  readonly metrics: string
}

/** Runs a soak. Returns whether all limits hold. */
export async function runSoak(options: SoakOptions, { signal, say }: Run): Promise<boolean> {
  await using undo = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'deferd-soak-'))
  undo.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  const [began, commit] = [new Date().toISOString(), await treeVersion()]
  const [machine, before] = [describeMachine(folder), readUse(process.pid)]
  if (machine.inMemory !== null)
    say(`${folder} is in memory (${machine.inMemory}), where a sync costs nothing; set TMPDIR to a folder on a disk`)
  say(`${options.rate} messages/s for ${options.minutes} minutes, ${options.failures} % of the attempts deferred\n\n${soakHead()}`)
  const programs = await startPrograms(options, { folder, signal, undo })
  const { periods, reachable } = await observe(programs, options, { signal, say })
  const accepted = await drained(programs, signal)
  const { greetings } = await resultOfLoad(programs.source)
  const { arrived } = programs.sink.counts()
  const figures = judgeSoak({ rate: options.rate, periods, reachable, greetings, accepted, arrived })
  const others = shareOfOthers(before, readUse(process.pid))
  say(`\n${formatFigures(figures)}\nother programs took ${(others * 100).toFixed(0)} % of the CPU time`)
  const judged = figures.map((figure) => ({ ...figure, reached: isReached(figure) }))
  const reached = judged.every((figure) => figure.reached !== false)
  const minutes = periods.map(({ seconds, ...period }) => ({ ...period, ...summaryOf(seconds) }))
  writeFileSync(
    options.json,
    `${JSON.stringify({ began, commit, machine, options, others, reached, figures: judged, minutes }, null, 2)}\n`,
  )
  say(`written to ${resolve(options.json)}`)
  return reached
}

const summaryOf = (seconds: readonly Second[]): { readonly resident: readonly number[]; readonly log: number } => ({
  resident: [Math.min(...seconds.map(({ resident }) => resident)), Math.max(...seconds.map(({ resident }) => resident))],
  log: Math.max(...seconds.map(({ log }) => log)),
})

interface Place {
  readonly folder: string
  readonly signal: AbortSignal
  readonly undo: AsyncDisposableStack
}

async function startPrograms({ rate, minutes, failures }: SoakOptions, place: Place): Promise<Programs> {
  const { folder, signal, undo } = place
  const sink = await startSink(folder, signal, { arrivals: null, deferred: failures, addresses: DESTINATIONS })
  undo.defer(() => sink.child.stop())
  const http = await freePort()
  const routes = Array.from({ length: DESTINATIONS }, (_, n) => `d${n}.test=smtp:[127.0.0.${n + 1}]:${sink.port}`)
  const { daemon, look } = await startProbedDaemon(place, 'daemon', {
    http_listen: `127.0.0.1:${http}`,
    relayhost: '',
    transport_maps: `inline:{${routes.join(', ')}}`,
    minimal_backoff_time: '10s',
    maximal_backoff_time: '20s',
    history_retention: '10m',
  })
  const load = { port: daemon.port, rate, seconds: minutes * MINUTE, destinations: DESTINATIONS }
  const source = await startPacedLoad(load, join(folder, 'source'))
  undo.defer(() => source.stop())
  const reachable = async (): Promise<number> => (await look()).heap / 1_000_000
  return { daemon, reachable, sink, source, metrics: `http://127.0.0.1:${http}/metrics` }
}

interface Observed {
  readonly periods: readonly Period[]
  readonly reachable: Reachable
}

/**
 * Looks once a second until the source has ended, and scrapes the metrics once a minute. Garbage is collected twice only, because the
 * daemon stands still meanwhile.
 */
async function observe(programs: Programs, { minutes }: SoakOptions, { signal, say }: Run): Promise<Observed> {
  const length = Math.min(MINUTE, (minutes * MINUTE) / LEAST_PERIODS)
  const count = Math.floor((minutes * MINUTE) / length + 0.001)
  const periods: Period[] = []
  await scrape(programs)
  const began = performance.now()
  let second = Number.NaN
  for (let n = 1; n <= count; n++) {
    const seconds = await observePeriod(programs, began + n * length * 1_000, signal)
    const period: Period = { at: (performance.now() - began) / 1_000, seconds, ...(await scrape(programs)) }
    say(soakLine(period, periods.at(-1) ?? null))
    periods.push(period)
    emptyLog(programs.daemon)
    if (n === Math.floor((2 * count) / 3)) second = await programs.reachable()
  }
  return { periods, reachable: { second, last: await programs.reachable() } }
}

async function observePeriod(programs: Programs, end: number, signal: AbortSignal): Promise<readonly Second[]> {
  const seconds: Second[] = []
  while (performance.now() < end) {
    await pause(Math.min(1_000, Math.max(1, end - performance.now())), undefined, { signal })
    await assertRunning(programs)
    seconds.push({ resident: residentOf(programs.daemon.child.pid), log: logSize(programs.daemon) })
  }
  return seconds
}

const logSize = ({ queue }: BenchDaemon): number =>
  (statSync(join(queue, 'queue.db-wal'), { throwIfNoEntry: false })?.size ?? 0) / 1_000_000

function emptyLog({ log }: BenchDaemon): void {
  if (statSync(log).size > LOG_LIMIT) truncateSync(log)
}

/** Throws when a program has ended; the source may end without an error. */
async function assertRunning({ daemon, sink, source }: Programs): Promise<void> {
  for (const child of [daemon.child, sink.child, source]) {
    if (!child.hasEnded()) continue
    const end = await child.ended
    if (child !== source || end !== 'exit code 0') throw new Error(`${child.name} ended (${end}): ${child.lastWords()}`)
  }
}

async function scrape({ metrics }: Programs): Promise<Scrape> {
  const response = await fetch(metrics)
  if (!response.ok) throw new Error(`${metrics} was answered with ${response.status}`)
  return readScrape(await response.text())
}

/** The messages that were accepted, once the queue is empty. */
async function drained(programs: Programs, signal: AbortSignal): Promise<number> {
  for (let waited = 0; waited < DRAIN_LIMIT; waited++) {
    await assertRunning(programs)
    const { queued, accepted } = await scrape(programs)
    if (programs.source.hasEnded() && queued === 0) return accepted
    await pause(1_000, undefined, { signal })
  }
  throw new Error(
    `the queue was not empty ${DRAIN_LIMIT} s after the last message: ${readFileSync(programs.daemon.log, 'utf8').slice(-2_000)}`,
  )
}
