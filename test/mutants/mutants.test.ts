/** Some of the planted bugs are found in every test run; test/long searches for all of them. */
import { expect, test } from 'vitest'
import { huntAll, planted } from './hunt.ts'
import { errorMessage } from '../../src/system/caught-error.ts'
import { CLASS_MUTANTS, SHARE_MUTANTS, SHARE_SIMULATION } from './class-mutants.ts'
import { COMPATIBILITY_MUTANTS } from './compatibility-mutants.ts'
import { MUTANTS, type Mutant } from './mutants.ts'
import { NODE_MUTANTS } from './node-mutants.ts'
import { REWRITING_MUTANTS, REWRITING_SIMULATION } from './rewriting-mutants.ts'
import { SAFETY_MUTANTS } from './safety-mutants.ts'
import { TLS_MUTANTS } from './tls-mutants.ts'
import { failedTests } from './test-hunt.ts'

const QUICK = ['250 before the commit', 'early expiry', 'a doubled notice']
const QUICK_OF_SHARES = [
  'a backlog is charged out of the order of due times',
  'a share offers a head at the present for each place of its destinations',
]

const ALL = [
  ...MUTANTS,
  ...CLASS_MUTANTS,
  ...COMPATIBILITY_MUTANTS,
  ...NODE_MUTANTS,
  ...REWRITING_MUTANTS,
  ...SAFETY_MUTANTS,
  ...TLS_MUTANTS,
]

/** The reason why a mutant cannot be planted; null when it can. */
function obstacle(mutant: Mutant): string | null {
  try {
    return planted(mutant).includes(mutant.by) ? null : `mutant "${mutant.name}" changes nothing`
  } catch (error) {
    return errorMessage(error)
  }
}

test('the text of each mutant occurs once', () => expect(ALL.map(obstacle).filter((why) => why !== null)).toEqual([]))

test('mutants are found', async () => {
  const catches = await huntAll(
    MUTANTS.filter(({ name }) => QUICK.includes(name)),
    100,
  )
  expect(catches.map(({ mutant }) => mutant.name).toSorted()).toEqual(QUICK.toSorted())
  expect(catches.filter(({ seed }) => seed === null)).toEqual([])
})

test('mutants of the replacement of recipients are found', { timeout: 120_000 }, async () => {
  const catches = await huntAll(REWRITING_MUTANTS, 100, REWRITING_SIMULATION)
  expect(catches.filter(({ seed }) => seed === null).map(({ mutant }) => mutant.name)).toEqual([])
})

test('mutants of fair shares are found by the bounds of waits', { timeout: 240_000 }, async () => {
  const catches = await huntAll(
    SHARE_MUTANTS.filter(({ name }) => QUICK_OF_SHARES.includes(name)),
    40,
    SHARE_SIMULATION,
  )
  expect(catches.map(({ mutant }) => mutant.name).toSorted()).toEqual(QUICK_OF_SHARES)
  expect(catches.filter(({ seed }) => seed === null)).toEqual([])
})

test('a submission that is not synced is found by its test', async () => {
  const mutant = SAFETY_MUTANTS.find(({ name }) => name === 'sendmail ends before its file is synced')
  expect(mutant === undefined ? [] : await failedTests(mutant)).toContain('sendmail ends with 0 after the file and its folder are synced')
})

test.each(COMPATIBILITY_MUTANTS)('a breach of compatibility is found when $name', { timeout: 400_000 }, async (mutant) => {
  expect(await failedTests(mutant)).toContain(mutant.fails)
})
