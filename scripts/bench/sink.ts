/** A counting sink in a process of its own. */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, greeted, startChild, type Child } from './child.ts'
import { readArrivals, type Arrival } from './latency.ts'
import { ownProgram } from './own-program.ts'
import type { SinkSettings } from './own-sink.ts'

export interface SinkCounts {
  /** Messages that have arrived. */
  readonly arrived: number
  /** Recipients that were answered 450 or 550. */
  readonly refused: number
}

export interface Sink {
  readonly child: Child
  readonly port: number
  counts(): SinkCounts
  /** Numbers for so many messages, which no other message has; returns the first. */
  takeNumbers(count: number): number
  /** A position among the arrivals, for `arrivalsSince`. */
  position(): number
  arrivalsSince(position: number): Arrival[]
}

/** Starts a sink that accepts all messages, unless the settings say otherwise. */
export async function startSink(folder: string, signal: AbortSignal, settings: Partial<SinkSettings> = {}): Promise<Sink> {
  const port = await freePort()
  const [said, arrivals] = [join(folder, 'sink'), join(folder, 'arrivals')]
  const all: SinkSettings = { port, arrivals, deferred: 0, addresses: 1, ...settings }
  const child = await startChild('the sink', ownProgram('own-sink.ts', JSON.stringify(all)), said)
  try {
    await greeted(child, port, signal)
  } catch (error) {
    await child.stop()
    throw error
  }
  let next = 0
  return {
    child,
    port,
    counts: () => lastCounts(tailOf(said)),
    takeNumbers: (count) => (next += count) - count,
    position: () => statSync(arrivals).size,
    arrivalsSince: (position) => readArrivals(arrivals, position),
  }
}

/** The last counts in what a sink has printed. */
export function lastCounts(text: string): SinkCounts {
  const [, arrived, refused] = [...text.matchAll(/mesg=(\d+) refused=(\d+)\n/g)].at(-1) ?? []
  return { arrived: Number(arrived ?? 0), refused: Number(refused ?? 0) }
}

/** The last 256 bytes of a file. */
export function tailOf(file: string): string {
  const descriptor = openSync(file, 'r')
  try {
    const tail = Buffer.alloc(256)
    const from = Math.max(0, fstatSync(descriptor).size - tail.length)
    return tail.toString('latin1', 0, readSync(descriptor, tail, 0, tail.length, from))
  } finally {
    closeSync(descriptor)
  }
}
