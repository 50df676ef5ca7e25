/** The writing session of a store in PostgreSQL breaks at each statement of each call. */
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { cutStory, type CutStory } from '../support/cut-statements/cut-story.ts'
import { printFigures } from '../support/figures.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { portion } from './portion.ts'

/** Names of the calls whose answers differ. */
const differing = ({ answers }: CutStory, whole: CutStory): readonly string[] =>
  whole.answers.flatMap(([name, answer], n) => (isDeepStrictEqual(answers[n], [name, answer]) ? [] : [name]))

describe.skipIf(WITHOUT_POSTGRES.skip)(`cut statements${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue, server } = usePostgres()
  const told = async (...cuts: Parameters<typeof cutStory>[1]) => cutStory({ url: await emptyQueue(), port: server().port }, cuts)

  const moments = (['before', 'after'] as const).filter((moment) => portion(`cut-statements/${moment}`).isIncluded)

  test.each(moments)('a break %s each statement loses and doubles nothing', async (moment) => {
    const whole = await told()
    expect(whole.statements).toBeGreaterThan(200)
    const others = new Set<string>()
    for (let statement = 1; statement <= whole.statements; statement++) {
      const one = await told({ statement, moment })
      expect({ statement, rows: one.rows, breaks: one.breaks }).toEqual({ statement, rows: whole.rows, breaks: 1 })
      for (const name of differing(one, whole)) others.add(name)
    }
    printFigures(`breaks ${moment} a statement`, { breaks: whole.statements, 'other answers': [...others] })
  })

  test.runIf(portion('cut-statements/twice').isIncluded)('nor does a second break at a statement of the session that follows', async () => {
    const whole = await told()
    let count = 0
    for (let statement = 1; statement <= whole.statements; statement += 3) {
      const again = { statement: 1 + (statement % 11), moment: statement % 2 === 0 ? 'before' : 'after' } as const
      const { rows, breaks } = await told({ statement, moment: 'after' }, again)
      expect({ statement, rows }).toEqual({ statement, rows: whole.rows })
      count += breaks
    }
    printFigures('two breaks', { breaks: count, runs: Math.ceil(whole.statements / 3) })
  })
})
