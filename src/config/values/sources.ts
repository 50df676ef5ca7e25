/**
 * Sources of parameters: a TOML file, the environment, and `-o` on the command line. This file collects raw values with their
 * positions; load.ts validates them.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { parse, TomlDate, TomlError } from 'smol-toml'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { keyLines, keyPath } from './key-lines.ts'
import { ConfigError, type Problem } from './problem.ts'

/** A value that is not validated yet. */
export interface RawValue {
  readonly value: unknown
  /** `deferd.toml:12`, `environment`, `-o` or `default`. */
  readonly where: string
  /** Position of a key of a list of tables. */
  readonly inside?: (...key: readonly string[]) => string
}

/** Values by name. A later source overrides an earlier one. */
export interface RawSettings {
  readonly parameters: Map<string, RawValue>
  /** Entries of `[transport_maps]`. */
  readonly transportMaps: Map<string, RawValue>
  /** transport_maps as a text or a list of lookup tables; null for a TOML table, or without the parameter. */
  transportTables: RawValue | null
  readonly destinations: Map<string, Map<string, RawValue>>
  /** Positions of the headings of `destinations`. */
  readonly whereOfDestination: Map<string, string>
  readonly providers: Map<string, Map<string, RawValue>>
  /** Positions of the keys of each provider's rules. */
  readonly whereOfRule: Map<string, (n: number, key: string) => string>
  readonly classes: Map<string, Map<string, RawValue>>
  readonly dkim: Map<string, Map<string, RawValue>>
  readonly events: Map<string, Map<string, RawValue>>
  readonly oauth: Map<string, Map<string, RawValue>>
  /** Positions of the headings of `oauth`. */
  readonly whereOfOauth: Map<string, string>
  readonly schedules: Map<string, Map<string, RawValue>>
  /** Positions of the headings of `schedules`. */
  readonly whereOfSchedule: Map<string, string>
  readonly quotas: Map<string, Map<string, RawValue>>
  /** Positions of the headings of `quotas`. */
  readonly whereOfQuota: Map<string, string>
  /** Client secrets of the environment, by variable. */
  readonly oauthSecrets: Map<string, string>
  /** Files that hold the values of variables. */
  readonly variableFiles: string[]
}

/** Configuration files that are tried when none is named. The first existing file is used. */
export interface DefaultFiles {
  /** File in the current folder. Used by `deferd` itself, but not when it runs as root. */
  readonly folder: string
  readonly system: string
}

export const DEFAULT_FILES: DefaultFiles = { folder: 'deferd.toml', system: '/etc/deferd/deferd.toml' }

/** Sources of a configuration, in ascending order of precedence. */
export interface ConfigSources {
  /** `--config FILE`. */
  readonly file?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** `-o name=value`, in order. */
  readonly overrides: readonly string[]
  readonly uid: number
  /** Name of the command. Only `deferd` reads a file in the current folder, so that the folder's owner cannot configure `sendmail`. */
  readonly calledAs: string
  /** Replaces an empty myhostname. When absent, the machine's name is used. */
  readonly hostname?: string | undefined
  /** `DEFAULT_FILES` when absent. */
  readonly defaultFiles?: DefaultFiles | undefined
}

const TABLES = new Set(['transport_maps', 'destination', 'provider', 'dkim', 'events', 'oauth', 'schedule', 'quota', 'class'])

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return undefined
    throw new ConfigError([{ where: path, text: `cannot be read: ${errorMessage(cause)}; name a file that you can read with --config` }])
  }
}

/** True when the user may not look into the folder of the file, so that it is unknown whether there is one. */
function isHidden(path: string): boolean {
  try {
    statSync(path)
    return false
  } catch (error) {
    return errorCode(error) === 'EACCES'
  }
}

const namedFile = (sources: ConfigSources): string | undefined => sources.file ?? (sources.env['DEFERD_CONFIG'] || undefined)

