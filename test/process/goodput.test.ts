import { expect, test } from 'vitest'
import { goodputAround } from '../support/goodput.ts'

test('after SIGKILL and a restart mail flows as before', { timeout: 120_000 }, async () => {
  const { lost, recovery } = await goodputAround('SIGKILL', { measured: 1_000, least: 0.5 })
  expect(lost).toBe(0)
  expect(recovery).toBeLessThan(60)
})
