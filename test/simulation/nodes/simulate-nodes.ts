/**
 * Simulates several nodes by seed. As a command, `node test/simulation/nodes/simulate-nodes.ts FROM TO [--dense] [--hash | --until-caught]`
 * prints a JSON line for each: its violations, or the hash of its history.
 */
import type { Density } from '../generator.ts'
import { tell } from '../scenario.ts'
import { nodesBy, tellFaults } from './node-scenario.ts'
import { nodeViolationsOf } from './node-invariants.ts'
import { runNodes } from './run-nodes.ts'

export interface SimulatedNodes {
  /** Numbers of node faults, takeovers, calls in doubt, late requests, and late requests that were refused. */
  readonly figures: Readonly<Record<'faults' | 'takeovers' | 'inDoubt' | 'late' | 'refused' | 'deliveries', number>>
}

/** Simulates the clusters of these seeds. Throws at the first violation. */
export async function simulateNodes(from: number, to: number, density: Density = 'sparse'): Promise<SimulatedNodes> {
  const figures = { faults: 0, takeovers: 0, inDoubt: 0, late: 0, refused: 0, deliveries: 0 }
  for (let seed = from; seed <= to; seed++) {
    const scenario = nodesBy(seed, density)
    const result = await runNodes(scenario)
    const [first] = nodeViolationsOf(result)
    if (first !== undefined) {
      const { invariant, at, text } = first
      throw new Error(`seed ${seed}, ${invariant}, ${at} ms after the beginning: ${text}\n${tell(scenario)}\n${tellFaults(scenario)}`)
    }
    figures.faults += scenario.nodeFaults.length + scenario.commitFaults.length
    for (const { event } of result.history.events) {
      if (!('did' in event)) continue
      if (event.did === 'node ended' && event['taker'] !== event['node']) figures.takeovers++
      if (event.did === 'began') figures.deliveries++
    }
    for (const name of ['inDoubt', 'late', 'refused'] as const) figures[name] += result.counts[name]
  }
  return { figures }
}

if (process.argv[1] === import.meta.filename) {
  const [from = 1, to = 1] = process.argv.slice(2, 4).map(Number)
  const untilCaught = process.argv.includes('--until-caught')
  const density: Density = process.argv.includes('--dense') ? 'dense' : 'sparse'
  for (let seed = from; seed <= to; seed++) {
    const result = await runNodes(nodesBy(seed, density))
    const found = process.argv.includes('--hash') ? undefined : nodeViolationsOf(result)[0]
    console.log(JSON.stringify({ seed, ...(process.argv.includes('--hash') ? { hash: result.history.hash() } : { found }) }))
    if (untilCaught && found !== undefined) break
  }
}
