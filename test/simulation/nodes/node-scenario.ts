/** Scenarios for several nodes: mail, operators and remote servers as for one relay, and faults of nodes, connections and the database. */
import { HOUR, MINUTE, SECOND, type Duration } from '../../../src/system/clock.ts'
import { Dice, generatedBy, type Density } from '../generator.ts'
import type { Scenario, Step } from '../scenario.ts'
import type { StandingClock } from './node.ts'

export type NodeFault = { readonly at: Duration } & (
  | { readonly fault: 'kill' | 'leave'; readonly node: number; readonly time: Duration }
  | { readonly fault: 'pause'; readonly node: number; readonly time: Duration; readonly still: StandingClock }
  | { readonly fault: 'cut'; readonly node: number; readonly time: Duration }
  | { readonly fault: 'away' | 'fail over'; readonly time: Duration }
  /** Requests and answers are lost or late, each with this probability. */
  | { readonly fault: 'disturb'; readonly probability: number; readonly time: Duration }
  | { readonly fault: 'set the clock'; readonly step: Duration }
)

/**
 * Strikes the node that makes the n-th commit, before it gets the answer. With `late`, the n-th request itself is delivered after the
 * time, and its node is cut off for longer.
 */
export type CommitFault = { readonly commit: number } & (
  | { readonly fault: 'kill' | 'cut' | 'late'; readonly time: Duration }
  | { readonly fault: 'pause'; readonly time: Duration; readonly still: StandingClock }
)

export interface NodeScenario extends Scenario {
  readonly nodes: number
  readonly lease: Duration
  readonly nodeFaults: readonly NodeFault[]
  readonly commitFaults: readonly CommitFault[]
}

/** Steps that need one relay. */
const ALONE: ReadonlySet<Step['do']> = new Set(['crash', 'restart', 'fill the disk', 'set the clock'])

export function nodesBy(seed: number, density: Density = 'sparse'): NodeScenario {
  const { config, ...scenario } = generatedBy(seed, density)
  const dice = new Dice(seed ^ 0x6e6f6465)
  const lease = dice.one([40, 80]) * SECOND
  const commitTakes = dice.one([1, 10, 100, 400])
  const steps = scenario.steps.filter((step) => !ALONE.has(step.do))
  const mails = steps.flatMap((step) => (step.do === 'mail' ? [step.at] : []))
  const last = Math.max(10 * lease, steps.at(-1)?.at ?? 0)
  const count = density === 'dense' ? dice.number(20, 40) : dice.number(4, 10)
  // Many faults come while a message is queued, claimed or settled.
  const moment = () => (dice.chance(0.6) ? dice.one(mails) + dice.number(0, 8 * commitTakes) : dice.number(0, last))
  const faults = dice.many(count, () => ({ at: moment(), ...faultOf(dice, lease) }))
  return {
    ...scenario,
    config,
    steps,
    commitTakes,
    crashes: [],
    storage: 'memory',
    nodes: 3,
    lease,
    nodeFaults: faults.toSorted((a, b) => a.at - b.at),
    commitFaults: dice.many(density === 'dense' ? 10 : 4, () => commitFault(dice, lease)),
  }
}

type Fault = NodeFault extends infer F ? (F extends NodeFault ? Omit<F, 'at'> : never) : never

/** The wall clock is set forward only: a clock that is set back while the monotonic clock stands still is a limit of node-lease. */
function faultOf(dice: Dice, lease: Duration): Fault {
  const node = dice.number(0, 2)
  const time = dice.one([lease / 10, lease / 2, lease, 2 * lease, 5 * lease])
  return dice.one<Fault>([
    { fault: 'kill', node, time: dice.one([0, SECOND, 3 * lease]) },
    { fault: 'kill', node, time: dice.one([0, SECOND, 3 * lease]) },
    { fault: 'leave', node, time },
    { fault: 'pause', node, time, still: 'none' },
    { fault: 'pause', node, time, still: 'monotonic' },
    { fault: 'pause', node, time, still: 'wall' },
    { fault: 'cut', node, time },
    { fault: 'cut', node, time },
    { fault: 'away', time },
    { fault: 'fail over', time: time / 4 },
    { fault: 'disturb', probability: dice.one([0.02, 0.1, 0.3]), time: dice.one([lease, 10 * lease]) },
    { fault: 'set the clock', step: dice.one([MINUTE, 10 * MINUTE, HOUR]) },
  ])
}

function commitFault(dice: Dice, lease: Duration): CommitFault {
  const commit = dice.number(1, dice.one([20, 60, 200]))
  const time = dice.one([lease / 2, 2 * lease, 3 * lease])
  const still = dice.one<StandingClock>(['none', 'monotonic', 'wall'])
  const fault = dice.one(['kill', 'cut', 'pause', 'late'] as const)
  return fault === 'pause' ? { commit, fault, time, still } : { commit, fault, time }
}

/** Lines that reproduce the faults. */
export const tellFaults = ({ nodeFaults, commitFaults, lease }: NodeScenario): string =>
  [
    `lease ${lease} ms`,
    ...nodeFaults.map((fault) => `node fault ${JSON.stringify(fault)}`),
    ...commitFaults.map((fault) => `commit fault ${JSON.stringify(fault)}`),
  ].join('\n')
