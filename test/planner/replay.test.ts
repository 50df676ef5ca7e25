import fc from 'fast-check'
import { expect, test } from 'vitest'
import { replay } from '../../src/planner/replay.ts'

const WAITS = [300, 3_600]

test('a message is counted by the wait until the first planned attempt after its age', () => {
  const plan = { attempts: [0, 300, 900, 10_000], bounce: 20_000 }
  expect(replay(plan, [0, 100, 600], WAITS)).toEqual({ within: [3, 0], later: 0, returned: 0 })
  expect(replay(plan, [901, 7_000], WAITS)).toEqual({ within: [0, 1], later: 1, returned: 0 })
  expect(replay(plan, [10_000, 20_000], WAITS)).toEqual({ within: [0, 0], later: 1, returned: 1 })
})

test('each message is counted once, whatever its age and the plan', () => {
  const seconds = fc.integer({ min: 0, max: 500_000 })
  fc.assert(
    fc.property(fc.array(seconds), fc.array(seconds), fc.option(seconds), (ages, attempts, bounce) => {
      const { within, later, returned } = replay({ attempts: attempts.toSorted((a, b) => a - b), bounce }, ages, WAITS)
      expect(within.reduce((sum, one) => sum + one, 0) + later + returned).toBe(ages.length)
    }),
  )
})
