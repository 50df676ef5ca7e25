/** Thousands of simulated clusters of three nodes. */
import { expect, test } from 'vitest'
import { simulateNodes } from '../simulation/nodes/simulate-nodes.ts'
import { printFigures } from '../support/figures.ts'

test('2,000 seeds of three nodes, and no violation', { timeout: 7_200_000 }, async () => {
  const { figures } = await simulateNodes(1, 2_000)
  printFigures('three nodes, 2,000 seeds', figures)
  expect(figures.takeovers).toBeGreaterThan(2_000)
  expect(figures.refused).toBeGreaterThan(100)
})

test('300 dense seeds of three nodes, and no violation', { timeout: 7_200_000 }, async () => {
  const { figures } = await simulateNodes(1, 300, 'dense')
  printFigures('three nodes, 300 dense seeds', figures)
  expect(figures.faults).toBeGreaterThan(5_000)
})
