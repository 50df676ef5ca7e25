/**
 * Simulates worlds by seed. As a command, `node test/simulation/simulate.ts FROM TO [--dense] [--rewritten | --shared] [--hash | --until-caught]`,
 * it prints a JSON line for each: its violations, or the hash of its history.
 */
import { generatedBy, type Density } from './generator.ts'
import { rewritten } from './rewriting.ts'
import { fairlyShared } from './shares/shared-scenario.ts'
import { violationsOf } from './violations.ts'
import { run } from './run.ts'
import { tell, type Scenario } from './scenario.ts'
import { shrink } from './shrink.ts'
import { reachedIn } from './sometimes.ts'
import type { Violation } from './replay.ts'

export interface Simulated {
  /** Every sometimes-state that was reached, with the number of worlds that reached it. */
  readonly reached: ReadonlyMap<string, number>
  /** Number of generated steps and faults: mail, operations, crashes, clock steps, full disks, faults of remote servers. */
  readonly steps: number
  /** Number of entries in the histories: attempts, replies, commits and others. */
  readonly events: number
}

/** Changes a generated scenario before it is simulated. */
type Change = (scenario: Scenario) => Scenario
const unchanged: Change = (scenario) => scenario

/** Simulates the worlds of these seeds. Throws at the first violation, with a reduced scenario. */
export async function simulate(from: number, to: number, density: Density = 'sparse', change: Change = unchanged): Promise<Simulated> {
  const reached = new Map<string, number>()
  let steps = 0
  let events = 0
  for (let seed = from; seed <= to; seed++) {
    const scenario = change(generatedBy(seed, density))
    const result = await run(scenario)
    const [first] = violationsOf(result)
    if (first !== undefined) throw new Error(await explained(scenario, first))
    for (const state of reachedIn(result)) reached.set(state, (reached.get(state) ?? 0) + 1)
    steps += troublesIn(scenario)
    events += result.history.trace.length
  }
  return { reached, steps, events }
}

const troublesIn = ({ steps, faults, crashes }: Scenario): number =>
  steps.filter((step) => step.do !== 'look').length + faults.length + crashes.length

/** Violations, and a reduced scenario with the same violation. */
async function explained(scenario: Scenario, { invariant, at, text }: Violation): Promise<string> {
  const smallest = await shrink(scenario, async (smaller) =>
    violationsOf(await run(smaller)).some((other) => other.invariant === invariant),
  )
  return `seed ${scenario.seed}, ${invariant}, ${at} ms after the beginning: ${text}\nThis is enough to see it:\n${tell(smallest)}`
}

if (process.argv[1] === import.meta.filename) {
  const [from = 1, to = 1] = process.argv.slice(2, 4).map(Number)
  const untilCaught = process.argv.includes('--until-caught')
  const change = process.argv.includes('--rewritten') ? rewritten : process.argv.includes('--shared') ? fairlyShared : unchanged
  const density: Density = process.argv.includes('--dense') ? 'dense' : 'sparse'
  for (let seed = from; seed <= to; seed++) {
    const result = await run(change(generatedBy(seed, density)))
    const found = process.argv.includes('--hash') ? undefined : violationsOf(result)[0]
    console.log(JSON.stringify({ seed, ...(process.argv.includes('--hash') ? { hash: result.history.hash() } : { found }) }))
    if (untilCaught && found !== undefined) break
  }
}
