/** The figures of a long test, printed as a row of the table in RELIABILITY.md, and written to the result file of its part. */
import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'

export const commit = (): string => execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()

type Figures = Readonly<Record<string, number | string | object>>

/** Prints `| test | figures | commit | date |`, and appends the figures as a JSON line to the file LONG_FIGURES. */
export function printFigures(test: string, figures: Figures): void {
  const text = Object.entries(figures).map(([name, value]) => `${shown(value)} ${name}`)
  console.log(`| ${test} | ${text.join(', ')} | ${commit()} | ${new Date().toISOString().slice(0, 10)} |`)
  const file = process.env['LONG_FIGURES']
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ test, ...figures })}\n`)
}

const shown = (value: number | string | object): string =>
  typeof value === 'number' ? value.toLocaleString('en-US') : typeof value === 'string' ? value : JSON.stringify(value)

/** A number from the environment, for a longer or a shorter run. */
export const countFrom = (name: string, normal: number): number => Number(process.env[name] ?? normal)
