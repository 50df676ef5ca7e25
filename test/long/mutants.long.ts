import { expect, test } from 'vitest'
import { compilerErrors, huntAll } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'
import { NODE_MUTANTS } from '../mutants/node-mutants.ts'
import { REWRITING_MUTANTS } from '../mutants/rewriting-mutants.ts'
import { SAFETY_MUTANTS } from '../mutants/safety-mutants.ts'
import { TLS_MUTANTS } from '../mutants/tls-mutants.ts'
import { printFigures } from '../support/figures.ts'
import { failedTests } from '../mutants/test-hunt.ts'

test('every planted bug compiles: one that names what does not exist would be found for that alone', { timeout: 300_000 }, async () => {
  expect(
    await compilerErrors([
      ...MUTANTS,
      ...NODE_MUTANTS.filter(({ file }) => file.startsWith('src/')),
      ...REWRITING_MUTANTS,
      ...SAFETY_MUTANTS,
      ...TLS_MUTANTS,
    ]),
  ).toEqual([])
})

test('all mutants are found within 500 seeds', async () => {
  const catches = await huntAll(MUTANTS, 500)
  console.table(catches.map(({ mutant, seed, density, how }) => ({ mutant: mutant.name, 'caught by seed': seed, density, how })))
  const caught = catches.filter(({ seed }) => seed !== null)
  printFigures('mutants of the scheduler', { planted: catches.length, found: caught.length })
  expect(catches.filter((one) => !caught.includes(one)).map(({ mutant }) => mutant.name)).toEqual([])
})

test('all mutants of several nodes are found within 300 seeds', async () => {
  const catches = await huntAll(NODE_MUTANTS, 300, 'nodes/simulate-nodes.ts')
  console.table(catches.map(({ mutant, seed, density, how }) => ({ mutant: mutant.name, 'caught by seed': seed, density, how })))
  expect(catches.filter(({ seed }) => seed === null).map(({ mutant }) => mutant.name)).toEqual([])
})

test.concurrent.each([...SAFETY_MUTANTS, ...TLS_MUTANTS])('$test finds: $name', { timeout: 900_000 }, async (mutant) => {
  expect(await failedTests(mutant)).not.toEqual([])
})
