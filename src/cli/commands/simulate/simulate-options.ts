/** Arguments of the simulate commands: files, percentages, repeated options, and validated settings. */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { PolicyError } from '../../../backoff/policy.ts'
import { isDiskFull } from '../../../store/errors.ts'
import { errorMessage } from '../../../system/caught-error.ts'
import { CommandError, EX } from '../../shell/exit.ts'

/** Runs `read` and converts a PolicyError to a CommandError with `exitCode` (usage for options, data for files). */
export function checked<T>(read: () => T, exitCode: number = EX.usage): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof PolicyError) throw new CommandError(exitCode, error.message, { cause: error })
    throw error
  }
}

export function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new CommandError(EX.data, `cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

export function writeTextFile(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (cause) {
    const isFull = isDiskFull(cause)
    const remedy = isFull ? 'free some space on its disk, or name a file on another one' : 'name a file in a folder that you can write'
    throw new CommandError(isFull ? EX.ioError : EX.cannotCreate, `cannot write ${path}: ${errorMessage(cause)}; ${remedy}`, { cause })
  }
}

const quoted = (text: string): string => (/^[\w.,:=/@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`)

/** The command line that repeats the simulation, with all given options except --html and --json. */
export function commandLine(command: Command): string {
  const names: string[] = []
  const words: string[] = []
  for (let level: Command | null = command; level !== null; level = level.parent) {
    names.unshift(level.name())
    words.unshift(...optionsGiven(level))
  }
  return [...names, ...words, ...command.args].map(quoted).join(' ')
}

/** The options given at one command level, as arguments. */
function optionsGiven(command: Command): readonly string[] {
  const given = command.options.filter(
    (option) => command.getOptionValueSource(option.attributeName()) === 'cli' && option.long !== '--html' && option.long !== '--json',
  )
  return given.flatMap((option) => {
    const value: unknown = command.getOptionValue(option.attributeName())
    const name = option.long ?? option.short ?? ''
    return (Array.isArray(value) ? value : [value]).flatMap((one) => (option.required ? [name, String(one)] : [name]))
  })
}

/** Collects the values of a repeatable option. */
export const several = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value]

/** Parses `99`, `99%` or `99.9 %` as a fraction of 1. Less than 1 is refused, because `0.99` is meant as 99. */
export function percentArgument(text: string): number {
  const figure = Number(/^(\d+(?:\.\d+)?)\s*%?$/.exec(text.trim())?.[1])
  if (!(figure >= 1 && figure <= 100)) throw new InvalidArgumentError('Expected a percentage from 1 to 100, such as 99.')
  return figure / 100
}

export function positiveArgument(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Expected a whole number of at least 1.')
  return Number(text)
}
