/**
 * Medians with their spread, and ratios round by round.
 */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The measures of one contestant in one case of one round. */
export interface Turn {
  readonly round: number
  readonly case: string
  readonly contestant: string
  readonly messages: number
  /** CPU time per message of all processes, in ms. */
  readonly cpu: number
  /** Messages delivered per second. */
  readonly rate: number
}

export type Quantity = 'cpu' | 'rate'

/** Median, smallest and largest; null for no values. */
export function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b)
  const [min, max] = [sorted[0], sorted.at(-1)]
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  if (min === undefined || max === undefined || low === undefined || high === undefined) return null
  return { median: (low + high) / 2, min, max }
}

/** Ratios of a contestant's turns to those of another in the same round and case. Rounds that one of them lacks are left out. */
export function ratios(turns: readonly Turn[], to: readonly Turn[], quantity: Quantity): number[] {
  return turns.flatMap((turn) => {
    const other = to.find((candidate) => candidate.round === turn.round && candidate.case === turn.case)
    return other === undefined || other[quantity] === 0 ? [] : [turn[quantity] / other[quantity]]
  })
}

/** The order of a round: each contestant is first in turn. */
export function rotated<T>(items: readonly T[], by: number): T[] {
  const first = items.length === 0 ? 0 : by % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
