/** The figures of a long test, printed as a row of the table in RELIABILITY.md. */
import { execFileSync } from 'node:child_process'

const commit = (): string => execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()

/** Prints `| test | figures | commit | date |`. */
export function printFigures(test: string, figures: Readonly<Record<string, number | string>>): void {
  const text = Object.entries(figures).map(
    ([name, value]) => `${typeof value === 'number' ? value.toLocaleString('en-US') : value} ${name}`,
  )
  console.log(`| ${test} | ${text.join(', ')} | ${commit()} | ${new Date().toISOString().slice(0, 10)} |`)
}

/** A number from the environment, for a longer or a shorter run. */
export const countFrom = (name: string, normal: number): number => Number(process.env[name] ?? normal)
