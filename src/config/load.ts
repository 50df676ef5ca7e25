/**
 * Loads the configuration: file, environment and command line override the defaults of the option table. The result is a complete
 * Config, or a ConfigError with all problems and their positions. An invalid value is never replaced by a default.
 */
import { hostname as machineName } from 'node:os'
import { DEPRECATIONS, deprecationWarnings, type Deprecations } from './values/option.ts'
import { readDkimTable } from './values/tables/dkim-tables.ts'
import { readEventsTable } from './values/tables/event-tables.ts'
import { headingMistake } from './destination-headings.ts'
import { noteUnknownOauth, readOauthTables } from './oauth-tables.ts'
import { readClassTables } from './values/tables/class-tables.ts'
import { readProviderTable } from './provider-tables.ts'
import { readQuotaTables } from './values/tables/quota-tables.ts'
import { readScheduleTables } from './values/tables/schedule-tables.ts'
import { readParameter, readSettings } from './setting-tables.ts'
import { asText, Expansion, isOption, NAMES, unknownParameter } from './expansion.ts'
import { listenerTables, readListeners } from './smtpd-listeners.ts'
import { semanticProblems, type Origins } from './meaning.ts'
import { COMMAND_TABLE } from './values/tables/oauth-table.ts'
import { OPTIONS, type Config, type DestinationSettings, type OptionName } from './options.ts'
import { ConfigError, inLineOrder, type Problem } from './values/problem.ts'
import { fitTable, QueueTimes, TIMES, type Times } from './queue-times.ts'
import { readTransportMaps, readTransportTables } from './transport-tables.ts'
import { writtenAs, writtenTables, type WrittenTables } from './written-config.ts'
import {
  fileIgnoredForRoot,
  findFile,
  addEnvironment,
  addFile,
  addOverrides,
  addTables,
  volumeRequirement,
  type ConfigSources,
  type RawSettings,
} from './values/sources.ts'

export { ConfigError } from './values/problem.ts'
export type { ConfigSources } from './values/sources.ts'

export interface LoadedConfig extends WrittenTables {
  readonly config: Config
  /** Names of the parameters that the file, the environment or the command line sets. */
  readonly given: ReadonlySet<string>
  /** Position of a parameter, for problems that are found later: `deferd.toml:12`, `environment` or `-o`; empty for a default. */
  readonly whereOf: (name: OptionName) => string
  /** Path of the file that was read; null without a file. */
  readonly file: string | null
  /** Path of the file in the current folder that exists and is not read, because root runs `deferd`; otherwise null. */
  readonly ignoredFile: string | null
  /** All parameters in the syntax of the file, with `$name` expanded. */
  readonly written: ReadonlyMap<OptionName, string>
  /** Client secrets of the environment, by variable (secretVariable). Nothing prints them. */
  readonly oauthSecrets: ReadonlyMap<string, string>
  /** Files that variables such as DEFERD_QUEUE_DATABASE_FILE name. */
  readonly variableFiles: readonly string[]
  /** Whether a queue in files has to be on a volume of its own (DEFERD_REQUIRE_VOLUME). */
  readonly requiresVolume: boolean
  /** Reports of replaced values, each with its position and the reason. */
  readonly warnings: readonly string[]
}

const NAMES_IN_LOWER_CASE: ReadonlyMap<string, string> = new Map(NAMES.map((name) => [name.toLowerCase(), name]))

const NO_KEYS: ReadonlySet<string> = new Set()

function collect(sources: ConfigSources, raw: RawSettings, problems: Problem[]): string | null {
  const file = findFile(sources)
  if (file !== null) addFile(file.path, file.text, raw, problems)
  addEnvironment(sources.env, NAMES_IN_LOWER_CASE, raw, problems)
  addOverrides(sources.overrides, raw, problems)
  noteUnknown(raw, problems)
  return file?.path ?? null
}

