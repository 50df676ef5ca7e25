/** `deferd help TOPIC`: the help of a command, or the documentation of a parameter, also of one that only Postfix has. */
import type { Command } from 'commander'
import { isOption } from '../../config/expansion.ts'
import { OPTIONS, type OptionName } from '../../config/options.ts'
import { postfixOnly } from '../../config/values/postfix-parameters.ts'
import { nearest } from '../../config/values/problem.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls } from '../../presentation/text.ts'

interface HelpContext {
  readonly shell: Shell
  readonly end: (code: number) => void
  readonly again: (argv: readonly string[]) => Promise<number>
  readonly commands: readonly string[]
  /** Names of the subcommands of a command; empty for a command without any. */
  readonly commandsOf: (name: string) => Promise<readonly string[]>
}

function parameterHelp(name: OptionName): string {
  const { about, default: byDefault, perDestination } = OPTIONS[name]
  const tables = perDestination ? `\nAllowed in [destination."…"] as ${name.replace(/^default_/, '')}.` : ''
  return `${name}: ${about}\nDefault: ${byDefault === '' ? '(empty)' : byDefault}${tables}\n`
}

/** The error for a topic below the command `name`, which has the subcommands `known`. */
function noHelp(topic: string, name: string, known: readonly string[]): CommandError {
  const meant = nearest(
    topic,
    known.map((one) => `${name} ${one}`),
  )
  const hint = meant === undefined ? `deferd help ${name} is all` : `did you mean ${meant}?`
  return new CommandError(EX.usage, `there is no help on ${maskControls(topic)}; ${hint}`)
}

export function addHelp(program: Command, { shell, end, again, commands, commandsOf }: HelpContext): void {
  program
    .command('help [topic...]')
    .description('help on a command or a parameter')
    .addHelpText('after', '\nExamples:\n  deferd help queue list\n  deferd help relayhost')
    .action(async (topic: readonly string[]) => {
      const [name] = topic
      if (name === undefined) return end(await again(['--help']))
      const isCommand = commands.includes(name)
      if (isOption(name) && !isCommand) return shell.stdout.write(parameterHelp(name))
      const remedy = postfixOnly(name)
      if (remedy !== undefined) return shell.stdout.write(`${remedy}\n`)
      if (isCommand) {
        // A parameter may have the name of a command.
        if (isOption(name) && topic.length === 1) await shell.stdout.write(`${parameterHelp(name)}\n`)
        const [, inner, ...rest] = topic
        const known = inner === undefined ? [] : await commandsOf(name)
        if (inner !== undefined && (rest.length > 0 || !known.includes(inner))) throw noHelp(topic.join(' '), name, known)
        return end(await again([...topic, '--help']))
      }
      const meant = nearest(name, [...commands, ...Object.keys(OPTIONS)])
      const hint = meant === undefined ? 'deferd --help lists the commands, deferd config the parameters' : `did you mean ${meant}?`
      throw new CommandError(EX.usage, `there is no help on ${maskControls(name)}; ${hint}`)
    })
}
