/** Simulated clusters of three nodes over one queue, by seed. */
import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { simulateNodes } from '../simulation/nodes/simulate-nodes.ts'
import { portion } from './portion.ts'

for (const density of ['sparse', 'dense'] as const) {
  const { isIncluded, from, to } = portion(`simulated-nodes/${density}`)
  test.runIf(isIncluded)(`seeds ${from} to ${to}, ${density}: no violation`, async () => {
    const { figures } = await simulateNodes(from, to, density)
    printFigures(`simulated nodes, ${density}`, { seeds: `${from}–${to}`, ...figures })
    expect(figures.takeovers).toBeGreaterThan(0)
  })
}