/** The configuration file and its text; null when there is none. Throws ConfigError when a named file does not exist. */
export function findFile(sources: ConfigSources): { readonly path: string; readonly text: string } | null {
  const asked = namedFile(sources)
  if (asked !== undefined) {
    const text = readIfThere(asked)
    if (text === undefined) throw new ConfigError([{ where: asked, text: 'no such file' }])
    return { path: asked, text }
  }
  const trusted = sources.uid !== 0 && sources.calledAs === 'deferd'
  const { folder, system } = sources.defaultFiles ?? DEFAULT_FILES
  // `sudo -u deferd` keeps the working folder, which may be that of root.
  for (const path of trusted && !isHidden(folder) ? [folder, system] : [system]) {
    const text = readIfThere(path)
    if (text !== undefined) return { path, text }
  }
  return null
}

/** The file of the current folder, if it exists and `deferd` does not read it because root calls it; otherwise null. */
export function fileIgnoredForRoot(sources: ConfigSources): string | null {
  const { folder } = sources.defaultFiles ?? DEFAULT_FILES
  const ignored = namedFile(sources) === undefined && sources.uid === 0 && sources.calledAs === 'deferd'
  return ignored && existsSync(folder) ? folder : null
}

/** States that a file of fileIgnoredForRoot is ignored, and the remedy. */
export function ignoredFileWarning(path: string): string {
  const shown = isAbsolute(path) ? path : `./${path}`
  return `${shown} is not read, because root reads no file of the current folder by itself: give --config ${shown}, or set DEFERD_CONFIG`
}

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof TomlDate)

function parseToml(path: string, text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause
    const [first = cause.message] = cause.message.split('\n')
    throw new ConfigError([{ where: `${path}:${cause.line}`, text: first.replace(/^Invalid TOML document: /, '') }])
  }
}

export function addFile(path: string, text: string, raw: RawSettings, problems: Problem[]): void {
  const lines = keyLines(text)
  const where = (...key: readonly string[]): string => {
    for (let end = key.length; end > 0; end--) {
      const line = lines.get(keyPath(...key.slice(0, end)))
      if (line !== undefined) return `${path}:${line}`
    }
    return path
  }
  addTables(parseToml(path, text), where, raw, problems)
}

/** Adds the parameters and tables of a parsed file. `where` returns the position of a key. */
export function addTables(
  tables: Readonly<Record<string, unknown>>,
  where: (...key: readonly string[]) => string,
  raw: RawSettings,
  problems: Problem[],
): void {
  for (const [name, value] of Object.entries(tables)) {
    if (!TABLES.has(name)) raw.parameters.set(name, { value, where: where(name), inside: (...key) => where(name, ...key) })
    else if (name === 'transport_maps' && !isTable(value)) raw.transportTables = { value, where: where(name) }
    else if (!isTable(value)) problems.push({ where: where(name), text: `${name} must be a table: [${name}]` })
    else if (name === 'transport_maps') {
      for (const [key, target] of Object.entries(value)) raw.transportMaps.set(key, { value: target, where: where(name, key) })
    } else {
      const target =
        {
          dkim: raw.dkim,
          events: raw.events,
          provider: raw.providers,
          oauth: raw.oauth,
          schedule: raw.schedules,
          quota: raw.quotas,
          class: raw.classes,
        }[name] ?? raw.destinations
      for (const [heading, table] of Object.entries(value)) {
        if (!isTable(table)) problems.push({ where: where(name, heading), text: `expected a table: [${name}."${heading}"]` })
        else {
          const settings = Object.entries(table).map(([key, set]) => [key, { value: set, where: where(name, heading, key) }] as const)
          target.set(heading, new Map(settings))
          if (name === 'destination') raw.whereOfDestination.set(heading, where(name, heading))
          if (name === 'oauth') raw.whereOfOauth.set(heading, where(name, heading))
          if (name === 'schedule') raw.whereOfSchedule.set(heading, where(name, heading))
          if (name === 'quota') raw.whereOfQuota.set(heading, where(name, heading))
          if (name === 'provider') raw.whereOfRule.set(heading, (n, key) => where(name, heading, 'rule', String(n), key))
        }
      }
    }
  }
}

/** Matches variables that are parameters: all except those that are read elsewhere, and those of the test suite (`DEFERD_TEST_REQUIRE`). */
const SETTING = /^DEFERD_(?!CONFIG$|NATIVE_DIR$|REQUIRE_VOLUME$|TEST_)/

