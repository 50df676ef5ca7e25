/** Hostile patterns, queries, bodies and plans do not keep a relay from its mail. Their full form is in test/long. */
import { expect, test } from 'vitest'
import { ANSWERED_WITHIN, hostileRun, slowest, unfit } from '../support/hostile-run.ts'

test('each hostile request is answered within 10 s, by a refusal, a list or a page, and greetings go on', async () => {
  const run = await hostileRun({ messages: 20, size: 1 })
  expect(run.answers.length).toBeGreaterThan(60)
  expect(unfit(run)).toEqual([])
  expect(run.answers.filter(({ delay }) => delay > ANSWERED_WITHIN)).toEqual([])
  expect(run.greetings.length).toBeGreaterThan(10)
  expect(run.accepted).toBeGreaterThan(0)
  expect(slowest(run, 'delay')).toBeLessThan(1_000)
})
