/** Reads the `[class.NAME]` tables, and validates the parameters that name classes. */
import type { ClassMapName } from './class-options.ts'
import { valuesOf, type TableSource } from '../lookup-tables.ts'
import { CLASS_SETTINGS, type ClassTable } from './class-table.ts'
import { isNetwork } from '../limit-terms.ts'
import { Networks } from '../networks.ts'
import type { Problem } from '../problem.ts'
import type { RawValue } from '../sources.ts'
import * as is from '../values.ts'
import { errorMessage } from '../../../system/caught-error.ts'

const NAME = /^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/
const OWN_KEYS = ['weight', 'reserve', 'priority', 'allow'] as const
/** Limit of the number of classes: a claim asks for each of them. */
const MOST = 8
/** Limit of the sum of all reserves, in percent. */
const MOST_RESERVED = 50
const MOST_WEIGHT = 1_000

const percent = is.kind('a percentage from 0% to 50%, such as "5%"', (given): number | undefined => {
  const [, digits] = typeof given === 'string' ? (/^(\d{1,2}(?:\.\d)?)%$/.exec(given.trim()) ?? []) : []
  return digits === undefined || Number(digits) > MOST_RESERVED ? undefined : Number(digits)
})

const weight = is.count(1, MOST_WEIGHT)

const priority: is.Kind<number | null> = is.kind('a whole number from -9 to 9 (RFC 6710)', (given): number | undefined =>
  typeof given === 'number' && Number.isInteger(given) && Math.abs(given) <= 9 ? given : undefined,
)

interface ClassSources {
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, RawValue>>
  /** Reads a parameter in a table, with its references expanded. Returns undefined when it has added a problem. */
  readonly readParameter: (name: (typeof CLASS_SETTINGS)[number], shown: string, given: RawValue) => unknown
  readonly defaultClass: string
  /** Position of default_class; empty when it is not given. */
  readonly whereOfDefault: string
}

/** Reads the tables. Adds the problems to `problems`. */
export function readClassTables(sources: ClassSources, problems: Problem[]): ReadonlyMap<string, ClassTable> {
  const { tables, defaultClass, whereOfDefault } = sources
  const classes = [...tables].map(([name, raw]) => readClassTable(name, raw, sources, problems))
  const [first] = [...tables.values()].flatMap((raw) => [...raw.values()])
  const refuse = (where: string, text: string): void => void problems.push({ where, text })
  if (classes.length > MOST) refuse(first?.where ?? '', `class: ${classes.length} classes, the maximum is ${MOST}: join some`)
  const reserved = Math.round(classes.reduce((sum, { reserve }) => sum + reserve, 0) * 1_000) / 10
  if (reserved > MOST_RESERVED)
    refuse(first?.where ?? '', `class: the reserves are ${reserved}% together, the maximum is ${MOST_RESERVED}%: lower some`)
  const swapped = firstSwapped(classes.filter(({ name }) => 'value' in weight(tables.get(name)?.get('weight')?.value)))
  if (swapped !== undefined)
    refuse(
      tables.get(swapped)?.get('priority')?.where ?? '',
      `class.${swapped}: priority: a class of more weight has none that is higher: give the classes priorities in the order of their weights`,
    )
  if (classes.length > 0 && !tables.has(defaultClass))
    refuse(
      whereOfDefault || (first?.where ?? ''),
      `default_class: there is no table [class.${defaultClass}]; add it, or name another class`,
    )
  return new Map(classes.map((one) => [one.name, one]))
}

/** The first class whose priority is at least that of a class of more weight, or is that of another one. */
function firstSwapped(classes: readonly ClassTable[]): string | undefined {
  const known = classes.flatMap(({ name, weight: of, priority: value }) => (value === null ? [] : [{ name, weight: of, priority: value }]))
  return known.find((one) =>
    known.some(
      (other) => other !== one && (other.priority === one.priority || (other.weight > one.weight && other.priority < one.priority)),
    ),
  )?.name
}

