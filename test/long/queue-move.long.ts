import { describe, expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { killedWhileMoving, type MoveFault } from '../support/killed-while-moving.ts'
import { inMemory, inPostgres, killedAndRepeated, onDisk, type Place } from '../support/moving-queues.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { portion } from './portion.ts'

const inDirectories = portion('queue-move/directories').isIncluded

const KILLS: readonly MoveFault[] = Array.from({ length: 10 }, () => 'SIGKILL')
const OF_DATABASE: readonly MoveFault[] = ['sessions ended', 'server crashed', 'sessions ended', 'server crashed', 'sessions ended']

test.runIf(inDirectories)(
  'a daemon killed ten times while its queue moves loses no mail and sends none twice',
  { timeout: 600_000 },
  async () => {
    const { acknowledged, interrupted } = await killedWhileMoving({ from: 'directory', to: 'directory', faults: KILLS, seed: 1 })
    printFigures('moves from a directory to a directory', { kills: 10, acknowledged, 'kills with mail between the queues': interrupted })
    expect(interrupted).toBeGreaterThan(0)
  },
)

/** Kills a move at each of its calls, and repeats it. */
async function killedAtEachCall(from: () => Place, to: () => Place, moment: 'before' | 'after'): Promise<void> {
  let call = 1
  while (await killedAndRepeated(from, to, { call, moment })) call++
  expect(call).toBeGreaterThan(25)
}

test.runIf(inDirectories)(
  'a move between directories, killed before and after each call, brings every message over once',
  { timeout: 600_000 },
  async () => {
    for (const moment of ['before', 'after'] as const) await killedAtEachCall(onDisk, onDisk, moment)
  },
)

test.runIf(inDirectories)('so does a move from memory to a directory', { timeout: 600_000 }, async () => {
  await killedAtEachCall(() => inMemory('memory'), onDisk, 'after')
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`moves with PostgreSQL${WITHOUT_POSTGRES.why}`, { timeout: 1_200_000 }, () => {
  const { emptyQueue } = usePostgres()
  const shared = (): Place => inPostgres('postgresql://one', () => emptyQueue('one'))
  const other = (): Place => inPostgres('postgresql://other', () => emptyQueue('other'))

  test.runIf(portion('queue-move/killed-with-databases').isIncluded).each([
    { from: 'directory', to: 'database' },
    { from: 'database', to: 'directory' },
    { from: 'database', to: 'database' },
  ] as const)('ten kills of the daemon and five faults of the database from a $from to a $to', async ({ from, to }) => {
    const report = await killedWhileMoving({ from, to, faults: [...KILLS, ...OF_DATABASE], seed: 2 })
    const { acknowledged, interrupted, failed } = report
    printFigures(`moves from a ${from} to a ${to}`, {
      faults: 15,
      acknowledged,
      'failed moves': failed,
      'starts with mail between the queues': interrupted,
    })
    expect(interrupted).toBeGreaterThan(0)
  })

  test.runIf(portion('queue-move/calls-with-databases').isIncluded).each([
    ['from a directory', onDisk, shared],
    ['to a directory', shared, onDisk],
    ['between databases', shared, other],
  ])('killed before and after each call, a move %s brings every message over once', async (_, from, to) => {
    for (const moment of ['before', 'after'] as const) await killedAtEachCall(from, to, moment)
  })
})
