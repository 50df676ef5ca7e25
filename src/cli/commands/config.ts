/** `deferd config`: prints the effective parameters as `name = value`, like postconf(1). */
import type { Command } from 'commander'
import { defaultConfig, type LoadedConfig } from '../../config/load.ts'
import { OPTIONS, type OptionName } from '../../config/options.ts'
import { unknownParameter } from '../../config/expansion.ts'
import { ignoredFileWarning } from '../../config/values/sources.ts'
import { differs } from '../../resources/settings-json.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls, jsonLine } from '../../presentation/text.ts'

interface Options {
  readonly n?: true
  readonly json?: true
}

const NAMES = Object.keys(OPTIONS).toSorted() as OptionName[]

function chosen(names: readonly string[]): readonly OptionName[] {
  if (names.length === 0) return NAMES
  return names.map((asked) => {
    const name = NAMES.find((known) => known === asked)
    if (name !== undefined) return name
    throw new CommandError(EX.usage, unknownParameter(maskControls(asked), NAMES))
  })
}

function* tables({
  config,
  writtenTransports,
  writtenTables,
  writtenProviders,
  writtenDkim,
  writtenEvents,
  writtenOauth,
  writtenSchedules,
  writtenQuotas,
  writtenClasses,
}: LoadedConfig): Generator<string> {
  if (writtenTransports !== '') yield `transport_maps = ${writtenTransports}`
  if (config.transport_maps.size > 0) {
    yield '\n[transport_maps]'
    for (const [key, target] of config.transport_maps) yield `${JSON.stringify(key)} = ${target}`
  }
  yield* headed('destination', writtenTables)
  yield* headed('provider', writtenProviders)
  yield* headed('dkim', writtenDkim)
  yield* headed('events', writtenEvents)
  yield* headed('oauth', writtenOauth)
  yield* headed('schedule', writtenSchedules)
  yield* headed('quota', writtenQuotas)
  yield* headed('class', writtenClasses)
}

function* headed(kind: string, written: ReadonlyMap<string, ReadonlyMap<string, string>>): Generator<string> {
  for (const [heading, table] of written) {
    yield `\n[${kind}.${JSON.stringify(heading)}]`
    for (const [name, value] of table) yield `${name} = ${value}`
  }
}

export function configLines(loaded: LoadedConfig, defaults: LoadedConfig, names: readonly string[], options: Options): readonly string[] {
  const shown = chosen(names).filter((name) => options.n !== true || differs(loaded, defaults, name))
  const lines = shown.map((name) => {
    const value = loaded.written.get(name) ?? ''
    return options.json === true
      ? jsonLine({ name, value, default: defaults.written.get(name), given: loaded.given.has(name) })
      : `${maskControls(`${name} = ${value}`).trimEnd()}\n`
  })
  const rest =
    names.length > 0 || options.json === true
      ? []
      : [...tables(loaded)].map((line) => `${line.startsWith('\n') ? '\n' : ''}${maskControls(line.trimStart())}\n`)
  return [...lines, ...rest]
}

export function addConfig(program: Command, shell: Shell): void {
  subcommand(program, 'config [name...]', 'print effective parameters, like postconf')
    .option('-n', 'only those that are set and differ from the default')
    .option('--json', 'one JSON object per parameter')
    .addHelpText('after', '\nExamples:\n  deferd config -n\n  deferd config minimal_backoff_time maximal_backoff_time')
    .action(async (names: readonly string[], options: Options, command: Command) => {
      const loaded = await configOf(shell, command)
      if (loaded.ignoredFile !== null) await shell.stderr.write(`deferd: warning: ${ignoredFileWarning(loaded.ignoredFile)}\n`)
      const defaults = defaultConfig()
      await shell.stdout.write(configLines(loaded, defaults, names, options).join(''))
    })
}
