/**
 * Reads the configuration: file, environment and command line over the defaults of the option table. Either everything
 * is right and a Config comes out, or a ConfigError tells all that is wrong and where. Nothing falls back silently.
 */
import { hostname as machineName } from 'node:os'
import { PolicyError } from '../backoff/policy.ts'
import { compileRetryPolicy } from '../backoff/retry-policy.ts'
import type { Duration } from '../mail/clock.ts'
import { meaninglessValues, type Places } from './meaning.ts'
import { OPTIONS, type Config, type DestinationSettings, type OptionName } from './options.ts'
import { ConfigError, nearest, type Problem } from './problem.ts'
import {
  findFile,
  stateEnvironment,
  stateFile,
  stateOverrides,
  stateTables,
  type ConfigSources,
  type Given,
  type Statements,
} from './sources.ts'

export { ConfigError } from './problem.ts'
export type { ConfigSources } from './sources.ts'

export interface LoadedConfig {
  readonly config: Config
  /** Names that were given anywhere, as opposed to defaults. */
  readonly given: ReadonlySet<string>
  /** The file that was read; null when there is none. */
  readonly file: string | null
  /** Every parameter as one would write it, `$name` expanded. */
  readonly written: ReadonlyMap<OptionName, string>
  /** The same for what `[destination."…"]` tables set. */
  readonly writtenTables: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** What was changed to make sense, and why. */
  readonly warnings: readonly string[]
}

const NAMES = Object.keys(OPTIONS) as OptionName[]
const isOption = (name: string): name is OptionName => Object.hasOwn(OPTIONS, name)

const LOCAL_NAMES: ReadonlyMap<string, OptionName> = new Map(
  NAMES.filter((name) => OPTIONS[name].perDestination).map((name) => [name.replace(/^default_/, ''), name]),
)

/** A value as one would write it on one line. */
const asText = (value: unknown): string =>
  Array.isArray(value) ? value.map(asText).join(', ') : typeof value === 'string' ? value : JSON.stringify(value)

/** Values with `$name`, `${name}` and `$(name)` replaced; `$$` is a dollar sign. */
class Expansion {
  readonly #given: ReadonlyMap<string, Given>
  readonly #hostname: string
  readonly #problems: Problem[]
  readonly #done = new Map<OptionName, Given>()
  readonly #open: OptionName[] = []

  constructor(given: ReadonlyMap<string, Given>, hostname: string, problems: Problem[]) {
    this.#given = given
    this.#hostname = hostname
    this.#problems = problems
  }

