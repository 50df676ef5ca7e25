/** The writing session of a store breaks at some of its statements; test/long/cut-statements has all of them. */
import { describe, expect, test } from 'vitest'
import { cutStory } from '../../support/cut-statements/cut-story.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

describe.skipIf(WITHOUT_POSTGRES.skip)(`cut statements${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()

  test('a break before or after a statement changes nothing that the queue holds', async () => {
    const told = async (...cuts: Parameters<typeof cutStory>[1]) => cutStory({ url: await emptyQueue(), port: server().port }, cuts)
    const whole = await told()
    for (const share of [0.2, 0.5, 0.8]) {
      for (const moment of ['before', 'after'] as const) {
        const statement = Math.ceil(share * whole.statements)
        const { rows, breaks } = await told({ statement, moment })
        expect({ statement, rows, breaks }).toEqual({ statement, rows: whole.rows, breaks: 1 })
      }
    }
  })
})
