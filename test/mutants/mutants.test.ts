/** A handful of planted bugs is found with every test run; all of them are hunted in test/long. */
import { expect, test } from 'vitest'
import { huntAll, planted } from './hunt.ts'
import { MUTANTS } from './mutants.ts'

const QUICK = [
  '250 before the commit',
  'a lost recipient',
  'early expiry',
  'a forgotten window cut',
  'a doubled notice',
  'held mail is tried',
]

test.each(MUTANTS)('there is one place for the bug "$name"', (mutant) => {
  expect(planted(mutant)).toContain(mutant.by)
})

test('planted bugs are found', { timeout: 60_000 }, async () => {
  const catches = await huntAll(
    MUTANTS.filter(({ name }) => QUICK.includes(name)),
    100,
  )
  expect(catches.map(({ mutant }) => mutant.name).toSorted()).toEqual(QUICK.toSorted())
  expect(catches.filter(({ seed }) => seed === null)).toEqual([])
})
