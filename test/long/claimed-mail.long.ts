/** Hundreds of kills with operations on claimed mail. CLAIM_KILLS has another number of them. */
import { expect, test } from 'vitest'
import { killedWithClaims } from '../support/killed-with-claims.ts'

const { CLAIM_KILLS = '200' } = process.env

test(`${CLAIM_KILLS} kills with operations on claimed mail: none lost, none sent after an answered hold or delete`, async () => {
  const kills = await killedWithClaims(Number(CLAIM_KILLS))
  console.log(`${CLAIM_KILLS} kills:`, JSON.stringify(kills))
  expect(kills).toMatchObject({ sentAfter: 0, lost: 0 })
  expect(kills.cut).toBeGreaterThan(0)
  expect(kills.answered).toBeGreaterThan(kills.cut / 4)
})
