/**
 * The command line program: finds the command, runs it, and reports a failure as one sentence on standard error with an exit code
 * of sysexits(3). Only unexpected errors print a stack.
 */
import { Command, CommanderError } from 'commander'
import { NOTICES, resource } from '../system/packaged-files.ts'
import { VERSION } from '../system/version.ts'
import { withConfig } from './shell/config-options.ts'
import { POSTFIX_NAMES } from './postfix/tools.ts'
import { BrokenPipe, EX } from './shell/exit.ts'
import type { Shell } from './shell/shell.ts'
import { maskControls } from '../presentation/text.ts'
import { isDamage } from '../store/errors.ts'

/** Output of the command-line parser, written after parsing, and the exit code. */
interface CommandOutput {
  /** Exit code when no error is thrown. */
  code: number
  out: string
  err: string
}

interface CommandContext {
  readonly shell: Shell
  /** The argument after the command name; undefined without one. */
  readonly next: string | undefined
  readonly end: (code: number) => void
  /** Runs another command line. */
  readonly again: (argv: readonly string[]) => Promise<number>
}

type Add = (program: Command, context: CommandContext) => Promise<unknown>

/** All commands except the Postfix tools, in the order of the help text. Only the module of the called command is loaded. */
const COMMANDS: ReadonlyMap<string, Add> = new Map<string, Add>([
  ['demo', async (program, { shell }) => (await import('./commands/demo.ts')).addDemo(program, shell)],
  ['start', async (program, { shell }) => (await import('./commands/start.ts')).addStart(program, shell)],
  ['reload', async (program, { shell }) => (await import('./commands/reload.ts')).addReload(program, shell)],
  ['status', async (program, { shell }) => (await import('./commands/status.ts')).addStatus(program, shell)],
  ['top', async (program, { shell }) => (await import('./commands/status.ts')).addTop(program, shell)],
  ['queue', async (program, { shell, next }) => (await import('./commands/queue.ts')).addQueue(program, shell, next)],
  ['history', async (program, { shell }) => (await import('./commands/history/history-list.ts')).addHistory(program, shell)],
  ['destination', async (program, { shell }) => (await import('./commands/destination.ts')).addDestination(program, shell)],
  ['provider', async (program, { shell }) => (await import('./commands/provider.ts')).addProvider(program, shell)],
  ['node', async (program, { shell }) => (await import('./commands/node.ts')).addNode(program, shell)],
  ['config', async (program, { shell }) => (await import('./commands/config.ts')).addConfig(program, shell)],
  ['map', async (program, { shell, end }) => (await import('./commands/map.ts')).addMap(program, shell, end)],
  ['check', async (program, { shell, end }) => (await import('./check/check.ts')).addCheck(program, shell, end)],
  ['import', async (program, { shell, end }) => (await import('./commands/import.ts')).addImport(program, shell, end)],
  ['schedule', async (program, { shell }) => (await import('./schedule/schedule-command.ts')).addSchedule(program, shell)],
  ['backup', async (program, { shell }) => (await import('./commands/backup.ts')).addBackup(program, shell)],
  ['restore', async (program, { shell }) => (await import('./commands/backup.ts')).addRestore(program, shell)],
  ['salvage', async (program, { shell, end }) => (await import('./commands/salvage.ts')).addSalvage(program, shell, end)],
  ['audit', async (program, { shell }) => (await import('./commands/audit/audit.ts')).addAudit(program, shell)],
  ['operation', async (program, { shell }) => (await import('./commands/audit/operation.ts')).addOperation(program, shell)],
  ['page', async (program, { shell }) => (await import('./commands/page.ts')).addPage(program, shell)],
  ['trace', async (program, { shell }) => (await import('./commands/trace.ts')).addTrace(program, shell)],
  ['webhook', async (program, { shell }) => (await import('./commands/webhook.ts')).addWebhook(program, shell)],
  ['token', async (program, { shell }) => (await import('./commands/token.ts')).addToken(program, shell)],
  ['user', async (program, { shell }) => (await import('./commands/user.ts')).addUser(program, shell)],
  ['quota', async (program, { shell }) => (await import('./commands/quota/quota.ts')).addQuota(program, shell)],
  ['suppression', async (program, { shell }) => (await import('./commands/suppression/suppression.ts')).addSuppression(program, shell)],
  ['access', async (program, { shell }) => (await import('./commands/access.ts')).addAccess(program, shell)],
  ['dkim', async (program, { shell, end }) => (await import('./dkim/dkim.ts')).addDkim(program, shell, end)],
  ['tls', async (program, { shell }) => (await import('./tls/tls.ts')).addTls(program, shell)],
  ['oauth', async (program, { shell, end }) => (await import('./oauth/oauth.ts')).addOauth(program, shell, end)],
  ['bounce', async (program, { shell }) => (await import('./commands/bounce.ts')).addBounce(program, shell)],
  ['retry', async (program, { shell, end }) => (await import('./retry/retry-command.ts')).addRetry(program, shell, end)],
  ['simulate', async (program, { shell }) => (await import('./commands/simulate/simulate.ts')).addSimulate(program, shell)],
  ['sink', async (program, { shell }) => (await import('./commands/sink.ts')).addSink(program, shell)],
  ['record', async (program, { shell }) => (await import('./commands/record/record-command.ts')).addRecord(program, shell)],
  ['lab', async (program, { shell }) => (await import('./commands/lab/lab-command.ts')).addLab(program, shell)],
  [
    'help',
    async (program, context) =>
      (await import('./commands/help.ts')).addHelp(program, {
        ...context,
        commands: commandNames(),
        commandsOf: commandsOf(context.shell),
      }),
  ],
])

