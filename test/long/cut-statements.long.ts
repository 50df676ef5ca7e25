/** The writing session of a store in PostgreSQL breaks at each statement of each call. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { cutStory, type CutStory } from '../support/cut-statements/cut-story.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'

/** Names of the calls whose answers differ. */
const differing = ({ answers }: CutStory, whole: CutStory): readonly string[] =>
  whole.answers.flatMap(([name, answer], n) => (isDeepStrictEqual(answers[n], [name, answer]) ? [] : [name]))

describe.skipIf(WITHOUT_POSTGRES.skip)(`cut statements${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()
  const told = async (...cuts: Parameters<typeof cutStory>[1]) => cutStory({ url: await emptyQueue(), port: server().port }, cuts)

  test.each(['before', 'after'] as const)('a break %s each statement loses and doubles nothing', async (moment) => {
    const whole = await told()
    expect(whole.statements).toBeGreaterThan(200)
    const others = new Set<string>()
    for (let statement = 1; statement <= whole.statements; statement++) {
      const one = await told({ statement, moment })
      expect({ statement, rows: one.rows, breaks: one.breaks }).toEqual({ statement, rows: whole.rows, breaks: 1 })
      for (const name of differing(one, whole)) others.add(name)
    }
    console.log(`${whole.statements} breaks ${moment} a statement; other answers: ${[...others].join(', ') || 'none'}`)
  })

  test('nor does a second break at a statement of the session that follows', async () => {
    const whole = await told()
    let count = 0
    for (let statement = 1; statement <= whole.statements; statement += 3) {
      const again = { statement: 1 + (statement % 11), moment: statement % 2 === 0 ? 'before' : 'after' } as const
      const { rows, breaks } = await told({ statement, moment: 'after' }, again)
      expect({ statement, rows }).toEqual({ statement, rows: whole.rows })
      count += breaks
    }
    console.log(`${count} breaks in ${Math.ceil(whole.statements / 3)} runs`)
  })
})
