import { afterAll, expect, test } from 'vitest'
import { CLASS_MUTANTS, SHARE_MUTANTS, SHARE_SIMULATION } from '../mutants/class-mutants.ts'
import { compilerErrors, huntAll } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'
import { NODE_MUTANTS } from '../mutants/node-mutants.ts'
import { REWRITING_MUTANTS } from '../mutants/rewriting-mutants.ts'
import { SAFETY_MUTANTS } from '../mutants/safety-mutants.ts'
import { TLS_MUTANTS } from '../mutants/tls-mutants.ts'
import { printFigures } from '../support/figures.ts'
import { failedTests } from '../mutants/test-hunt.ts'
import { portion } from './portion.ts'

/** The mutants of the part that is run. */
function portionOf<T>(subject: 'mutants/scheduler' | 'mutants/nodes' | 'mutants/tests', mutants: readonly T[]): readonly T[] {
  const { isIncluded, from, to } = portion(subject)
  return isIncluded ? mutants.slice(from - 1, to) : []
}

const ofScheduler = portionOf('mutants/scheduler', MUTANTS)
const ofNodes = portionOf('mutants/nodes', NODE_MUTANTS)
const ofTests = portionOf('mutants/tests', [...SAFETY_MUTANTS, ...TLS_MUTANTS, ...CLASS_MUTANTS])

const compiled = test.runIf(portion('mutants/compiled').isIncluded)

compiled('every planted bug compiles: one that names what does not exist would be found for that alone', { timeout: 900_000 }, async () => {
  expect(
    await compilerErrors([
      ...MUTANTS,
      ...NODE_MUTANTS.filter(({ file }) => file.startsWith('src/')),
      ...REWRITING_MUTANTS,
      ...SAFETY_MUTANTS,
      ...TLS_MUTANTS,
      ...CLASS_MUTANTS,
    ]),
  ).toEqual([])
})

test.runIf(ofScheduler.length > 0)('all mutants are found within 500 seeds', async () => {
  const catches = await huntAll(ofScheduler, 500)
  console.table(catches.map(({ mutant, seed, density, how }) => ({ mutant: mutant.name, 'caught by seed': seed, density, how })))
  const caught = catches.filter(({ seed }) => seed !== null)
  printFigures('mutants of the scheduler', { planted: catches.length, found: caught.length })
  expect(catches.filter((one) => !caught.includes(one)).map(({ mutant }) => mutant.name)).toEqual([])
})

test.runIf(ofNodes.length > 0)('all mutants of several nodes are found within 300 seeds', async () => {
  const catches = await huntAll(ofNodes, 300, 'nodes/simulate-nodes.ts')
  console.table(catches.map(({ mutant, seed, density, how }) => ({ mutant: mutant.name, 'caught by seed': seed, density, how })))
  const missed = catches.filter(({ seed }) => seed === null)
  printFigures('mutants of several nodes', { planted: catches.length, found: catches.length - missed.length })
  expect(missed.map(({ mutant }) => mutant.name)).toEqual([])
})

test.runIf(portion('mutants/shares').isIncluded)('all mutants of fair shares are found within 50 seeds', async () => {
  // Half of the seeds are searched first.
  const catches = await huntAll(SHARE_MUTANTS, 100, SHARE_SIMULATION)
  console.table(catches.map(({ mutant, seed, how }) => ({ mutant: mutant.name, 'caught by seed': seed, how })))
  const missed = catches.filter(({ seed, density }) => seed === null || seed > 50 || density === 'dense')
  printFigures('mutants of fair shares', { planted: catches.length, found: catches.length - missed.length })
  expect(missed.map(({ mutant }) => mutant.name)).toEqual([])
})

let found = 0
afterAll(() => {
  if (ofTests.length > 0) printFigures('mutants of the safety code', { planted: ofTests.length, found })
})

test.concurrent.each(ofTests)('$test finds: $name', { timeout: 900_000 }, async (mutant) => {
  const failed = await failedTests(mutant)
  if (failed.length > 0) found++
  expect(failed).not.toEqual([])
})
