/** Races of cancellations against the begin of attempts: 50 in each seed. */
import { expect, test } from 'vitest'
import { raceCancellations } from '../support/cancel-races.ts'
import { printFigures } from '../support/figures.ts'
import { portion } from './portion.ts'

const { isIncluded, from, to } = portion('cancellation')

test.runIf(isIncluded)(`races of seeds ${from} to ${to}: never an answer and a delivery, never neither`, async () => {
  const sums = { races: 0, cancelled: 0, 'too late': 0 }
  for (let seed = from; seed <= to; seed++) {
    const { cancelled, tooLate, ...faults } = await raceCancellations(seed)
    expect({ seed, ...faults }).toEqual({ seed, broken: [], lost: [] })
    sums.races += 50
    sums.cancelled += cancelled
    sums['too late'] += tooLate
  }
  printFigures('races of cancellations', sums)
})
