/** 200 damaged copies of a queue; prints the table of results. */
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { copyQueue, damage, examine, filledQueue, isNoticed, KINDS, seeded, table, type Verdict } from '../support/damaged-copies.ts'

const COPIES = 200

const figuresOf = (verdicts: readonly Verdict[]) => {
  const sum = (number: (one: Verdict) => number): number => verdicts.reduce((total, one) => total + number(one), 0)
  return {
    copies: verdicts.length,
    'damaged messages delivered': sum((one) => one.deliveredDamaged),
    'readable ones missed': sum((one) => one.missed.length),
    'omitted in silence': sum((one) => one.omitted.length),
    'sent again': sum((one) => one.sentAgain.length),
  }
}

test(
  `${COPIES} damaged copies: no damaged message is delivered, no other message is missed, none is omitted silently`,
  { timeout: 900_000 },
  async () => {
    const model = await filledQueue(200)
    const verdicts: Verdict[] = []
    for (let seed = 0; seed < COPIES; seed++) {
      const kind = KINDS[seed % KINDS.length] ?? 'page'
      const copy = join(dirname(model.directory), 'copy')
      copyQueue(model.directory, copy)
      verdicts.push(await examine(model, copy, kind, seed, damage(copy, kind, seeded(seed))))
    }
    rmSync(dirname(model.directory), { recursive: true })
    console.log(table(verdicts))
    printFigures('damaged copies', figuresOf(verdicts))
    const bad = verdicts.filter(
      (one) => one.deliveredDamaged > 0 || one.missed.length > 0 || one.omitted.length > 0 || one.sentAgain.length > 0,
    )
    expect(bad, table(verdicts)).toEqual([])
    // The damages are real ones: most have an effect.
    expect(verdicts.filter(isNoticed).length).toBeGreaterThan(COPIES / 2)
  },
)
