/** Reads Postfix's main.cf (postconf(5)). Pure. */
import { POSTFIX_DEFAULTS } from './postfix-defaults.ts'
import { expandMacros } from './macro-expansion.ts'

/** A line of a file with its continuation lines. */
export interface LogicalLine {
  readonly text: string
  /** Number of the first line, from 1. */
  readonly number: number
}

/** Lines that begin with a blank continue the previous one. Comments and empty lines do not end a continued line. */
export function logicalLines(text: string): readonly LogicalLine[] {
  const lines: { text: string; number: number }[] = []
  text.split(/\r?\n/).forEach((line, i) => {
    if (/^\s*(?:#|$)/.test(line)) return
    const last = lines.at(-1)
    if (/^\s/.test(line) && last !== undefined) last.text += ` ${line.trim()}`
    else lines.push({ text: line.trimEnd(), number: i + 1 })
  })
  return lines
}

export interface MainCf {
  /** Unexpanded values in the order of their last lines. */
  readonly values: ReadonlyMap<string, string>
  /** Lines that are not parameters. */
  readonly malformed: readonly LogicalLine[]
}

export function parseMainCf(text: string): MainCf {
  const values = new Map<string, string>()
  const malformed: LogicalLine[] = []
  for (const line of logicalLines(text)) {
    const [, name, value] = /^([\w-]+)\s*=\s*(.*)$/s.exec(line.text) ?? []
    if (name === undefined || value === undefined) malformed.push(line)
    else {
      values.delete(name)
      values.set(name, value.trim())
    }
  }
  return { values, malformed }
}

/** The values of a service: the overrides of master.cf, then main.cf. */
export class PostfixParameters {
  readonly #given: ReadonlyMap<string, string>
  /** Defaults that depend on the machine. */
  readonly #machine: ReadonlyMap<string, string>

  constructor(given: ReadonlyMap<string, string>, machine: ReadonlyMap<string, string>) {
    this.#given = given
    this.#machine = machine
  }

  /** Names that the files set. */
  get names(): readonly string[] {
    return [...this.#given.keys()]
  }

  has(name: string): boolean {
    return this.#given.has(name)
  }

  /** The same parameters under further overrides. */
  under(overrides: ReadonlyMap<string, string>): PostfixParameters {
    return new PostfixParameters(new Map([...this.#given, ...overrides]), this.#machine)
  }

  /** The expanded value; Postfix's default when no file sets it. Throws an Error for a circular reference and for malformed text. */
  get(name: string): string {
    return this.expand(this.#raw(name) ?? '').trim()
  }

  /** Throws an Error for a circular reference and for malformed text. */
  expand(text: string): string {
    return expandMacros(text, (name) => this.#raw(name))
  }

  /** The unexpanded value; empty when no file sets the parameter. */
  written(name: string): string {
    return this.#given.get(name) ?? ''
  }

  isYes(name: string): boolean {
    return this.get(name).toLowerCase() === 'yes'
  }

  /** Words of a value, separated by commas or blanks. */
  words(name: string): readonly string[] {
    return this.get(name)
      .split(/[,\s]+/)
      .filter((word) => word !== '')
  }

  #raw(name: string): string | undefined {
    return this.#given.get(name) ?? this.#machine.get(name) ?? POSTFIX_DEFAULTS[name]
  }
}