/** Names of the subcommands of a command; empty for a command without any, and for the Postfix tools. */
const commandsOf = (shell: Shell) => async (name: string) => {
  const [one] = COMMANDS.has(name) ? (await buildProgram(shell, [name])).commands : []
  return (one?.commands ?? []).map((inner) => inner.name())
}

const commandNames = (): readonly string[] => [...COMMANDS.keys(), ...POSTFIX_NAMES.keys()]

/**
 * Refuses a command line (64) with an empty argument or value. Such a word is mostly a variable of a shell script that is not set: an
 * empty path would be the working directory, and an empty filter selects all mail.
 */
function refuseEmptyWords(command: Command): void {
  const position = command.args.indexOf('')
  if (position >= 0) {
    const { registeredArguments: known } = command
    command.error(`error: argument '${(known[position] ?? known.at(-1))?.name() ?? position + 1}' is empty`)
  }
  for (let level: Command | null = command; level !== null; level = level.parent) {
    const empty = level.options.find((option) => [level?.getOptionValue(option.attributeName())].flat().includes(''))
    if (empty !== undefined) command.error(`error: value of option '${empty.flags}' is empty`)
  }
}

/** Options that print a text of the program, and call no command. */
const TEXTS: ReadonlySet<string> = new Set(['--version', '--licenses'])

/** Builds the program with the called command only, with none for a text of the program, or with all commands when the name is unknown. */
export async function buildProgram(
  shell: Shell,
  [called = '', next]: readonly string[] = [],
  said: CommandOutput = { out: '', err: '', code: 0 },
): Promise<Command> {
  const program = withConfig(new Command('deferd'))
    .description('SMTP relay with a durable deferred queue')
    .option('--host <url>', 'use the relay of another machine, at its admin_listen; needs --token-file')
    .option('--token-file <file>', 'file with the token for --host, as deferd token add prints it')
    .exitOverride()
    .version(VERSION, '--version', 'print the version')
    .option('--licenses', 'print the licence of deferd, and those of the software in it')
    .on('option:licenses', () => {
      said.out += resource(NOTICES)
      throw new CommanderError(0, 'deferd.licenses', 'the licences are printed')
    })
    .configureOutput({
      writeOut: (text) => void (said.out += text),
      writeErr: (text) => void (said.err += text),
      outputError: (text, write) => write(`deferd: ${text.replace(/^error: /, '')}`),
      getOutHelpWidth: () => shell.stdout.columns ?? 100,
      getErrHelpWidth: () => shell.stderr.columns ?? 100,
    })
    .showHelpAfterError('(use --help for usage)')
    .helpCommand(false)
    .hook('preAction', (_program, command) => refuseEmptyWords(command))
  const one = COMMANDS.get(called)
  const added = one === undefined ? COMMANDS.values() : [one]
  const context: CommandContext = { shell, next, end: (code) => void (said.code = code), again: (argv) => run(shell, argv) }
  if (!TEXTS.has(called)) for (const add of added) await add(program, context)
  program.addHelpText(
    'after',
    `\nUnder Postfix’s names: ${[...POSTFIX_NAMES.keys()].join(', ')} (as "deferd mailq", or called by that name).`,
  )
  return program
}

