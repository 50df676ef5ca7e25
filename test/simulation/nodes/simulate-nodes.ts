/**
 * Simulates several nodes by seed. As a command, `node test/simulation/nodes/simulate-nodes.ts FROM TO [--dense | --both]
 * [--hash | --until-caught]` prints a JSON line for each: its first violation, or the hash of its history. The last line has the numbers
 * of simulated clusters and of violations, and the figures, unless `--hash` or `--until-caught` is given.
 */
import type { Density } from '../generator.ts'
import { tell } from '../scenario.ts'
import { nodesBy, tellFaults, type NodeScenario } from './node-scenario.ts'
import { nodeViolationsOf } from './node-invariants.ts'
import { runNodes, type NodeRun } from './run-nodes.ts'

/** Numbers of node faults, takeovers, calls in doubt, late requests, late requests that were refused, and deliveries. */
type Figures = Record<'faults' | 'takeovers' | 'inDoubt' | 'late' | 'refused' | 'deliveries', number>

export interface SimulatedNodes {
  readonly figures: Readonly<Figures>
}

const noFigures = (): Figures => ({ faults: 0, takeovers: 0, inDoubt: 0, late: 0, refused: 0, deliveries: 0 })

/** Adds those of one run. */
function count(figures: Figures, { nodeFaults, commitFaults }: NodeScenario, { history, counts }: NodeRun): void {
  figures.faults += nodeFaults.length + commitFaults.length
  for (const { event } of history.trace) {
    if (!('did' in event)) continue
    if (event.did === 'node ended' && event['taker'] !== event['node']) figures.takeovers++
    if (event.did === 'began') figures.deliveries++
  }
  for (const name of ['inDoubt', 'late', 'refused'] as const) figures[name] += counts[name]
}

/** Simulates the clusters of these seeds. Throws at the first violation. */
export async function simulateNodes(from: number, to: number, density: Density = 'sparse'): Promise<SimulatedNodes> {
  const figures = noFigures()
  for (let seed = from; seed <= to; seed++) {
    const scenario = nodesBy(seed, density)
    const result = await runNodes(scenario)
    const [first] = nodeViolationsOf(result)
    if (first !== undefined) {
      const { invariant, at, text } = first
      throw new Error(`seed ${seed}, ${invariant}, ${at} ms after the beginning: ${text}\n${tell(scenario)}\n${tellFaults(scenario)}`)
    }
    count(figures, scenario, result)
  }
  return { figures }
}

function densitiesIn(options: readonly string[]): readonly Density[] {
  if (options.includes('--both')) return ['sparse', 'dense']
  return options.includes('--dense') ? ['dense'] : ['sparse']
}

async function main([from = '1', to = '1', ...options]: readonly string[]): Promise<void> {
  const figures = noFigures()
  const [asHash, untilCaught] = [options.includes('--hash'), options.includes('--until-caught')]
  const clusters = { simulated: 0, violations: 0 }
  for (let seed = Number(from); seed <= Number(to); seed++) {
    for (const density of densitiesIn(options)) {
      const scenario = nodesBy(seed, density)
      const result = await runNodes(scenario)
      clusters.simulated++
      const found = asHash ? undefined : nodeViolationsOf(result)[0]
      console.log(JSON.stringify({ seed, density, ...(asHash ? { hash: result.history.hash() } : { found }) }))
      if (untilCaught && found !== undefined) return
      if (found !== undefined) clusters.violations++
      count(figures, scenario, result)
    }
  }
  if (!asHash && !untilCaught) console.log(JSON.stringify({ from, to, ...clusters, figures }))
}

if (process.argv[1] === import.meta.filename) await main(process.argv.slice(2))
