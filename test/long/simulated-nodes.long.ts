/** Simulated clusters of three nodes over one queue, by seed. A seed takes about half a second. */
import { expect, test } from 'vitest'
import { simulateNodes } from '../simulation/nodes/simulate-nodes.ts'

// A slice of the seeds has for example NODE_SEEDS_FROM=501 NODE_SEEDS_TO=1000.
const { NODE_SEEDS_FROM = '1', NODE_SEEDS_TO = '2000' } = process.env
const [from, to] = [Number(NODE_SEEDS_FROM), Number(NODE_SEEDS_TO)]

test.each(['sparse', 'dense'] as const)(`seeds ${from} to ${to}, %s: no violation`, async (density) => {
  const { figures } = await simulateNodes(from, to, density)
  console.log(`seeds ${from} to ${to}, ${density}:`, JSON.stringify(figures))
  expect(figures.takeovers).toBeGreaterThan(0)
})
