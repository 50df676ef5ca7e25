/** The commands of deferd as a tree of plain values, for man pages and shell completions. */
import type { Command } from 'commander'

export interface CommandOption {
  /** Flags as in the help text: `-n, --lines <count>`. */
  readonly flags: string
  /** Flags without the argument: `-n`, `--lines`. */
  readonly names: readonly string[]
  readonly description: string
  /** Values that the option accepts; empty for any value. */
  readonly choices: readonly string[]
  readonly takesValue: boolean
}

export interface CommandNode {
  /** Names from the program to the command: `deferd`, `queue`, `list`. */
  readonly path: readonly string[]
  readonly description: string
  /** Arguments as in the help text: `[options] <id>`. */
  readonly usage: string
  readonly options: readonly CommandOption[]
  readonly commands: readonly CommandNode[]
  /** Text below the options: explanations and examples. */
  readonly notes: string
}

const WIDTH = 78

/** Text that addHelpText has added to the help text of a command. */
function notesOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => WIDTH })
  command.outputHelp()
  return text.slice(command.helpInformation().length).trim()
}

function optionsOf(command: Command): readonly CommandOption[] {
  const help = command.createHelp()
  return help.visibleOptions(command).map((option) => ({
    flags: option.flags,
    names: [option.short, option.long].filter((name) => name !== undefined),
    description: help.optionDescription(option),
    choices: option.argChoices ?? [],
    takesValue: option.required || option.optional,
  }))
}

export function commandTree(command: Command, above: readonly string[] = []): CommandNode {
  const path = [...above, command.name()]
  return {
    path,
    description: command.description(),
    usage: command.usage(),
    options: optionsOf(command),
    commands: command.commands.map((sub) => commandTree(sub, path)),
    notes: notesOf(command),
  }
}

/** The command and all commands below it. */
export function* nodesOf(node: CommandNode): Generator<CommandNode> {
  yield node
  for (const sub of node.commands) yield* nodesOf(sub)
}
