/** Options that all commands share: the sources of the configuration, and parsers for arguments. */
import { Command, InvalidArgumentError } from 'commander'
import { loadConfig, type LoadedConfig } from '../../config/load.ts'
import { parseDuration } from '../../system/duration.ts'
import { NAMED_INSTANT, parseNamedInstant } from '../../mail/message-times.ts'
import type { Duration, WallTime } from '../../system/clock.ts'
import { shellWord } from '../../system/shell-word.ts'
import type { Shell } from './shell.ts'

const collect = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value]

interface ConfigOptions {
  readonly config?: string
  readonly o?: readonly string[]
}

/** Adds the options that select the configuration. */
export const withConfig = (command: Command): Command =>
  command
    .option('--config <file>', 'configuration file (default: $DEFERD_CONFIG, ./deferd.toml unless root, /etc/deferd/deferd.toml)')
    .option('-o <name=value>', 'set a parameter; repeatable', collect)

/** Adds a subcommand with the common options. */
export const subcommand = (parent: Command, usage: string, summary: string): Command =>
  withConfig(parent.command(usage).description(summary))

/** Configuration options, given before or after the command's name. */
function configurationOptions(command: Command): { readonly file: string | undefined; readonly overrides: readonly string[] } {
  let file: string | undefined
  let overrides: readonly string[] = []
  for (let level: Command | null = command; level !== null; level = level.parent) {
    const { config, o = [] } = level.opts<ConfigOptions>()
    file ??= config
    overrides = [...o, ...overrides]
  }
  return { file, overrides }
}

/** The parameters given with `-o`, in order. */
export const overridesOf = (command: Command): readonly string[] => configurationOptions(command).overrides

/** The configuration file that the command line names; undefined without one. */
export const configFileOf = (command: Command): string | undefined => configurationOptions(command).file

export const configOf = (shell: Shell, command: Command, calledAs = 'deferd'): Promise<LoadedConfig> =>
  loadShellConfig(shell, { ...configurationOptions(command), calledAs })

/** The options that make another command use the same configuration, quoted for a shell. */
export function configFlags(command: Command): string {
  const { file, overrides } = configurationOptions(command)
  const args = [...(file === undefined ? [] : ['--config', file]), ...overrides.flatMap((override) => ['-o', override])]
  return args.map((arg) => ` ${shellWord(arg)}`).join('')
}

/** The configuration of a command that prepares a start: the preparation reports its warnings, in the log or as findings. */
export const configToPrepare = (shell: Shell, command: Command): LoadedConfig =>
  loadNamed(shell, { ...configurationOptions(command), calledAs: 'deferd' })

interface Named {
  readonly file?: string | undefined
  readonly overrides: readonly string[]
  readonly calledAs: string
}

const loadNamed = (shell: Shell, named: Named): LoadedConfig =>
  loadConfig({ ...named, env: shell.env, uid: shell.uid, defaultFiles: shell.defaultFiles })

/** Loads the configuration and prints its warnings. */
export async function loadShellConfig(shell: Shell, named: Named): Promise<LoadedConfig> {
  const loaded = loadNamed(shell, named)
  for (const warning of loaded.warnings) await shell.stderr.write(`deferd: warning: ${warning}\n`)
  return loaded
}

export function durationArgument(text: string): Duration {
  const duration = parseDuration(text)
  if (duration === undefined) throw new InvalidArgumentError('Expected a time such as 30m, 2h or 1d.')
  return duration
}

export function instantArgument(text: string): WallTime {
  const at = parseNamedInstant(text)
  if (at === undefined) throw new InvalidArgumentError(`Expected ${NAMED_INSTANT}.`)
  return at
}

export function countArgument(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}
