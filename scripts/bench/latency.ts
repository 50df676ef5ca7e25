/** Times of messages that the source and the sink wrote to their files, and their percentiles. */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { percentile } from './figures/figure.ts'
import type { Sent } from './own-source.ts'
import type { Measure } from './statistics.ts'

export type Latencies = Pick<Measure, 'accept50' | 'accept99' | 'deliver50' | 'deliver99'>

/** A message with the time of its final dot at the sink. */
export interface Arrival {
  /** NaN for a notice. */
  readonly number: number
  readonly at: number
}

const NUMBER = 8

/** The messages of a source's file. */
export const readSent = (file: string): Sent[] =>
  groupsOf(readFileSync(file), 3).map(([number = 0, dot = 0, reply = 0]) => ({ number, dot, reply }))

/** The arrivals in a sink's file from a position on. */
export function readArrivals(file: string, from: number): Arrival[] {
  const descriptor = openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(descriptor).size - from))
    return groupsOf(bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, from)), 2).map(([number = 0, at = 0]) => ({
      number,
      at,
    }))
  } finally {
    closeSync(descriptor)
  }
}

/** Numbers of eight bytes in groups of a size. */
function groupsOf(bytes: Buffer, size: number): number[][] {
  const groups = Math.floor(bytes.length / (NUMBER * size))
  return Array.from({ length: groups }, (_, group) =>
    Array.from({ length: size }, (_number, n) => bytes.readDoubleLE(NUMBER * (group * size + n))),
  )
}

/** Percentiles of the times from the final dot to the reply, and from there to the last arrival of the message. */
export function latenciesOf(sent: readonly Sent[], arrivals: readonly Arrival[]): Latencies {
  const arrived = new Map(arrivals.map(({ number, at }) => [number, at]))
  const accepted = sent.map(({ dot, reply }) => reply - dot)
  const delivered = sent.flatMap(({ number, reply }) => {
    const at = arrived.get(number)
    return at === undefined ? [] : [at - reply]
  })
  const part = (values: readonly number[], rank: number): number | null =>
    values.length === 0 ? null : Number(percentile(values, rank).toFixed(2))
  return {
    accept50: part(accepted, 0.5),
    accept99: part(accepted, 0.99),
    deliver50: part(delivered, 0.5),
    deliver99: part(delivered, 0.99),
  }
}