function noteUnknown(raw: RawSettings, problems: Problem[]): void {
  for (const [name, { where }] of raw.parameters) if (!isOption(name)) problems.push({ where, text: unknownParameter(name, NAMES) })
}

function noteHeadings({ whereOfDestination }: RawSettings, config: Pick<Config, 'smtp_tcp_port'>, problems: Problem[]): void {
  for (const [heading, where] of whereOfDestination) {
    const mistake = headingMistake(heading.toLowerCase(), config)
    if (mistake !== null) problems.push({ where, text: `destination.${JSON.stringify(heading)} ${mistake}` })
  }
}

/**
 * Throws the problems. A problem of a default that refers to another parameter with a problem is left out, because it follows from that
 * one.
 */
function throwProblems(problems: readonly Problem[]): void {
  const given = problems.filter(({ where }) => where !== 'default')
  if (problems.length > 0) throw new ConfigError(inLineOrder(given.length > 0 ? given : problems))
}

const emptySettings = (): RawSettings => ({
  parameters: new Map(),
  transportMaps: new Map(),
  transportTables: null,
  destinations: new Map(),
  whereOfDestination: new Map(),
  providers: new Map(),
  whereOfRule: new Map(),
  classes: new Map(),
  dkim: new Map(),
  events: new Map(),
  oauth: new Map(),
  whereOfOauth: new Map(),
  schedules: new Map(),
  whereOfSchedule: new Map(),
  quotas: new Map(),
  whereOfQuota: new Map(),
  oauthSecrets: new Map(),
  variableFiles: [],
})

/**
 * Loads the configuration from `sources`. Reads at most one file. Throws ConfigError (exit code 78) with all problems, each
 * with file and line. Times in the result are milliseconds, sizes bytes.
 */
export function loadConfig(sources: ConfigSources, deprecations = DEPRECATIONS): LoadedConfig {
  const problems: Problem[] = []
  const raw = emptySettings()
  const file = collect(sources, raw, problems)
  const ignoredFile = fileIgnoredForRoot(sources)
  const requiresVolume = volumeRequirement(sources.env, problems)
  const facts = { file, ignoredFile, requiresVolume, deprecations, hostname: sources.hostname ?? machineName() }
  return interpret(raw, facts, problems)
}

interface CodeSources {
  /** Position of a key in problem texts; the key itself when absent. */
  readonly where?: (...key: readonly string[]) => string
  /** Parameters as `name=value`, in order. They override `values`. */
  readonly overrides?: readonly string[]
}

/**
 * Makes a configuration from `values`, which have the names and tables of a file. Reads no files and no environment. `hostname`
 * is the default of myhostname; when absent, that is the machine's name. Throws ConfigError with all problems.
 */
export function configFrom(
  values: Readonly<Record<string, unknown>>,
  hostname: string = machineName(),
  { where = (...key) => key.join('.'), overrides = [] }: CodeSources = {},
): LoadedConfig {
  const problems: Problem[] = []
  const raw = emptySettings()
  addTables(values, where, raw, problems)
  addOverrides(overrides, raw, problems)
  noteUnknown(raw, problems)
  return interpret(raw, { ...NO_SOURCES, hostname }, problems)
}

const NO_SOURCES = { file: null, ignoredFile: null, requiresVolume: false, deprecations: DEPRECATIONS }

export const defaultConfig = (hostname = machineName()): LoadedConfig => interpret(emptySettings(), { ...NO_SOURCES, hostname }, [])

/** Values of the parameters; smtpd as it is written. */
type ParameterValues = { -readonly [K in Exclude<OptionName, 'smtpd'>]: Config[K] } & {
  readonly smtpd: readonly Readonly<Record<string, unknown>>[]
}

interface Facts extends Pick<LoadedConfig, 'file' | 'ignoredFile' | 'requiresVolume'> {
  readonly hostname: string
  readonly deprecations: Deprecations
}

