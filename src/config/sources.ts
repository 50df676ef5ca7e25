/**
 * Where parameters are given: a TOML file, the environment, `-o` on the command line. What they say is only collected
 * here, each value with its place; load.ts judges it.
 */
import { readFileSync } from 'node:fs'
import { parse, TomlDate, TomlError } from 'smol-toml'
import { keyLines, keyPath } from './key-lines.ts'
import { ConfigError, type Problem } from './problem.ts'

/** A value as it was given, and where. */
export interface Given {
  readonly value: unknown
  readonly where: string
}

/** Everything that was said, by name; later sources have replaced earlier ones. */
export interface Statements {
  readonly parameters: Map<string, Given>
  readonly transportMaps: Map<string, Given>
  readonly destinations: Map<string, Map<string, Given>>
}

export interface ConfigSources {
  /** `--config FILE`. */
  readonly file?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** `-o name=value`, in order. */
  readonly overrides: readonly string[]
  readonly uid: number
  /** The name of the command: whoever runs `sendmail` in a folder must not be configured by it. */
  readonly calledAs: string
  /** Stands in for an empty myhostname; the name of this machine when absent. */
  readonly hostname?: string | undefined
}

const TABLES = new Set(['transport_maps', 'destination'])
const SYSTEM_FILE = '/etc/deferd/deferd.toml'
const FOLDER_FILE = 'deferd.toml'

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new ConfigError([{ where: path, text: `cannot be read: ${(cause as Error).message}` }])
  }
}

/** The file that holds, with its text; null when there is none, which is fine unless one was asked for. */
export function findFile(sources: ConfigSources): { readonly path: string; readonly text: string } | null {
  const asked = sources.file ?? (sources.env['DEFERD_CONFIG'] || undefined)
  if (asked !== undefined) {
    const text = readIfThere(asked)
    if (text === undefined) throw new ConfigError([{ where: asked, text: 'there is no such file' }])
    return { path: asked, text }
  }
  const trusted = sources.uid !== 0 && sources.calledAs === 'deferd'
  for (const path of trusted ? [FOLDER_FILE, SYSTEM_FILE] : [SYSTEM_FILE]) {
    const text = readIfThere(path)
    if (text !== undefined) return { path, text }
  }
  return null
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

export function stateFile(path: string, text: string, said: Statements, problems: Problem[]): void {
  const lines = keyLines(text)
  const where = (...key: readonly string[]): string => {
    for (let end = key.length; end > 0; end--) {
      const line = lines.get(keyPath(...key.slice(0, end)))
      if (line !== undefined) return `${path}:${line}`
    }
    return path
  }
  stateTables(parseToml(path, text), where, said, problems)
}

/** Parameters and tables as TOML gives them; `where` says where a key stands. */
export function stateTables(
  tables: Readonly<Record<string, unknown>>,
  where: (...key: readonly string[]) => string,
  said: Statements,
  problems: Problem[],
): void {
  for (const [name, value] of Object.entries(tables)) {
    if (!TABLES.has(name)) said.parameters.set(name, { value, where: where(name) })
    else if (!isTable(value)) problems.push({ where: where(name), text: `${name} must be a table: [${name}]` })
    else if (name === 'transport_maps') {
      for (const [key, target] of Object.entries(value)) said.transportMaps.set(key, { value: target, where: where(name, key) })
    } else {
      for (const [heading, table] of Object.entries(value)) {
        if (!isTable(table)) problems.push({ where: where(name, heading), text: `expected a table: [destination."${heading}"]` })
        else {
          const settings = Object.entries(table).map(([key, set]) => [key, { value: set, where: where(name, heading, key) }] as const)
          said.destinations.set(heading, new Map(settings))
        }
      }
    }
  }
}

/** `DEFERD_MYHOSTNAME=…` sets myhostname. */
export function stateEnvironment(env: ConfigSources['env'], said: Statements, problems: Problem[]): void {
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith('DEFERD_') || variable === 'DEFERD_CONFIG' || value === undefined) continue
    const name = variable.slice('DEFERD_'.length).toLowerCase()
    if (TABLES.has(name)) problems.push({ where: 'environment', text: `${variable}: tables can be given in a file only` })
    else said.parameters.set(name, { value, where: 'environment' })
  }
}

export function stateOverrides(overrides: readonly string[], said: Statements, problems: Problem[]): void {
  for (const override of overrides) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/s.exec(override) ?? []
    if (name === undefined || value === undefined) problems.push({ where: '-o', text: `expected name=value, got "${override}"` })
    else if (TABLES.has(name)) problems.push({ where: '-o', text: `${name}: tables can be given in a file only` })
    else said.parameters.set(name, { value, where: '-o' })
  }
}
