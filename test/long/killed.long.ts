import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { killedUnderLoad } from '../support/killed-under-load.ts'

test('a relay that is killed 210 times under load loses nothing', async () => {
  const tally = await killedUnderLoad(210, 2)
  printFigures('a relay killed under load', { kills: 210, ...tally })
  expect(tally.acknowledged).toBeGreaterThan(5_000)
})