function interpret(raw: RawSettings, { hostname, deprecations, ...facts }: Facts, problems: Problem[]): LoadedConfig {
  const expansion = new Expansion(raw.parameters, hostname, problems)
  const { values, malformed } = readAll(expansion, problems)
  const ownTables = [...raw.destinations].map(([heading, table]) => {
    const settings = readSettings(table, { shown: `destination."${heading}"`, ownKeys: NO_KEYS, expansion }, problems)
    return [heading, settings] as const
  })
  const maps = readTransportMaps(raw, problems)
  const transportTables = readTransportTables(raw, problems)
  const parameters = Object.fromEntries(values) as ParameterValues
  const listeners = listenerTables(parameters.smtpd, raw.parameters.get('smtpd'), expansion)
  const queueTimes = new QueueTimes(problems)
  // Times are compared with each other only if each of them is valid.
  const timed = TIMES.every((name) => !malformed.has(name))
  const bounces = timed ? queueTimes.check(parameters, '', (name) => raw.parameters.get(name)?.where) : 0

  const written = new Map(NAMES.map((name) => [name, writtenAs(name, asText(expansion.of(name).value))]))
  written.set('smtpd', asText(listeners.map((table) => Object.fromEntries([...table].map(([key, { value }]) => [key, value])))))
  if (timed && bounces !== parameters.bounce_queue_lifetime) {
    parameters.bounce_queue_lifetime = bounces
    written.set('bounce_queue_lifetime', written.get('maximal_queue_lifetime') ?? '')
  }
  const fit: Fit = (settings, inside, own) =>
    timed ? fitTable(settings, { inside, relay: parameters, own, given: raw.parameters, queueTimes }) : settings
  const destination = new Map(
    ownTables.map(([heading, table]) => [heading.toLowerCase(), fit(table, `destination."${heading}": `, raw.destinations.get(heading))]),
  )
  const provider = readProviders(raw, { parameters, expansion, fit }, problems)
  const named = readNamedTables(raw, parameters, problems)
  const oauth = readOauthTables(raw, parameters, problems)
  const classes = readClasses(raw, parameters, expansion, problems)
  if (timed) checkClassTimes(classes, { raw, parameters, destination, provider, queueTimes })
  if (oauth.get(COMMAND_TABLE)?.command === parameters.smtp_sasl_oauth_token_command && !raw.parameters.has('smtp_sasl_oauth')) {
    parameters.smtp_sasl_oauth = COMMAND_TABLE
    written.set('smtp_sasl_oauth', COMMAND_TABLE)
  }
  noteHeadings(raw, parameters, problems)
  const smtpd = readListeners(listeners, raw.parameters.get('smtpd'), problems)
  const tables = { smtpd, transport_maps: maps, transport_tables: transportTables, destination, provider, class: classes, oauth, ...named }
  const config: Config = { ...parameters, ...tables }
  noteUnknownOauth(config, raw, problems)
  throwProblems([...problems, ...semanticProblems(config, originsOf(raw, malformed))])
  return {
    config,
    given: new Set(raw.parameters.keys()),
    whereOf: (name) => raw.parameters.get(name)?.where ?? '',
    ...facts,
    written,
    ...writtenTables(raw, expansion),
    oauthSecrets: raw.oauthSecrets,
    variableFiles: raw.variableFiles,
    warnings: [...queueTimes.warnings, ...deprecationWarnings(raw, deprecations)],
  }
}

const readClasses = (raw: RawSettings, parameters: ParameterValues, expansion: Expansion, problems: Problem[]): Config['class'] =>
  readClassTables(
    {
      tables: raw.classes,
      readParameter: (name, shown, given) => readParameter(name, shown, { ...given, value: expansion.expand(given) }, problems),
      defaultClass: parameters.default_class,
      whereOfDefault: raw.parameters.get('default_class')?.where ?? '',
    },
    problems,
  )

/** Fits the times of a table to each other, with the positions of `own` in problems. */
type Fit = (settings: DestinationSettings, inside: string, own: Parameters<typeof fitTable>[1]['own']) => DestinationSettings

