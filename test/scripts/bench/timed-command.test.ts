import { expect, test } from 'vitest'
import { timeCommand } from '../../../scripts/bench/timed-command.ts'

test('CPU time and duration of a program are told, without its output', async () => {
  const { cpu, elapsed } = await timeCommand('bash', ['-c', 'echo 1; echo 2 >&2; sleep 0.2; for ((n = 0; n < 30000; n++)); do :; done'])
  expect(elapsed).toBeGreaterThanOrEqual(0.2)
  expect(cpu).toBeGreaterThan(0.01)
  expect(cpu).toBeLessThan(elapsed)
})

test('a program that fails is an error with its words', async () => {
  await expect(timeCommand('bash', ['-c', 'echo no such queue >&2; exit 3'])).rejects.toThrow('no such queue')
})
