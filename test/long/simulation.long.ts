/** Thousands of simulated worlds; crashes at every commit of a long run, and ten thousand around notices. */
import { expect, test } from 'vitest'
import { generatedBy } from '../simulation/generator.ts'
import { violationsOf } from '../simulation/violations.ts'
import { run, type Run } from '../simulation/run.ts'
import type { CommitCrash, Scenario } from '../simulation/scenario.ts'
import { simulate } from '../simulation/simulate.ts'
import { SOMETIMES } from '../simulation/sometimes.ts'

test('2,000 seeds, no violation, every sometimes-state', async () => {
  const { reached, events } = await simulate(1, 2_000)
  console.log('2,000 worlds,', events, 'events:', Object.fromEntries(reached))
  expect(Object.keys(SOMETIMES).filter((state) => !reached.has(state))).toEqual([])
})

test('10,000 dense schedules with a million random steps, and no mail is stuck', async () => {
  const { steps, events } = await simulate(1, 10_000, 'dense')
  console.log('10,000 dense schedules,', steps, 'random steps,', events, 'events')
  expect(steps).toBeGreaterThan(1_000_000)
})

/** The first seed whose world makes about so many commits. */
async function longRun(least: number): Promise<Scenario> {
  for (let seed = 1; ; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [] }
    if ((await run(scenario)).commits >= least) return scenario
  }
}

test.each(['memory', 'file'] as const)('a run of 200 commits, killed at each of them in turn, with the queue in %s', async (storage) => {
  const scenario: Scenario = { ...(await longRun(200)), storage }
  const { commits } = await run(scenario)
  expect(commits).toBeGreaterThanOrEqual(200)
  for (let commit = 1; commit <= commits; commit++) {
    for (const side of ['before', 'after'] as const) {
      const violations = violationsOf(await run({ ...scenario, crashes: [{ commit, side, downFor: 0 }] }))
      expect({ commit, side, violations }).toEqual({ commit, side, violations: [] })
    }
  }
})

/** Commits between the record of a failure and the commit of its notice. */
function aroundNotices({ history }: Run): readonly CommitCrash[] {
  return history.trace.flatMap(({ event }): CommitCrash[] => {
    if (!('did' in event) || event.did !== 'committed') return []
    const { method, number, settlement } = event as {
      method?: string
      number?: number
      settlement?: { recipients: { noticeDue?: string }[] }
    }
    const owes = settlement?.recipients.some(({ noticeDue }) => noticeDue !== undefined) === true
    if (number === undefined || (method !== 'report' && !owes)) return []
    return (['before', 'after'] as const).map((side) => ({ commit: number, side, downFor: 0 }))
  })
}

test('10,000 crashes between outcome and notice: none lost, none doubled', async () => {
  let crashes = 0
  for (let seed = 1; crashes < 10_000; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [], storage: 'memory' }
    for (const crash of aroundNotices(await run(scenario))) {
      const violations = violationsOf(await run({ ...scenario, crashes: [crash] }))
      expect({ seed, crash, violations }).toEqual({ seed, crash, violations: [] })
      crashes++
    }
  }
  console.log(crashes, 'crashes between outcome and notice')
})
