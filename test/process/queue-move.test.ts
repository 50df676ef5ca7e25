import { describe, expect, test } from 'vitest'
import { isOfShutdown, killedWhileMoving } from '../support/killed-while-moving.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

test(
  'a daemon killed while its queue moves loses no mail and sends none twice; the queue is then retired',
  { timeout: 240_000 },
  async () => {
    const { acknowledged, refusals } = await killedWhileMoving({ from: 'directory', to: 'directory', faults: ['SIGKILL'], seed: 5 })
    expect(acknowledged).toBeGreaterThan(150)
    expect(refusals.some(isOfShutdown)).toBe(true)
  },
)

describe.skipIf(reason !== null)(`a move with PostgreSQL${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 240_000 }, () => {
  test.concurrent.each([
    { from: 'directory', to: 'database', faults: ['SIGKILL'], seed: 6 },
    { from: 'database', to: 'directory', faults: ['sessions ended'], seed: 7 },
  ] as const)('from a $from to a $to survives its fault: $faults', async (story) => {
    const { acknowledged, refusals } = await killedWhileMoving(story)
    expect(acknowledged).toBeGreaterThan(150)
    expect(refusals.some(isOfShutdown)).toBe(true)
  })
})
