/**
 * What every command has in common: where its configuration comes from, how it says that it does not understand, and
 * how a filter or an id is written.
 */
import { Command, InvalidArgumentError } from 'commander'
import { loadConfig, type LoadedConfig } from '../config/load.ts'
import { parseDuration } from '../config/values.ts'
import type { Duration } from '../mail/clock.ts'
import type { Shell } from './shell.ts'

const collect = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value]

interface ConfigOptions {
  readonly config?: string
  readonly o?: readonly string[]
}

/** Adds what says where the configuration is. */
export const withConfig = (command: Command): Command =>
  command
    .option('--config <file>', 'configuration file (else $DEFERD_CONFIG, ./deferd.toml, /etc/deferd/deferd.toml)')
    .option('-o <name=value>', 'set a parameter; may be given several times', collect)

/** A subcommand with the options of all. */
export const subcommand = (parent: Command, usage: string, summary: string): Command =>
  withConfig(parent.command(usage).description(summary))

/** What was said about the configuration; options given before the name of the command count too. */
function said(command: Command): { readonly file: string | undefined; readonly overrides: readonly string[] } {
  let file: string | undefined
  let overrides: readonly string[] = []
  for (let level: Command | null = command; level !== null; level = level.parent) {
    const { config, o = [] } = level.opts<ConfigOptions>()
    file ??= config
    overrides = [...o, ...overrides]
  }
  return { file, overrides }
}

/** What was said with `-o`, in order. */
export const overridesOf = (command: Command): readonly string[] => said(command).overrides

/** The configuration that holds for a command. */
export const configOf = (shell: Shell, command: Command, calledAs = 'deferd'): Promise<LoadedConfig> =>
  loadShellConfig(shell, { ...said(command), calledAs })

/** The options that make another command read the same configuration, ready for a shell. */
export function configFlags(command: Command): string {
  const { file, overrides } = said(command)
  const words = [...(file === undefined ? [] : ['--config', file]), ...overrides.flatMap((override) => ['-o', override])]
  return words.map((word) => ` ${quoted(word)}`).join('')
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** Reads the configuration and passes on its warnings. */
export async function loadShellConfig(
  shell: Shell,
  { file, overrides, calledAs }: { readonly file?: string | undefined; readonly overrides: readonly string[]; readonly calledAs: string },
): Promise<LoadedConfig> {
  const loaded = loadConfig({ file, overrides, calledAs, env: shell.env, uid: shell.uid })
  for (const warning of loaded.warnings) await shell.stderr.write(`deferd: warning: ${warning}\n`)
  return loaded
}

export function durationArgument(text: string): Duration {
  const duration = parseDuration(text)
  if (duration === undefined) throw new InvalidArgumentError('Expected a time such as 30m, 2h or 1d.')
  return duration
}

export function countArgument(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}
