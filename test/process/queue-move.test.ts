import { expect, test } from 'vitest'
import { killedWhileMoving } from '../support/killed-while-moving.ts'

test(
  'a daemon killed while its queue moves loses no mail and sends none twice; the queue is then retired',
  { timeout: 120_000 },
  async () => {
    const { acknowledged, refusals } = await killedWhileMoving(1, 5)
    expect(acknowledged).toBeGreaterThan(150)
    expect(refusals.some((reply) => reply.startsWith('421 4.3.2'))).toBe(true)
  },
)
