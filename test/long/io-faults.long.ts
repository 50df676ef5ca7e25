import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { faultyRun, type FaultyRun } from '../support/io-faults/faulty-runs.ts'
import { noFaultsBecause } from '../support/io-faults/io-faults.ts'
import { portion } from './portion.ts'

const { from: first, to: last } = portion('io-faults')

const why = noFaultsBecause()

test.runIf(why === null)(
  `after EIO or ENOSPC at any of the syncs ${first} to ${last} no 250 follows, and a supervisor's restart serves all that was accepted`,
  async () => {
    const runs: FaultyRun[] = []
    const numbers = Array.from({ length: last - first + 1 }, (_, n) => first + n).values()
    const runner = async () => {
      // faultyRun asserts what must hold after each fault.
      for (const from of numbers) {
        const run = await faultyRun({ call: 'sync', from, count: 1, error: from % 10 === 0 ? 'ENOSPC' : 'EIO' })
        expect(run.ended, `exit code after a failed sync, number ${from}`).toBe(74)
        runs.push(run)
      }
    }
    await Promise.all([runner(), runner()])
    const sum = (key: 'acknowledged' | 'duplicates') => runs.reduce((total, run) => total + run[key], 0)
    const endings = runs.map(({ endedAfter }) => endedAfter).toSorted((a, b) => a - b)
    printFigures('failed syncs', {
      runs: runs.length,
      'first sync': first,
      'last sync': last,
      'acknowledged messages': sum('acknowledged'),
      lost: 0,
      'replies under way at a fault, at most': Math.max(...runs.map(({ late }) => late)),
      duplicates: sum('duplicates'),
      'without exit code 74': 0,
      'ms to the exit, median': endings[Math.floor(endings.length / 2)] ?? NaN,
      'ms to the exit, at most': endings.at(-1) ?? NaN,
    })
  },
)
