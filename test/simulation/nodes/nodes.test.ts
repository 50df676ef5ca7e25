/** Three nodes over one queue, with faults of nodes, connections and the database; test/long/simulated-nodes has 2,000 seeds. */
import { expect, test } from 'vitest'
import { nodesBy } from './node-scenario.ts'
import { runNodes } from './run-nodes.ts'
import { simulateNodes } from './simulate-nodes.ts'

test('seeds 1 to 6: no mail is lost, no node changes the mail of another, and no delivery begins after a takeover', async () => {
  const { figures } = await simulateNodes(1, 6)
  expect(figures.faults).toBeGreaterThan(40)
  expect(figures.takeovers).toBeGreaterThan(5)
  expect(figures.deliveries).toBeGreaterThan(30)
})

test('equal seeds give equal histories', async () => {
  const [once, again] = [await runNodes(nodesBy(3)), await runNodes(nodesBy(3))]
  expect(once.history.hash()).toBe(again.history.hash())
})