interface ProviderContext {
  readonly parameters: ParameterValues
  readonly expansion: Expansion
  readonly fit: Fit
}

/** Tables that have no parameters of the relay. */
function readNamedTables(
  raw: RawSettings,
  parameters: ParameterValues,
  problems: Problem[],
): Pick<Config, 'dkim' | 'events' | 'schedule' | 'quota'> {
  const dkim = new Map(
    [...raw.dkim].map(([heading, table]) => {
      const lower = heading.toLowerCase()
      return [lower, readDkimTable(lower, table, parameters.maximal_queue_lifetime, problems)] as const
    }),
  )
  const events = new Map([...raw.events].map(([name, table]) => [name, readEventsTable(name, table, problems)]))
  const schedule = readScheduleTables(raw, parameters, problems)
  return { dkim, events, schedule, quota: readQuotaTables(raw, parameters, problems) }
}

function readProviders(raw: RawSettings, { parameters, expansion, fit }: ProviderContext, problems: Problem[]): Config['provider'] {
  const shared = { expansion, limits: parameters, adaptiveRate: parameters.default_destination_adaptive_rate }
  return new Map(
    [...raw.providers].map(([name, table]) => {
      const whereOfRule = raw.whereOfRule.get(name) ?? (() => '')
      const read = readProviderTable(name, { raw: table, whereOfRule, ...shared }, problems)
      return [name, { ...read, settings: fit(read.settings, `provider.${JSON.stringify(name)}: `, table) }]
    }),
  )
}

/** The parameters that a table sets. */
const definedOf = (table: DestinationSettings): Partial<Times> =>
  Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined))

interface ClassTimes extends Pick<Config, 'destination' | 'provider'> {
  readonly raw: RawSettings
  readonly parameters: ParameterValues
  readonly queueTimes: QueueTimes
}

/** Compares the times of each class with those of the relay, and of the tables of destinations and providers that it takes the place of. */
function checkClassTimes(classes: Config['class'], { raw, parameters, destination, provider, queueTimes }: ClassTimes): void {
  const tables = [...destination.values(), ...[...provider.values()].map(({ settings }) => settings)]
  for (const { name, settings: own } of classes.values()) {
    const given = raw.classes.get(name)
    for (const below of [{}, ...tables])
      if (!queueTimes.agree({ ...parameters, ...definedOf(below), ...own }, `class.${name}: `, (time) => given?.get(time)?.where)) break
  }
}

const originsOf = (raw: RawSettings, malformed: ReadonlySet<OptionName>): Origins => ({
  parameter: (name) => (malformed.has(name) ? undefined : raw.parameters.get(name)?.where),
  transport: (key) => [...raw.transportMaps].find(([given]) => given.toLowerCase() === key)?.[1].where ?? 'transport_maps',
  transportTables: raw.transportTables?.where ?? 'transport_maps',
  table: (heading, name) => [...raw.destinations].find(([given]) => given.toLowerCase() === heading)?.[1].get(name)?.where,
  malformed,
})

/**
 * Reads all parameters. A malformed value is replaced by the default, so that further checks report the other problems in the same pass.
 */
function readAll(
  expansion: Expansion,
  problems: Problem[],
): { readonly values: ReadonlyMap<string, unknown>; readonly malformed: ReadonlySet<OptionName> } {
  const values = new Map<string, unknown>()
  const malformed = new Set<OptionName>()
  for (const name of NAMES) {
    const before = problems.length
    const value = readParameter(name, name, expansion.of(name), problems)
    if (problems.length > before) malformed.add(name)
    values.set(name, value ?? defaultOf(name))
  }
  return { values, malformed }
}

/** The default of a parameter whose value is malformed. References in it, such as `$myhostname`, are not expanded. */
function defaultOf(name: OptionName): unknown {
  const reading = OPTIONS[name].kind(OPTIONS[name].default)
  return 'value' in reading ? reading.value : undefined
}
