import { expect, test } from 'vitest'
import { killedUnderLoad } from '../support/killed-under-load.ts'

test('a relay that is killed 210 times under load loses nothing', async () => {
  const tally = await killedUnderLoad(210, 2)
  console.log('killed 210 times:', tally)
  expect(tally.acknowledged).toBeGreaterThan(5_000)
})
