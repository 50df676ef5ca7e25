/** Kills during operations on claimed mail. CLAIM_KILLS has another number of them. */
import { expect, test } from 'vitest'
import { countFrom, printFigures } from '../support/figures.ts'
import { killedWithClaims } from '../support/killed-with-claims.ts'

const KILLS = countFrom('CLAIM_KILLS', 200)

test(`${KILLS} kills with operations on claimed mail: none lost, none sent after an answered hold or delete`, async () => {
  const kills = await killedWithClaims(KILLS)
  printFigures('kills during operations on claimed mail', { kills: KILLS, ...kills })
  expect(kills).toMatchObject({ sentAfter: 0, lost: 0 })
  expect(kills.cut).toBeGreaterThan(0)
  expect(kills.answered).toBeGreaterThan(kills.cut / 4)
})
