/** A retry policy applied to mail that waits: when each message would be tried next if the policy had applied since its arrival. Pure. */

/** A plan with ages in seconds; a null stands for an age that is not finite. */
interface PlannedAges {
  readonly attempts: readonly (number | null)[]
  /** Age at which mail is returned; null for never. */
  readonly bounce: number | null
}

export interface Replay {
  /** Messages that are tried within each of the waits, in their order. A message is counted once. */
  readonly within: readonly number[]
  readonly later: number
  /** Messages that are returned at once, because they are older than the lifetime. */
  readonly returned: number
}

/** Counts messages of these ages by the wait until their next attempt. `waits` ascend; all values are in seconds. */
export function replay({ attempts, bounce }: PlannedAges, ages: readonly number[], waits: readonly number[]): Replay {
  const within = waits.map(() => 0)
  let [later, returned] = [0, 0]
  for (const age of ages) {
    if (bounce !== null && age >= bounce) {
      returned++
      continue
    }
    const next = attempts.find((planned) => planned !== null && planned > age) ?? null
    const place = next === null ? -1 : waits.findIndex((wait) => next - age <= wait)
    if (place < 0) later++
    else within[place] = (within[place] ?? 0) + 1
  }
  return { within, later, returned }
}
