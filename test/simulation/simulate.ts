/**
 * Simulates worlds by seed. As a command, `node test/simulation/simulate.ts FROM TO [--stormy] [--hash | --until-caught]`,
 * it prints a JSON line for each: what is wrong with it, or the identity of its history.
 */
import { generatedBy, type Weather } from './generator.ts'
import { judge } from './judge.ts'
import { run } from './run.ts'
import { tell, type Scenario } from './scenario.ts'
import { shrink } from './shrink.ts'
import { reachedIn } from './sometimes.ts'
import type { Violation } from './witness.ts'

export interface Simulated {
  /** Every sometimes-state that was reached, and by how many worlds. */
  readonly reached: ReadonlyMap<string, number>
  /** What was drawn by chance and done to the relays: mail, orders, crashes, clock steps, full disks, faults of the far side. */
  readonly steps: number
  /** Entries of the histories: attempts, replies, commits and the rest. */
  readonly events: number
}

/** Simulates the worlds of these seeds. Throws, with a cut-down scenario, at the first one in which something is wrong. */
export async function simulate(from: number, to: number, weather: Weather = 'fair'): Promise<Simulated> {
  const reached = new Map<string, number>()
  let steps = 0
  let events = 0
  for (let seed = from; seed <= to; seed++) {
    const scenario = generatedBy(seed, weather)
    const result = await run(scenario)
    const [first] = judge(result)
    if (first !== undefined) throw new Error(await explained(scenario, first))
    for (const state of reachedIn(result)) reached.set(state, (reached.get(state) ?? 0) + 1)
    steps += troublesIn(scenario)
    events += result.history.events.length
  }
  return { reached, steps, events }
}

const troublesIn = ({ steps, faults, crashes }: Scenario): number =>
  steps.filter((step) => step.do !== 'look').length + faults.length + crashes.length

/** What is wrong, and a small scenario in which the same is. */
async function explained(scenario: Scenario, { invariant, at, text }: Violation): Promise<string> {
  const smallest = await shrink(scenario, async (smaller) => judge(await run(smaller)).some((other) => other.invariant === invariant))
  return `seed ${scenario.seed}, ${invariant}, ${at} ms after the beginning: ${text}\nThis is enough to see it:\n${tell(smallest)}`
}

if (process.argv[1] === import.meta.filename) {
  const [from = 1, to = 1] = process.argv.slice(2, 4).map(Number)
  const untilCaught = process.argv.includes('--until-caught')
  const weather: Weather = process.argv.includes('--stormy') ? 'stormy' : 'fair'
  for (let seed = from; seed <= to; seed++) {
    const result = await run(generatedBy(seed, weather))
    const found = process.argv.includes('--hash') ? undefined : judge(result)[0]
    console.log(JSON.stringify({ seed, ...(process.argv.includes('--hash') ? { hash: result.history.hash() } : { found }) }))
    if (untilCaught && found !== undefined) break
  }
}
