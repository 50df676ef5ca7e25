import { expect, test } from 'vitest'
import { killedWhileMoving } from '../support/killed-while-moving.ts'
import { inMemory, killedAndRepeated, onDisk } from '../support/moving-queues.ts'

test('a daemon killed ten times while its queue moves loses no mail and sends none twice', { timeout: 600_000 }, async () => {
  const { acknowledged, interrupted } = await killedWhileMoving(10, 1)
  console.log(`${acknowledged} messages; messages were between the queues after ${interrupted} of 10 kills`)
  expect(interrupted).toBeGreaterThan(0)
})

test('a move between directories, killed before and after each call, brings every message over once', { timeout: 600_000 }, async () => {
  for (const moment of ['before', 'after'] as const) {
    let call = 1
    while (await killedAndRepeated(onDisk, onDisk, { call, moment })) call++
    expect(call).toBeGreaterThan(25)
  }
})

test('so does a move from memory to a directory', { timeout: 600_000 }, async () => {
  let call = 1
  while (await killedAndRepeated(() => inMemory('memory'), onDisk, { call, moment: 'after' })) call++
  expect(call).toBeGreaterThan(25)
})
