import { expect, test } from 'vitest'
import { countFrom } from '../support/figures.ts'
import { killCycles } from '../support/kill-cycles/kill-cycles.ts'

test('a daemon killed during submissions, operations and notices loses neither mail nor notices', async () => {
  const report = await killCycles({ cycles: countFrom('SHORT_KILL_CYCLES', 3), seed: 3 })
  expect(report.recipients).toBeGreaterThan(5)
})
