/**
 * Load from a client program through a relay to a counting sink, and what it costs the relay.
 */
import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Case } from './cases.ts'
import { freePort, greeted, startChild, within, type Child, type Command } from './child.ts'
import type { Relay } from './contestants.ts'
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

export async function startSink(folder: string, signal: AbortSignal): Promise<Sink> {
  const port = await freePort()
  const file = join(folder, 'sink')
  const child = await startChild('the sink', own('own-sink.ts', port), file)
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

export interface Measure {
  /** CPU time per message, in ms. */
  readonly cpu: number
  /** Messages delivered per second, from the first byte sent to the last message at the sink. */
  readonly rate: number
}

/** Sends messages through a relay, waits until all are at the sink and the relay is at rest. */
export async function measure(bench: Bench, relay: Relay, load: Case, messages: number): Promise<Measure> {
  const goal = bench.sink.count() + messages
  const before = processorSeconds(relay.child.pid)
  const started = Date.now()
  const { sessions, bytes, recipients, connections } = load
  const client = own('own-source.ts', relay.port, messages, sessions, bytes, recipients, connections)
  const said = join(bench.folder, 'source')
  const source = await startChild('the source', client, said)
  try {
    const arrived = await arrival(bench, { relay, source, goal, messages })
    await within(10_000, source.ended)
    const began = Number(/began=(\d+)/.exec(source.lastWords())?.[1] ?? started)
    const after = await processorSecondsAtRest(relay.child.pid, bench.signal)
    return { cpu: rounded(((after - before) * 1000) / messages), rate: rounded((messages * 1000) / (arrived - began)) }
  } finally {
    await source.stop()
    rmSync(said, { force: true })
  }
}

const rounded = (value: number): number => Number(value.toFixed(4))

interface Awaited {
  readonly relay: Relay
  readonly source: Child
  readonly goal: number
  readonly messages: number
}

/** The time at which the last message arrived. */
async function arrival({ sink, signal }: Bench, { relay, source, goal, messages }: Awaited): Promise<number> {
  const deadline = Date.now() + TURN_LIMIT
  while (sink.count() < goal) {
    if (source.hasEnded() && (await source.ended) !== 'exit code 0') {
      throw new Error(`sending to ${relay.name} failed: ${source.lastWords()}\n${wordsOf(relay)}`)
    }
    if (relay.child.hasEnded()) throw new Error(`${relay.name} ended (${await relay.child.ended})\n${wordsOf(relay)}`)
    if (sink.child.hasEnded()) throw new Error(`the sink ended (${await sink.child.ended}): ${sink.child.lastWords()}`)
    if (Date.now() > deadline) throw new Error(tooFew(relay, messages - goal + sink.count(), messages))
    await pause(5, undefined, { signal })
  }
  return Date.now()
}

const tooFew = (relay: Relay, arrived: number, messages: number): string =>
  `${relay.name} delivered ${arrived} of ${messages} messages in ${TURN_LIMIT / 1000} s; give fewer with --messages\n${wordsOf(relay)}`

const wordsOf = ({ name, child }: Relay): string => `${name} said:\n${child.lastWords()}`

/** CPU seconds of the relay when they have not changed for a fifth of a second; at most five seconds are given. */
async function processorSecondsAtRest(pid: number, signal: AbortSignal): Promise<number> {
  let seconds = processorSeconds(pid)
  for (let [unchanged, looks] = [0, 0]; unchanged < 4 && looks < 100; looks++) {
    await pause(50, undefined, { signal })
    const now = processorSeconds(pid)
    unchanged = now === seconds ? unchanged + 1 : 0
    seconds = now
  }
  return seconds
}
