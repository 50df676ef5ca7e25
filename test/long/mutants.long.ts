import { expect, test } from 'vitest'
import { huntAll } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'

test('of the bugs planted by hand at least 95 % are found within 500 seeds', async () => {
  const catches = await huntAll(MUTANTS, 500)
  console.table(catches.map(({ mutant, seed, weather, how }) => ({ mutant: mutant.name, 'caught by seed': seed, weather, how })))
  const caught = catches.filter(({ seed }) => seed !== null)
  expect(caught.length / catches.length).toBeGreaterThanOrEqual(0.95)
})