const hasExitCode = (error: unknown): error is Error & { readonly exitCode: number } =>
  error instanceof Error && 'exitCode' in error && typeof error.exitCode === 'number'

/** Masks the control characters of each line of a text, and adds `prefix` before the line. */
const lines = (text: string, prefix = ''): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `${prefix}${maskControls(line)}\n`)
    .join('')

/** Writes a report to standard error. When that cannot be written, the exit code alone tells of the failure. */
const tell = (shell: Shell, text: string): Promise<void> => shell.stderr.write(text).catch(() => undefined)

/** Reports an error and returns the exit code. */
export async function failure(shell: Shell, error: unknown): Promise<number> {
  // Requested help exits with 0. Every other error of the parser is a usage error, whose text is already written.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EX.usage
  // The reader of the output, such as head(1), has closed the pipe.
  if (error instanceof BrokenPipe) return 0
  if (hasExitCode(error)) {
    await tell(shell, lines(error.message, 'deferd: '))
    return error.exitCode
  }
  if (error instanceof Error && isDamage(error)) {
    await tell(shell, lines(`the queue is damaged (${error.message}): stop the daemon and run deferd check --repair`, 'deferd: '))
    return EX.data
  }
  await tell(shell, lines(error instanceof Error ? (error.stack ?? error.message) : String(error), 'deferd: '))
  return EX.software
}

/** Runs a command line and resolves with its exit code. `calledAs` is the name of the executable. */
export async function run(shell: Shell, argv: readonly string[], calledAs = 'deferd'): Promise<number> {
  const [first = '', ...rest] = argv
  const called = POSTFIX_NAMES.get(calledAs)
  const tool = called ?? POSTFIX_NAMES.get(first)
  if (tool !== undefined) {
    try {
      const args = called === undefined ? rest : argv
      if (args.length === 1 && args[0] === '--help')
        await shell.stdout.write(`Usage: ${called === undefined ? `deferd ${first}` : calledAs} …\n\n${tool.options}\n`)
      else await (await tool.load())(shell, args)
      return 0
    } catch (error) {
      return failure(shell, error)
    }
  }
  return runProgram(shell, argv)
}

/** The command line without `--host URL` and `--token-file FILE`, and their values; null values without them. */
function splitRemote(argv: readonly string[]): {
  readonly host: string | null
  readonly tokenFile: string | null
  readonly rest: readonly string[]
} {
  const found: Record<string, string> = {}
  const rest: string[] = []
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    const [, name, , value = argv[at + 1]] = at < end ? (/^--(host|token-file)(=(.*))?$/.exec(word) ?? []) : []
    if (name === undefined || value === undefined) {
      rest.push(word)
      continue
    }
    found[name] = value
    if (!word.includes('=')) at++
  }
  return { host: found['host'] ?? null, tokenFile: found['token-file'] ?? null, rest }
}

async function runProgram(shell: Shell, argv: readonly string[]): Promise<number> {
  const said: CommandOutput = { out: '', err: '', code: 0 }
  try {
    const { host, tokenFile, rest } = splitRemote(argv)
    const remote = host === null ? null : (await import('./remote/remote-program.ts')).remoteProgram(shell, { host, tokenFile })
    const words = remote === null ? argv : rest
    const program = await buildProgram(remote?.shell ?? shell, words, said)
    remote?.adapt(program)
    await program.parseAsync(words, { from: 'user' })
    return said.code
  } catch (error) {
    if (said.err !== '') await tell(shell, lines(said.err))
    if (error instanceof CommanderError) await shell.stdout.write(said.out)
    return failure(shell, error)
  }
}
