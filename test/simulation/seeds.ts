/** The same test for several ranges of seeds, each in a file of its own so that they run side by side. */
import { expect, test } from 'vitest'
import { simulate } from './simulate.ts'
import { SOMETIMES } from './sometimes.ts'

export function testSeeds(from: number, to: number, timeout: number): void {
  test(`worlds ${from} to ${to}: nothing that must hold is violated, and everything interesting happens`, { timeout }, async () => {
    const { reached, events } = await simulate(from, to)
    expect(Object.keys(SOMETIMES).filter((state) => !reached.has(state))).toEqual([])
    expect(events).toBeGreaterThan((to - from) * 100)
  })
}
