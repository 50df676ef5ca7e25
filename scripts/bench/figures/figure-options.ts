/**
 * The options of the subjects that measure figures with targets. A bad one becomes one sentence and exit code 64.
 */
import { readArguments, UsageError } from '../options.ts'

export interface FigureOptions {
  readonly rounds: number
  /** Part of the full number of messages and of the full time, above 0 and at most 1. */
  readonly size: number
  /** Names of the parts to measure. */
  readonly only: readonly string[]
  readonly json: string
  /** Folder whose filled queues are used, and in which new ones are kept; null for a temporary folder. */
  readonly keep: string | null
}

const OPTIONS = {
  rounds: { type: 'string', default: '3' },
  size: { type: 'string', default: '1' },
  only: { type: 'string' },
  json: { type: 'string', default: 'figures.json' },
  keep: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

const HELP = `
Options:
  --rounds N      rounds, 1 to 99 (default 3)
  --size N        part of the full number of messages and of the full time,
                  0.001 to 1 (default 1)
  --only NAMES    these parts only, with commas between them
  --json FILE     where the result goes (default ./figures.json)
  --keep FOLDER   use the filled queues in this folder, and keep new ones there
  --help          this text
`

/** The help text of a subject with these parts. */
export const figureUsage = (subject: string, about: string, parts: readonly { readonly name: string; readonly about: string }[]): string =>
  `Usage: npm run bench -- ${subject} [options]\n\n${about}\n\nParts:\n` +
  parts.map((part) => `  ${part.name.padEnd(14)}  ${part.about}\n`).join('') +
  HELP

/** The options, or `help`. Throws a UsageError. */
export function parseFigureOptions(args: readonly string[], parts: readonly string[]): FigureOptions | 'help' {
  const values = readArguments(args, OPTIONS)
  if (values.help) return 'help'
  return {
    rounds: numberIn('--rounds', values.rounds, { least: 1, most: 99, isWhole: true }),
    size: numberIn('--size', values.size, { least: 0.001, most: 1, isWhole: false }),
    only: names(values.only, parts),
    json: values.json,
    keep: values.keep ?? null,
  }
}

export interface Bounds {
  readonly least: number
  readonly most: number
  readonly isWhole: boolean
}

/** A number within bounds. Throws a UsageError. */
export function numberIn(name: string, text: string, { least, most, isWhole }: Bounds): number {
  const number = Number(text)
  if (/^[\d.]+$/.test(text) && number >= least && number <= most && (!isWhole || Number.isInteger(number))) return number
  throw new UsageError(`${name} takes a ${isWhole ? 'whole ' : ''}number from ${least} to ${most}, not "${text}"`)
}

function names(text: string | undefined, parts: readonly string[]): readonly string[] {
  if (text === undefined) return parts
  const asked = text.split(',').map((name) => name.trim())
  const unknown = asked.find((name) => !parts.includes(name))
  if (unknown === undefined) return parts.filter((part) => asked.includes(part))
  throw new UsageError(`--only takes names out of ${parts.join(', ')}, not "${unknown}"`)
}
