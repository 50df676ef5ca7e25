import { expect, test } from 'vitest'
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { runSchedules, type Place } from '../../support/random-schedules.ts'
import { tallyOf, tallyOfListing } from '../../support/tally.ts'
import { folder } from './folders.ts'

const onDisk = (): Place => {
  const directory = folder()
  return {
    open: () => openInlineStore({ directory }),
    check: async (store, reader) => {
      const [tally, expected] = [await tallyOf(store), await tallyOfListing(reader)].map((one) => JSON.stringify(one))
      return tally === expected ? null : `the tally is ${tally} and should be ${expected}`
    },
  }
}

test('after random schedules on the SQLite store no mail is stuck, and after each step the tally equals the listing', async () => {
  expect(await runSchedules(1, 25, onDisk)).toBeGreaterThan(150)
})
