/** Thousands of simulated worlds; crashes at every commit of a long run, and ten thousand around notices. */
import { expect, test } from 'vitest'
import { generatedBy } from '../simulation/generator.ts'
import { judge } from '../simulation/judge.ts'
import { run, type Run } from '../simulation/run.ts'
import type { CommitCrash, Scenario } from '../simulation/scenario.ts'
import { simulate } from '../simulation/simulate.ts'
import { SOMETIMES } from '../simulation/sometimes.ts'

test('2,000 seeds, no violation, every sometimes-state', async () => {
  const { reached, events } = await simulate(1, 2_000)
  console.log('2,000 worlds,', events, 'events:', Object.fromEntries(reached))
  expect(Object.keys(SOMETIMES).filter((state) => !reached.has(state))).toEqual([])
})

test('10,000 stormy schedules with a million random steps, and nothing is ever stuck', async () => {
  const { steps, events } = await simulate(1, 10_000, 'stormy')
  console.log('10,000 stormy schedules,', steps, 'random steps,', events, 'events')
  expect(steps).toBeGreaterThan(1_000_000)
})

/** The first seed whose world makes about so many commits. */
async function longRun(least: number): Promise<Scenario> {
  for (let seed = 1; ; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [] }
    if ((await run(scenario)).commits >= least) return scenario
  }
}

test.each(['memory', 'file'] as const)('a run of 200 commits, killed at each of them in turn, its queue in %s', async (storage) => {
  const scenario: Scenario = { ...(await longRun(200)), storage }
  const { commits } = await run(scenario)
  expect(commits).toBeGreaterThanOrEqual(200)
  for (let commit = 1; commit <= commits; commit++) {
    for (const side of ['before', 'after'] as const) {
      const violations = judge(await run({ ...scenario, crashes: [{ commit, side, downFor: 0 }] }))
      expect({ commit, side, violations }).toEqual({ commit, side, violations: [] })
    }
  }
})

/** Commits between which a failure is known and its notice is not yet in the queue, or has just come to be. */
function aroundNotices({ history }: Run): readonly CommitCrash[] {
  return history.events.flatMap(({ event }): CommitCrash[] => {
    if (!('did' in event) || event.did !== 'committed') return []
    const { method, number, settlement } = event as { method?: string; number?: number; settlement?: { recipients: { debt?: string }[] } }
    const owes = settlement?.recipients.some(({ debt }) => debt !== undefined) === true
    if (number === undefined || (method !== 'report' && !owes)) return []
    return (['before', 'after'] as const).map((side) => ({ commit: number, side, downFor: 0 }))
  })
}

test('10,000 crashes between outcome and notice: none lost, none doubled', async () => {
  let crashes = 0
  for (let seed = 1; crashes < 10_000; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [], storage: 'memory' }
    for (const crash of aroundNotices(await run(scenario))) {
      const violations = judge(await run({ ...scenario, crashes: [crash] }))
      expect({ seed, crash, violations }).toEqual({ seed, crash, violations: [] })
      crashes++
    }
  }
  console.log(crashes, 'crashes between outcome and notice')
})
