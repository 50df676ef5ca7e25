/** Reads the per-destination parameters of a `[destination."…"]` or `[provider.NAME]` table. */
import { isOption, unknownParameter, NAMES, type Expansion } from './expansion.ts'
import { OPTIONS, type DestinationSettings, type OptionName } from './options.ts'
import type { Problem } from './values/problem.ts'
import type { RawValue } from './values/sources.ts'

const LOCAL_NAMES: ReadonlyMap<string, OptionName> = new Map(
  NAMES.filter((name) => OPTIONS[name].perDestination).map((name) => [name.replace(/^default_/, ''), name]),
)

interface SettingTable {
  /** Heading for problem texts, for example `destination."gmail.com"`. */
  readonly shown: string
  /** Keys of the table that are no per-destination parameters. The reader of the table reports their problems. */
  readonly ownKeys: ReadonlySet<string>
  readonly expansion: Expansion
}

/** The parsed value; undefined when a problem was added. */
export function readParameter(name: OptionName, shown: string, { value, where }: RawValue, problems: Problem[]): unknown {
  const reading = OPTIONS[name].kind(value)
  if ('value' in reading) return reading.value
  problems.push({ where, text: `${shown}: ${reading.wrong}` })
  return undefined
}

/** Reads the parameters of a table. Adds the problems to `problems`. */
export function readSettings(
  raw: ReadonlyMap<string, RawValue>,
  { shown, ownKeys, expansion }: SettingTable,
  problems: Problem[],
): DestinationSettings {
  const table: Partial<Record<string, unknown>> = {}
  for (const [name, given] of raw) {
    if (ownKeys.has(name)) continue
    const globalName = LOCAL_NAMES.get(name)
    if (globalName !== undefined) {
      table[name] = readParameter(globalName, `${shown}: ${name}`, { ...given, value: expansion.expand(given) }, problems)
    } else if (isOption(name) && !OPTIONS[name].perDestination) {
      problems.push({ where: given.where, text: `${name} is a parameter of the whole relay, not of [${shown}]; set it above the tables` })
    } else {
      problems.push({ where: given.where, text: unknownParameter(name, [...ownKeys, ...LOCAL_NAMES.keys()]) })
    }
  }
  return table
}
