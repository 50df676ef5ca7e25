/**
 * Load from a client program through a relay to a counting sink, and what it costs the relay.
 */
import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from './cases.ts'
import { freePort, greeted, startChild, within, type Child, type Command } from './child.ts'
import { processorSeconds } from './processor-time.ts'

/** The longest time for the messages of one turn, in ms. */
const TURN_LIMIT = 60_000

/** The client and the sink are processes of their own, so that their CPU time counts for no relay. */
const own = (script: string, ...args: readonly (string | number)[]): Command => ({
  program: process.execPath,
  args: [join(import.meta.dirname, script), ...args.map(String)],
  cwd: '/',
})

export interface Sink {
  readonly child: Child
  readonly port: number
  /** Messages that have arrived. */
  count(): number
}

/** Starts a sink; `args` follow its port. */
export async function startSink(folder: string, signal: AbortSignal, args: readonly number[] = []): Promise<Sink> {
  const port = await freePort()
  const file = join(folder, 'sink')
  const child = await startChild('the sink', own('own-sink.ts', port, ...args), file)
  try {
    await greeted(child, port, signal)
  } catch (error) {
    await child.stop()
    throw error
  }
  return { child, port, count: () => lastCount(tailOf(file)) }
}

/** The last count in what a sink has printed. */
export const lastCount = (text: string): number => Number([...text.matchAll(/mesg=\s*(\d+)\s/g)].at(-1)?.[1] ?? 0)

function tailOf(file: string): string {
  const descriptor = openSync(file, 'r')
  try {
    const tail = Buffer.alloc(256)
    const from = Math.max(0, fstatSync(descriptor).size - tail.length)
    return tail.toString('latin1', 0, readSync(descriptor, tail, 0, tail.length, from))
  } finally {
    closeSync(descriptor)
  }
}

export interface Bench {
  readonly sink: Sink
  readonly folder: string
  readonly signal: AbortSignal
}

/** A relay under load. */
export interface Loaded {
  readonly name: string
  readonly child: Pick<Child, 'pid' | 'ended' | 'hasEnded' | 'lastWords'>
  readonly port: number
}

export interface Measure {
  /** CPU time per message, in ms. */
  readonly cpu: number
  /** Messages delivered per second, from the first byte sent to the last message at the sink. */
  readonly rate: number
}

/** Sends messages through a relay, waits until all are at the sink and the relay is at rest. */
export const measure = (bench: Bench, relay: Loaded, load: Case, messages: number): Promise<Measure> =>
  measureAll(bench, [relay], load, messages)

/** The same with several relays, each of which gets its part of the messages. The sum of their CPU time counts. */
export async function measureAll(bench: Bench, relays: readonly Loaded[], load: Case, messages: number): Promise<Measure> {
  const each = Math.ceil(messages / relays.length)
  const sent = each * relays.length
  const goal = bench.sink.count() + sent
  const before = secondsOf(relays)
  const started = Date.now()
  const sources = await Promise.all(relays.map((relay) => startSource(bench, relay, load, each)))
  try {
    const arrived = await arrival(bench, { sources, goal, messages: sent })
    await within(10_000, Promise.all(sources.map(({ source }) => source.ended)))
    const began = Math.min(...sources.map(({ source }) => Number(/began=(\d+)/.exec(source.lastWords())?.[1] ?? started)))
    const after = await processorSecondsAtRest(relays, bench.signal)
    return { cpu: rounded(((after - before) * 1000) / sent), rate: rounded((sent * 1000) / (arrived - began)) }
  } finally {
    for (const { source, said } of sources) {
      await source.stop()
      rmSync(said, { force: true })
    }
  }
}

interface StartedSource {
  readonly relay: Loaded
  readonly source: Child
  /** The file of its output. */
  readonly said: string
}

async function startSource({ folder }: Bench, relay: Loaded, load: Case, messages: number): Promise<StartedSource> {
  const { sessions, bytes, recipients, connections } = load
  const client = own('own-source.ts', relay.port, messages, sessions, bytes, recipients, connections)
  const said = join(folder, `source-${relay.name}`)
  return { relay, source: await startChild('the source', client, said), said }
}

const secondsOf = (relays: readonly Loaded[]): number => relays.reduce((sum, { child }) => sum + processorSeconds(child.pid), 0)

const rounded = (value: number): number => Number(value.toFixed(4))

interface Awaited {
  readonly sources: readonly StartedSource[]
  readonly goal: number
  readonly messages: number
}

/** The time at which the last message arrived. */
async function arrival({ sink, signal }: Bench, { sources, goal, messages }: Awaited): Promise<number> {
  const deadline = Date.now() + TURN_LIMIT
  while (sink.count() < goal) {
    for (const { relay, source } of sources) {
      if (source.hasEnded() && (await source.ended) !== 'exit code 0') {
        throw new Error(`sending to ${relay.name} failed: ${source.lastWords()}\n${wordsOf(relay)}`)
      }
      if (relay.child.hasEnded()) throw new Error(`${relay.name} ended (${await relay.child.ended})\n${wordsOf(relay)}`)
    }
    if (sink.child.hasEnded()) throw new Error(`the sink ended (${await sink.child.ended}): ${sink.child.lastWords()}`)
    if (Date.now() > deadline) throw new Error(tooFew(sources, messages - goal + sink.count(), messages))
    await pause(5, undefined, { signal })
  }
  return Date.now()
}

const tooFew = (sources: readonly StartedSource[], arrived: number, messages: number): string =>
  `${sources.map(({ relay }) => relay.name).join(', ')} delivered ${arrived} of ${messages} messages in ${TURN_LIMIT / 1000} s; ` +
  `give fewer with --messages\n${sources.map(({ relay }) => wordsOf(relay)).join('\n')}`

const wordsOf = ({ name, child }: Loaded): string => `${name} said:\n${child.lastWords()}`

/** CPU seconds of the relays when they have not changed for a fifth of a second; at most five seconds are given. */
async function processorSecondsAtRest(relays: readonly Loaded[], signal: AbortSignal): Promise<number> {
  let seconds = secondsOf(relays)
  for (let [unchanged, looks] = [0, 0]; unchanged < 4 && looks < 100; looks++) {
    await pause(50, undefined, { signal })
    const now = secondsOf(relays)
    unchanged = now === seconds ? unchanged + 1 : 0
    seconds = now
  }
  return seconds
}
