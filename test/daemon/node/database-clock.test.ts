import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordOf } from '../../../src/daemon/node/database-clock.ts'
import { resumedAt } from '../../../src/system/queue-clock.ts'

test('the clock of a node continues at the time of the database, whatever the wall clock is and however long the answer took', () => {
  const reading = fc.record({ wall: fc.nat(2e12), ahead: fc.integer({ min: -1e11, max: 1e11 }), there: fc.nat(500), back: fc.nat(500) })
  fc.assert(
    fc.property(reading, ({ wall, ahead, there, back }) => {
      const answered = wall + there + back
      const record = recordOf({ sent: wall, database: wall + ahead + there, answered, machine: { uptime: 7_000, boot: 42 } })
      const now = resumedAt(record, { wall: answered, uptime: 7_000, boot: 42 }, 4_000_000)
      expect(Math.abs(now - (answered + ahead))).toBeLessThanOrEqual((there + back) / 2 + 1)
    }),
  )
})
