import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countFrom, printFigures } from '../support/figures.ts'
import { powerCuts, type CutReport } from '../support/power-cut/replay.ts'

const STATES = countFrom('POWER_CUT_STATES', 100_000)
const SEED = countFrom('POWER_CUT_SEED', 1)
/** Runs of the writer, each with a seed of its own, two at a time. */
const RUNS = 8

const PROCESS = join(import.meta.dirname, '../support/power-cut/cut-process.ts')

function cuts(states: number, seed: number): Promise<CutReport> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [PROCESS, String(states), String(seed)], (error, stdout) => {
      if (error === null) resolve(JSON.parse(stdout) as CutReport)
      else reject(error)
    })
  })
}

test(`${STATES} disks that a power cut may leave hold all acknowledged changes, and no damage`, async () => {
  const reports: CutReport[] = []
  const seeds = Array.from({ length: RUNS }, (_, n) => SEED + n).values()
  const runner = async () => {
    for (const seed of seeds) reports.push(await cuts(Math.ceil(STATES / RUNS), seed))
  }
  await Promise.all([runner(), runner()])
  const sum = (key: 'states' | 'corrupt' | 'lost') => reports.reduce((total, report) => total + report[key], 0)
  printFigures('power cuts', {
    states: sum('states'),
    corrupt: sum('corrupt'),
    'with a lost change': sum('lost'),
    seeds: `${SEED}–${SEED + RUNS - 1}`,
  })
  expect(reports.flatMap(({ findings }) => findings)).toEqual([])
})

test('a commit and a checkpoint that are not synced are found', async () => {
  const { corrupt, lost } = await powerCuts({ states: 200, seed: SEED, fault: 'synchronous = off' })
  expect(corrupt).toBeGreaterThan(5)
  expect(lost).toBeGreaterThan(5)
})
