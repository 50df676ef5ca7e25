/** Thousands of simulated worlds; crashes at every commit of a long run, and ten thousand around notices. */
import { expect, test } from 'vitest'
import { generatedBy } from '../simulation/generator.ts'
import { violationsOf } from '../simulation/violations.ts'
import { run, type Run } from '../simulation/run.ts'
import type { CommitCrash, Scenario } from '../simulation/scenario.ts'
import { fairlyShared } from '../simulation/shares/shared-scenario.ts'
import { simulate } from '../simulation/simulate.ts'
import { SOMETIMES } from '../simulation/sometimes.ts'
import { printFigures } from '../support/figures.ts'
import { portion } from './portion.ts'

test.runIf(portion('simulation/sparse').isIncluded)('2,000 seeds, no violation, every sometimes-state', async () => {
  const { reached, events } = await simulate(1, 2_000)
  printFigures('simulated worlds', { worlds: 2_000, events, 'worlds with each state': Object.fromEntries(reached) })
  expect(Object.keys(SOMETIMES).filter((state) => !reached.has(state))).toEqual([])
})

const dense = portion('simulation/dense')

test.runIf(dense.isIncluded)(`dense schedules ${dense.from} to ${dense.to} leave no mail stuck`, async () => {
  const schedules = dense.to - dense.from + 1
  const { steps, events } = await simulate(dense.from, dense.to, 'dense')
  printFigures('dense schedules', { schedules, 'random steps': steps, events })
  expect(steps).toBeGreaterThan(50 * schedules)
})

const shared = portion('simulation/shares')

test.runIf(shared.isIncluded)(`worlds ${shared.from} to ${shared.to} with fair shares: waits are bounded`, async () => {
  const { events } = await simulate(shared.from, shared.to, 'sparse', fairlyShared)
  printFigures('worlds with fair shares', { worlds: `${shared.from}–${shared.to}`, events })
  expect(events).toBeGreaterThan(500 * (shared.to - shared.from + 1))
})

/** The first seed whose world makes about so many commits. */
async function longRun(least: number): Promise<Scenario> {
  for (let seed = 1; ; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [] }
    if ((await run(scenario)).commits >= least) return scenario
  }
}

const storages = portion('simulation/commits').isIncluded ? (['memory', 'file'] as const) : []

test.each(storages)('a run of 200 commits, killed at each of them in turn, with the queue in %s', async (storage) => {
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

const { isIncluded, from, to } = portion('simulation/notices')

test.runIf(isIncluded)(`crashes between outcome and notice in the worlds ${from} to ${to}: none lost, none doubled`, async () => {
  let crashes = 0
  for (let seed = from; seed <= to; seed++) {
    const scenario: Scenario = { ...generatedBy(seed), crashes: [], storage: 'memory' }
    for (const crash of aroundNotices(await run(scenario))) {
      const violations = violationsOf(await run({ ...scenario, crashes: [crash] }))
      expect({ seed, crash, violations }).toEqual({ seed, crash, violations: [] })
      crashes++
    }
  }
  printFigures('crashes between outcome and notice', { worlds: `${from}–${to}`, crashes })
  expect(crashes).toBeGreaterThan(to - from)
})
