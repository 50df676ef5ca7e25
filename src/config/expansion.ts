/** References between parameters: `$name`, `${name}` and `$(name)` in values; `$$` is a dollar sign. */
import { OPTIONS, type OptionName } from './options.ts'
import { postfixOnly } from './values/postfix-parameters.ts'
import { nearest, type Problem } from './values/problem.ts'
import type { RawValue } from './values/sources.ts'

export const NAMES = Object.keys(OPTIONS) as OptionName[]
export const isOption = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name)

export function unknownParameter(name: string, known: Iterable<string>): string {
  const foreign = postfixOnly(name)
  if (foreign !== undefined) return foreign
  const meant = nearest(name, known)
  return `unknown parameter ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}

/** A value in the syntax of the configuration file, on one line. */
export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map((part: unknown) => (isObject(part) ? JSON.stringify(part) : asText(part))).join(', ')
  return isObject(value) ? inlineTable(value) : JSON.stringify(value)
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

const inlineTable = (table: object): string =>
  `inline:{${Object.entries(table)
    .map(([key, value]) => `{${key} = ${String(value)}}`)
    .join(', ')}}`

/** Replaces references in values. Unknown names and circular references are reported in `problems`. */
export class Expansion {
  readonly #given: ReadonlyMap<string, RawValue>
  readonly #hostname: string
  readonly #problems: Problem[]
  readonly #done = new Map<OptionName, RawValue>()
  readonly #open: OptionName[] = []

  constructor(given: ReadonlyMap<string, RawValue>, hostname: string, problems: Problem[]) {
    this.#given = given
    this.#hostname = hostname
    this.#problems = problems
  }

  of(name: OptionName): RawValue {
    const done = this.#done.get(name)
    if (done !== undefined) return done
    const raw = this.#given.get(name) ?? { value: OPTIONS[name].default, where: 'default' }
    this.#open.push(name)
    const value = this.expand(raw)
    this.#open.pop()
    const expanded = { where: raw.where, value: value === '' ? this.#unset(name) : value }
    this.#done.set(name, expanded)
    return expanded
  }

  /** Value of a parameter that is empty. */
  #unset(name: OptionName): string {
    if (name === 'myhostname' || name === 'node_name') return this.#hostname
    return name === 'mydomain' ? asText(this.of('myhostname').value).replace(/^[^.]*\./, '') : ''
  }

  expand({ value, where }: RawValue): unknown {
    if (Array.isArray(value)) return value.map((part: unknown) => this.expand({ value: part, where }))
    if (typeof value !== 'string') return value
    return value.replace(/\$(?:\$|\w+|\{\w+\}|\(\w+\))/g, (whole) => {
      const name = /\w+/.exec(whole)?.[0]
      return name === undefined ? '$' : this.#reference(name, whole, where)
    })
  }

  #reference(name: string, whole: string, where: string): string {
    if (!isOption(name)) this.#problems.push({ where, text: `${whole}: ${unknownParameter(name, NAMES)}` })
    else if (this.#open.includes(name)) this.#problems.push({ where, text: `${[...this.#open, name].join(' → ')} is a circular reference` })
    else return asText(this.of(name).value)
    return ''
  }
}