/** Value of DEFERD_REQUIRE_VOLUME: 1, or 0 as without it. Notes a problem for another one. */
export function volumeRequirement(env: ConfigSources['env'], problems: Problem[]): boolean {
  const { DEFERD_REQUIRE_VOLUME: value = '' } = env
  if (!['', '0', '1'].includes(value)) problems.push({ where: 'environment', text: `DEFERD_REQUIRE_VOLUME=${value}: expected 0 or 1` })
  return value === '1'
}

/** Matches variables with the client secret of an `[oauth.NAME]` table. */
const CLIENT_SECRET = /^DEFERD_OAUTH_.+_CLIENT_SECRET$/

/** Names of parameters by their form in lower case. */
type Names = ReadonlyMap<string, string>

/** Name of the parameter that a variable sets: DEFERD_SMTP_TLS_CAFILE sets smtp_tls_CAfile. */
function parameterOf(variable: string, names: Names): string {
  const name = variable.slice('DEFERD_'.length).toLowerCase()
  return names.get(name) ?? name
}

/**
 * Variable whose value is in the file that `DEFERD_NAME_FILE` names; null for a variable that has its value itself, such as that of the
 * parameter log_file.
 */
function variableOfFile(variable: string, names: Names): string | null {
  const [, named, name = ''] = /^(DEFERD_(.+))_FILE$/.exec(variable) ?? []
  if (named === undefined || names.has(`${name}_file`.toLowerCase())) return null
  return names.has(name.toLowerCase()) || name === 'TRANSPORT_MAPS' || CLIENT_SECRET.test(named) ? named : null
}

/**
 * Adds variables such as `DEFERD_MYHOSTNAME`, which sets myhostname, and `DEFERD_MYHOSTNAME_FILE`, a file with the value. `names` has
 * the parameters by their names in lower case.
 */
export function addEnvironment(env: ConfigSources['env'], names: Names, raw: RawSettings, problems: Problem[]): void {
  for (const [variable, value] of Object.entries(env)) {
    if (!SETTING.test(variable) || value === undefined) continue
    const named = variableOfFile(variable, names)
    const target = { name: parameterOf(named ?? variable, names), variable: named ?? variable }
    if (named === null) addVariable(target, { value, where: 'environment' }, raw, problems)
    else if (env[named] === undefined) addVariableFile(target, value, raw, problems)
    else problems.push({ where: 'environment', text: `${named} and ${variable} are both set: unset one of them` })
  }
}

interface Target {
  readonly variable: string
  readonly name: string
}

/** Adds the contents of a file without the line breaks at its end. */
function addVariableFile(target: Target, path: string, raw: RawSettings, problems: Problem[]): void {
  try {
    const value = readFileSync(path, 'utf8').replace(/[\r\n]+$/, '')
    raw.variableFiles.push(path)
    addVariable(target, { value, where: path }, raw, problems)
  } catch (cause) {
    problems.push({ where: 'environment', text: `${target.variable}_FILE: cannot read ${path}: ${errorMessage(cause)}` })
  }
}

function addVariable(
  { variable, name }: Target,
  setting: RawValue & { readonly value: string },
  raw: RawSettings,
  problems: Problem[],
): void {
  if (CLIENT_SECRET.test(variable)) raw.oauthSecrets.set(variable, setting.value)
  else if (name === 'transport_maps') overrideTransports(raw, setting)
  else if (TABLES.has(name)) problems.push({ where: 'environment', text: `${variable}: tables are allowed in a file only` })
  else raw.parameters.set(name, setting)
}

/** Replaces the entries or tables of the file. */
function overrideTransports(raw: RawSettings, tables: RawValue): void {
  raw.transportMaps.clear()
  raw.transportTables = tables
}

export function addOverrides(overrides: readonly string[], raw: RawSettings, problems: Problem[]): void {
  for (const override of overrides) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/s.exec(override) ?? []
    if (name === undefined || value === undefined) problems.push({ where: '-o', text: `expected name=value, got "${override}"` })
    else if (name === 'transport_maps') overrideTransports(raw, { value, where: '-o' })
    else if (TABLES.has(name)) problems.push({ where: '-o', text: `${name}: tables are allowed in a file only` })
    else raw.parameters.set(name, { value, where: '-o' })
  }
}
