import { expect, test } from 'vitest'
import { killedUnderLoad } from '../support/killed-under-load.ts'

test('a relay killed under load, at any moment, loses no mail', { timeout: 300_000 }, async () => {
  const tally = await killedUnderLoad(7, 1)
  expect(tally.acknowledged).toBeGreaterThan(50)
  expect(tally.notices).toBeGreaterThan(2)
})
