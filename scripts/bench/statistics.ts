/**
 * Medians with their spread, and ratios round by round.
 */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The measures of one turn; null for what it does not have. */
export interface Measure {
  /** CPU time per message of all processes, in ms. */
  readonly cpu: number
  /** Messages per second. */
  readonly rate: number
  /** Messages per second until the reply to the last one. */
  readonly acceptRate: number | null
  /** RSS of all processes at the end, in MB. */
  readonly rss: number | null
  /** Percentiles of the time from the final dot to the reply, in ms. */
  readonly accept50: number | null
  readonly accept99: number | null
  /** Percentiles of the time from that reply to the final dot at the sink, in ms. */
  readonly deliver50: number | null
  readonly deliver99: number | null
  /** 99th percentile of the delay of the event loop, in ms. */
  readonly loop99: number | null
}

export type Quantity = keyof Measure

/** A measure without latencies, memory and delay. */
export const ONLY_SPEED = {
  acceptRate: null,
  rss: null,
  accept50: null,
  accept99: null,
  deliver50: null,
  deliver99: null,
  loop99: null,
} as const

/** The measures of one contestant in one case of one round. */
export interface Turn extends Measure {
  readonly round: number
  readonly case: string
  readonly contestant: string
  readonly messages: number
}

/** Median, smallest and largest; null for no values. */
export function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b)
  const [min, max] = [sorted[0], sorted.at(-1)]
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  if (min === undefined || max === undefined || low === undefined || high === undefined) return null
  return { median: (low + high) / 2, min, max }
}

/** The values of turns that have the quantity. */
export const valuesOf = (turns: readonly Turn[], quantity: Quantity): number[] => turns.flatMap((turn) => turn[quantity] ?? [])

/** Combines a contestant's turns with those of another in the same round and case. Rounds that one of them lacks are left out. */
export function paired(turns: readonly Turn[], to: readonly Turn[], combine: (turn: Turn, other: Turn) => number | null): number[] {
  return turns.flatMap((turn) => {
    const other = to.find((candidate) => candidate.round === turn.round && candidate.case === turn.case)
    return other === undefined ? [] : (combine(turn, other) ?? [])
  })
}

/** Ratios of a contestant's turns to those of another. Turns too short to measure make none. */
export const ratios = (turns: readonly Turn[], to: readonly Turn[], quantity: Quantity): number[] =>
  paired(turns, to, ({ [quantity]: value }, { [quantity]: unit }) => (value === null || !unit ? null : value / unit))

/** The order of a round: each contestant is first in turn. */
export function rotated<T>(items: readonly T[], by: number): T[] {
  const first = items.length === 0 ? 0 : by % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
