import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { powerCuts, type CutReport } from '../support/power-cut/replay.ts'
import { portion } from './portion.ts'

/** Of each run of the writer. */
const STATES = 12_500
const { isIncluded, from, to } = portion('power-cut/states')

const PROCESS = join(import.meta.dirname, '../support/power-cut/cut-process.ts')

function cuts(seed: number): Promise<CutReport> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [PROCESS, String(STATES), String(seed)], (error, stdout) => {
      if (error === null) resolve(JSON.parse(stdout) as CutReport)
      else reject(error)
    })
  })
}

test.runIf(isIncluded)(
  `seeds ${from} to ${to}: ${STATES} disks each that a power cut may leave hold all acknowledged changes`,
  async () => {
    const reports: CutReport[] = []
    const seeds = Array.from({ length: to - from + 1 }, (_, n) => from + n).values()
    const runner = async () => {
      for (const seed of seeds) reports.push(await cuts(seed))
    }
    await Promise.all([runner(), runner()])
    const sum = (key: 'states' | 'corrupt' | 'lost') => reports.reduce((total, report) => total + report[key], 0)
    printFigures('power cuts', {
      states: sum('states'),
      corrupt: sum('corrupt'),
      'with a lost change': sum('lost'),
      seeds: `${from}–${to}`,
    })
    expect(reports.flatMap(({ findings }) => findings)).toEqual([])
  },
)

test.runIf(portion('power-cut/planted').isIncluded)('a checkpoint that is not synced is found', async () => {
  const { corrupt, lost } = await powerCuts({ states: 200, seed: 1, fault: 'synchronous = off' })
  expect(corrupt + lost).toBeGreaterThan(5)
})
