/** Hostile patterns, queries, bodies and plans at full size, on both stores. */
import { describe, expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { ANSWERED_WITHIN, figures, hostileRun, slowest, unfit, type HostileRun } from '../support/hostile-run.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

const SIZE = { messages: 400, size: 10 }

function expectService(run: HostileRun): void {
  printFigures('hostile requests', { figures: figures(run) })
  expect(unfit(run)).toEqual([])
  expect(run.answers.filter(({ delay }) => delay > ANSWERED_WITHIN)).toEqual([])
  expect(run.greetings.length).toBeGreaterThan(20)
  expect(slowest(run, 'delay')).toBeLessThan(1_000)
}

test('with a queue in a folder, requests are answered and greetings go on', async () => expectService(await hostileRun(SIZE)))

describe.skipIf(WITHOUT_POSTGRES.skip)(`PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { server } = usePostgres()

  test('requests are answered and greetings go on', async () => {
    const settings = { queue_database: server().url(), queue_database_durability: 'primary' }
    expectService(await hostileRun({ ...SIZE, settings }))
  })
})
