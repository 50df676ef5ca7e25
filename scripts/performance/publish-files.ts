/**
 * docs/performance.json and the page that is made from it. `npm run bench -- report FILE…` adds results; `node scripts/docs.ts` writes the
 * page again.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatFigures } from '../bench/figures/figure.ts'
import { UsageError } from '../bench/options.ts'
import { performancePage } from './performance-page.ts'
import { publish, type Published } from './published.ts'

const ROOT = join(import.meta.dirname, '../..')
const JSON_FILE = join(ROOT, 'docs/performance.json')
const PAGE_FILE = join(ROOT, 'docs/performance.md')

const USAGE = `Usage: npm run bench -- report FILE...

Adds results (bench-result.json, figures.json, soak.json) to
docs/performance.json, writes docs/performance.md, and prints the figures with
their targets. A part of a subject takes
the place of the same part before; results of relays take the place of all
results of relays before.`

const readPublished = (): Published =>
  existsSync(JSON_FILE) ? (JSON.parse(readFileSync(JSON_FILE, 'utf8')) as Published) : { relays: [], parts: [] }

/** The page of what is published. */
export const currentPage = (): string => performancePage(readPublished())

/** Adds the results of files and writes the page. */
export function report(args: readonly string[], say: (line: string) => void): void {
  if (args.includes('--help')) return say(USAGE)
  if (args.length === 0 || args.some((arg) => arg.startsWith('-')))
    throw new UsageError('report takes files of results; --help explains it')
  const files = args.map((name) => ({ name, content: readResult(name) }))
  const published = publish(readPublished(), files)
  writeFileSync(JSON_FILE, `${JSON.stringify(published, null, 2)}\n`)
  writeFileSync(PAGE_FILE, currentPage())
  // The formatter pads the cells of tables.
  execFileSync(join(ROOT, 'node_modules/.bin/oxfmt'), [JSON_FILE, PAGE_FILE], { cwd: ROOT, stdio: 'inherit' })
  for (const figures of [...published.relays.map(({ goals }) => goals), ...published.parts.map((part) => part.figures)])
    if (figures.some(({ target }) => target !== null)) say(formatFigures(figures))
  say(`written to ${PAGE_FILE}`)
}

function readResult(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file} cannot be read as JSON: ${(error as Error).message}`, { cause: error })
  }
}
