import { expect, test } from 'vitest'
import { killedUnderLoad } from '../support/crash-story.ts'

test('a relay that is killed under load, at any moment, loses nothing', { timeout: 90_000 }, async () => {
  const tally = await killedUnderLoad(14, 1)
  expect(tally.acknowledged).toBeGreaterThan(100)
  expect(tally.notices).toBeGreaterThan(5)
})
