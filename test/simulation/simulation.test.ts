/** Guarantees of the simulation: equal seeds give equal worlds on every machine, and a failure is reported so that it can be repeated. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generatedBy } from './generator.ts'
import { violationsOf } from './violations.ts'
import { run } from './run.ts'
import { shrink } from './shrink.ts'

const hashesOf = (from: number, to: number): readonly string[] =>
  execFileSync(process.execPath, [join(import.meta.dirname, 'simulate.ts'), String(from), String(to), '--hash'], { encoding: 'utf8' })
    .trim()
    .split('\n')

test('the same seeds give the same histories in three processes, and other seeds give others', async () => {
  const once = hashesOf(1, 10)
  expect(hashesOf(1, 10)).toEqual(once)
  expect(new Set(once.map((line) => (JSON.parse(line) as { hash: string }).hash)).size).toBe(10)
  const { history } = await run(generatedBy(10))
  expect(JSON.parse(once.at(-1) ?? '')).toEqual({ seed: 10, hash: history.hash() })
})

test('a relay killed at each of its commits in turn loses no mail', async () => {
  const scenario = { ...generatedBy(24), crashes: [], storage: 'memory' as const }
  const { commits } = await run(scenario)
  expect(commits).toBeGreaterThan(40)
  for (let commit = 1; commit <= commits; commit++) {
    for (const side of ['before', 'after'] as const) {
      const result = await run({ ...scenario, crashes: [{ commit, side, downFor: 0 }] })
      expect({ commit, side, violations: violationsOf(result) }).toEqual({ commit, side, violations: [] })
    }
  }
})

test('a failing scenario is shrunk to what makes it fail', async () => {
  const scenario = generatedBy(14)
  const holdsSomething = async ({ steps }: typeof scenario) =>
    steps.some((step) => step.do === 'mail') && steps.some((step) => step.do !== 'mail')
  expect(await holdsSomething(scenario)).toBe(true)
  const { steps, faults, crashes, tables } = await shrink(scenario, holdsSomething)
  expect([steps.length, faults, crashes, tables]).toEqual([2, [], [], {}])
})

test.each([
  [212, 'a destination tried while the order to resume it waited for a full disk'],
  [384, 'the same, with a probe that failed'],
  [4902, 'a warning of mail that was given up while it was being written'],
  [406, 'mail given up by an operator widened the window as if it were being delivered'],
])('regression, dense seed %i: %s', async (seed) => {
  expect(violationsOf(await run(generatedBy(seed, 'dense')))).toEqual([])
})

test.each([
  [4566, 'mail in memory when its lifetime ends, given back because its destination died'],
  [4920, 'the same, with more commits between'],
  [2337, 'mail released after its lifetime, behind a dead destination'],
  [6067, 'a window that should have been forgotten while its mail waited for a slot'],
  [7443, 'the same, on a full disk'],
])('regression, seed %i: %s', async (seed) => {
  expect(violationsOf(await run(generatedBy(seed)))).toEqual([])
})