  of(name: OptionName): Given {
    const done = this.#done.get(name)
    if (done !== undefined) return done
    const raw = this.#given.get(name) ?? { value: OPTIONS[name].default, where: 'default' }
    this.#open.push(name)
    const value = this.expand(raw)
    this.#open.pop()
    const expanded = { where: raw.where, value: name === 'myhostname' && value === '' ? this.#hostname : value }
    this.#done.set(name, expanded)
    return expanded
  }

  expand({ value, where }: Given): unknown {
    if (Array.isArray(value)) return value.map((part: unknown) => this.expand({ value: part, where }))
    if (typeof value !== 'string') return value
    return value.replace(/\$(?:\$|(\w+)|\{(\w+)\}|\((\w+)\))/g, (whole, plain?: string, braced?: string, round?: string) => {
      const name = plain ?? braced ?? round
      return name === undefined ? '$' : this.#reference(name, whole, where)
    })
  }

  #reference(name: string, whole: string, where: string): string {
    if (!isOption(name)) this.#problems.push({ where, text: `${whole}: ${unknown(name, NAMES)}` })
    else if (this.#open.includes(name)) this.#problems.push({ where, text: `${[...this.#open, name].join(' → ')} goes round in a circle` })
    else return asText(this.of(name).value)
    return ''
  }
}

function unknown(name: string, known: Iterable<string>): string {
  const meant = nearest(name, known)
  return `unknown parameter ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}

/** What the kind of the parameter makes of a value; undefined after noting why not. */
function read(name: OptionName, shown: string, { value, where }: Given, problems: Problem[]): unknown {
  const reading = OPTIONS[name].kind(value)
  if ('value' in reading) return reading.value
  problems.push({ where, text: `${shown}: ${reading.wrong}` })
  return undefined
}

function readTransportMaps(said: Statements, problems: Problem[]): Config['transport_maps'] {
  const maps = new Map<string, string>()
  for (const [key, { value, where }] of said.transportMaps) {
    if (typeof value === 'string') maps.set(key.toLowerCase(), value)
    else problems.push({ where, text: `transport_maps."${key}": expected "transport:nexthop"` })
  }
  return maps
}

type Table = { -readonly [K in keyof DestinationSettings]: unknown }

function readTable(heading: string, said: ReadonlyMap<string, Given>, expansion: Expansion, problems: Problem[]): Table {
  const table: Partial<Record<string, unknown>> = {}
  for (const [name, given] of said) {
    const globalName = LOCAL_NAMES.get(name)
    if (globalName !== undefined) {
      table[name] = read(globalName, `destination."${heading}": ${name}`, { ...given, value: expansion.expand(given) }, problems)
    } else if (isOption(name) && !OPTIONS[name].perDestination) {
      problems.push({ where: given.where, text: `${name} holds for the whole relay and cannot stand in [destination."${heading}"]` })
    } else {
      problems.push({ where: given.where, text: unknown(name, LOCAL_NAMES.keys()) })
    }
  }
  return table
}

const TIMES = ['retry_backoff', 'minimal_backoff_time', 'maximal_backoff_time', 'maximal_queue_lifetime', 'bounce_queue_lifetime'] as const

type Times = Pick<Config, (typeof TIMES)[number]>

/** Checks that concern several parameters, for the relay or for one destination. */
class Coherence {
  readonly warnings: string[] = []
  readonly #problems: Problem[]

  constructor(problems: Problem[]) {
    this.#problems = problems
  }

  /** Judges the times that hold; `place` names where one of them is given. Returns the lifetime of bounces. */
  check(times: Times, inside: string, place: (name: keyof Times) => string | undefined): Duration {
    if (times.minimal_backoff_time > times.maximal_backoff_time) {
      const where = place('minimal_backoff_time') ?? place('maximal_backoff_time') ?? 'default'
      this.#problems.push({ where, text: `${inside}minimal_backoff_time is above maximal_backoff_time` })
      return times.bounce_queue_lifetime
    }
    this.#checkBackoff(times, inside, place('retry_backoff') ?? place('minimal_backoff_time') ?? place('maximal_backoff_time') ?? 'default')
    if (times.bounce_queue_lifetime <= times.maximal_queue_lifetime) return times.bounce_queue_lifetime
    const where = place('bounce_queue_lifetime')
    if (where !== undefined) {
      this.warnings.push(`${where}: ${inside}bounce_queue_lifetime is above maximal_queue_lifetime, which is used instead`)
    }
    return times.maximal_queue_lifetime
  }

  #checkBackoff(times: Times, inside: string, where: string): void {
    const { retry_backoff, minimal_backoff_time: minimal, maximal_backoff_time: maximal } = times
    try {
      compileRetryPolicy({ retry_backoff, minimal, maximal })
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      this.#problems.push({ where, text: `${inside}retry_backoff: ${error.message}` })
    }
  }
}

/** The same checks for what holds at one destination: what its table leaves out comes from the relay as a whole. */
function fitTable(heading: string, table: Table, relay: Times, said: Statements, coherence: Coherence): DestinationSettings {
  const own = said.destinations.get(heading)
  const settings = table as DestinationSettings
  // Unless it was given somewhere, the lifetime of bounces follows that of other mail here too.
  const follows = settings.maximal_queue_lifetime !== undefined && !said.parameters.has('bounce_queue_lifetime')
  const times: Times = {
    retry_backoff: settings.retry_backoff ?? relay.retry_backoff,
    minimal_backoff_time: settings.minimal_backoff_time ?? relay.minimal_backoff_time,
    maximal_backoff_time: settings.maximal_backoff_time ?? relay.maximal_backoff_time,
    maximal_queue_lifetime: settings.maximal_queue_lifetime ?? relay.maximal_queue_lifetime,
    bounce_queue_lifetime:
      settings.bounce_queue_lifetime ?? (follows ? settings.maximal_queue_lifetime : undefined) ?? relay.bounce_queue_lifetime,
  }
  const bounces = coherence.check(times, `destination."${heading}": `, (name) => own?.get(name)?.where)
  return bounces === relay.bounce_queue_lifetime ? settings : { ...settings, bounce_queue_lifetime: bounces }
}

function collect(sources: ConfigSources, said: Statements, problems: Problem[]): string | null {
  const file = findFile(sources)
  if (file !== null) stateFile(file.path, file.text, said, problems)
  stateEnvironment(sources.env, said, problems)
  stateOverrides(sources.overrides, said, problems)
  noteUnknown(said, problems)
  return file?.path ?? null
}

function noteUnknown(said: Statements, problems: Problem[]): void {
  for (const [name, { where }] of said.parameters) if (!isOption(name)) problems.push({ where, text: unknown(name, NAMES) })
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError(problems)
}

const nothingSaid = (): Statements => ({ parameters: new Map(), transportMaps: new Map(), destinations: new Map() })

export function loadConfig(sources: ConfigSources): LoadedConfig {
  const problems: Problem[] = []
  const said = nothingSaid()
  const file = collect(sources, said, problems)
  return judge(said, { file, hostname: sources.hostname ?? machineName() }, problems)
}

/** Where values in code are said to stand, and what is set beside them. */
interface CodeSources {
  readonly where?: (...key: readonly string[]) => string
  /** `name=value`, in order. */
  readonly overrides?: readonly string[]
}

/** What holds when nothing is given but `values`, in code: names and tables as in a file, which is not looked for. */
export function configFrom(
  values: Readonly<Record<string, unknown>>,
  hostname: string,
  { where = (...key) => key.join('.'), overrides = [] }: CodeSources = {},
): LoadedConfig {
  const problems: Problem[] = []
  const said = nothingSaid()
  stateTables(values, where, said, problems)
  stateOverrides(overrides, said, problems)
  noteUnknown(said, problems)
  return judge(said, { file: null, hostname }, problems)
}

/** What holds when nothing is given anywhere. */
export const defaultConfig = (hostname = machineName()): LoadedConfig => judge(nothingSaid(), { file: null, hostname }, [])

function judge(said: Statements, facts: { readonly file: string | null; readonly hostname: string }, problems: Problem[]): LoadedConfig {
  const expansion = new Expansion(said.parameters, facts.hostname, problems)
  const values = new Map<string, unknown>(NAMES.map((name) => [name, read(name, name, expansion.of(name), problems)]))
  const tables = [...said.destinations].map(([heading, table]) => [heading, readTable(heading, table, expansion, problems)] as const)
  const maps = readTransportMaps(said, problems)
  const parameters = Object.fromEntries(values) as { -readonly [K in OptionName]: Config[K] }
  const coherence = new Coherence(problems)
  // What could not be read has been told; the times are judged all the same when they are all known.
  const timed = TIMES.every((name) => values.get(name) !== undefined)
  const bounces = timed ? coherence.check(parameters, '', (name) => said.parameters.get(name)?.where) : 0
  refuse(problems)

  const written = new Map(NAMES.map((name) => [name, asText(expansion.of(name).value)]))
  if (bounces !== parameters.bounce_queue_lifetime) {
    parameters.bounce_queue_lifetime = bounces
    written.set('bounce_queue_lifetime', written.get('maximal_queue_lifetime') ?? '')
  }
  const destination = new Map(
    tables.map(([heading, table]) => [heading.toLowerCase(), fitTable(heading, table, parameters, said, coherence)]),
  )
  const config: Config = { ...parameters, transport_maps: maps, destination }
  const places: Places = {
    parameter: (name) => said.parameters.get(name)?.where,
    transport: (key) => [...said.transportMaps].find(([given]) => given.toLowerCase() === key)?.[1].where ?? 'transport_maps',
  }
  refuse([...problems, ...meaninglessValues(config, places)])
  return {
    config,
    given: new Set(said.parameters.keys()),
    file: facts.file,
    written,
    writtenTables: new Map([...said.destinations].map(([heading, table]) => [heading, writeTable(table, expansion)])),
    warnings: coherence.warnings,
  }
}

const writeTable = (table: ReadonlyMap<string, Given>, expansion: Expansion): ReadonlyMap<string, string> =>
  new Map([...table].map(([name, given]) => [name, asText(expansion.expand(given))]))