function readClassTable(
  name: string,
  raw: ReadonlyMap<string, RawValue>,
  { readParameter }: ClassSources,
  problems: Problem[],
): ClassTable {
  const shown = `class.${name}`
  const first = [...raw.values()][0]?.where ?? ''
  const refuse = (where: string, text: string): void => void problems.push({ where, text: `${shown}: ${text}` })
  if (!NAME.test(name)) refuse(first, 'expected a name of lower-case letters, digits, hyphens and underscores, such as [class.fast]')
  const known: readonly string[] = [...OWN_KEYS, ...CLASS_SETTINGS]
  for (const [key, { where }] of raw) if (!known.includes(key)) refuse(where, `unknown key ${key}; known: ${known.join(', ')}`)
  const read = <T>(key: (typeof OWN_KEYS)[number], kind: is.Kind<T>, missing: T): T => {
    const given = raw.get(key)
    if (given === undefined) return missing
    const reading = kind(given.value)
    if ('value' in reading) return reading.value
    refuse(given.where, `${key}: ${reading.wrong}`)
    return missing
  }
  if (!raw.has('weight')) refuse(first, `weight is missing, a number from 1 to ${MOST_WEIGHT}`)
  const allow = read('allow', is.list, [])
  for (const mistake of allowMistakes(name, allow)) refuse(raw.get('allow')?.where ?? '', `allow: ${mistake}`)
  const settings: Partial<Record<string, unknown>> = {}
  for (const key of CLASS_SETTINGS) {
    const given = raw.get(key)
    if (given === undefined) continue
    settings[key] = readParameter(key, `${shown}: ${key}`, given)
  }
  return {
    name,
    weight: read('weight', weight, 1),
    reserve: read('reserve', percent, 0) / 100,
    priority: read('priority', priority, null),
    allow,
    settings,
  }
}

function allowMistakes(name: string, allow: readonly string[]): readonly string[] {
  const own = allow.includes(name)
    ? [`${name} is the class itself; name users of AUTH, token:NAME for a token of the API, or networks`]
    : []
  return [...own, ...allow.flatMap((one) => entryMistake(one) ?? [])]
}

function entryMistake(entry: string): string | undefined {
  if (/^(?:token:)?$/.test(entry)) return `${JSON.stringify(entry)} is no user of AUTH, token:NAME or network`
  try {
    if (isNetwork(entry)) void new Networks([entry], 'allow')
    return undefined
  } catch (error) {
    return errorMessage(error).replace(/^allow: /, '')
  }
}

interface Classes {
  readonly class: ReadonlyMap<string, unknown>
}

interface ClassConfig extends Classes, Readonly<Record<ClassMapName, readonly TableSource[]>> {
  readonly class_header: string
}

const FIELD_NAME = /^[\u0021-\u0039\u003b-\u007e]+$/

/** Throws an Error that begins with `parameter` when there are no classes, or some that are named are not there. */
export function assertKnownClasses(names: readonly string[], { class: classes }: Classes, parameter: string): void {
  if (classes.size === 0) throw new Error(`${parameter}: there are no classes; add [class.NAME] tables, or leave it out`)
  const unknown = [...new Set(names)].filter((name) => !classes.has(name)).map((name) => `[class.${name}]`)
  if (unknown.length === 1) throw new Error(`${parameter}: there is no table ${unknown.join()}; add it, or name another class`)
  if (unknown.length > 1) throw new Error(`${parameter}: there are no tables ${unknown.join(', ')}; add them, or name other classes`)
}

function assertMap(config: ClassConfig, name: ClassMapName): void {
  if (config[name].length > 0) assertKnownClasses(valuesOf(config[name]), config, name)
}

/** The parameters of classes with their trials. */
export const classReaders = (config: ClassConfig) => ({
  sasl_class_maps: () => assertMap(config, 'sasl_class_maps'),
  sender_class_maps: () => assertMap(config, 'sender_class_maps'),
  client_class_maps: () => assertMap(config, 'client_class_maps'),
  class_header: () => {
    if (config.class_header === '' || FIELD_NAME.test(config.class_header)) return
    throw new Error(
      `class_header: ${JSON.stringify(config.class_header)} is not the name of a header field; write one such as X-Deferd-Class`,
    )
  },
})
