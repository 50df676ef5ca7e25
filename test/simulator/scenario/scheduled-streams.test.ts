/** Streams whose messages have times and a limit of their own. */
import { expect, test } from 'vitest'
import { readScenario } from '../../../src/simulator/scenario/scenario-file.ts'
import { runScenario } from '../../../src/simulator/scenario/scenario-run.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/system/clock.ts'

const run = async (mail: string) => {
  const text = `[mail]\nmessages = 2\nto = "provider.example"\n${mail}\n[rule.busy]\nat = "rcpt"\nreply = "450 4.2.1 busy"\nuntil = "90m"\n`
  const [destination] = (await runScenario(readScenario(text, 'scenario.toml'), { seed: 1 })).destinations
  if (destination === undefined) throw new Error('the scenario has a destination')
  return destination
}

test('a scheduled stream waits, and its waits are counted from its time', async () => {
  const { delivered, waits, accepted, failed } = await run('not_before = "2h"')
  expect([accepted, failed]).toEqual([[0, 0], []])
  expect(delivered.every((at) => at >= 2 * HOUR && at < 2 * HOUR + MINUTE)).toBe(true)
  expect(waits.every((wait) => wait < MINUTE)).toBe(true)
})

test('a stream ends at its time, and at its limit of attempts', async () => {
  const given = await run('expires = "20m"')
  expect(given.expired.map((at) => Math.round(at / MINUTE))).toEqual([20, 20])
  const limited = await run('maximum_attempts = 2')
  expect(limited.failed).toHaveLength(4)
  expect(limited.expired.every((at) => at >= 300 * SECOND && at < 400 * SECOND)).toBe(true)
})
