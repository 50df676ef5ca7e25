/**
 * All commands under one roof, and what happens when one of them fails: one sentence on standard error and an exit
 * code of sysexits(3). Only what nobody foresaw shows a stack.
 */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { withConfig } from './command.ts'
import { POSTFIX_NAMES } from './postfix-names.ts'
import { BrokenPipe, EX, type Shell } from './shell.ts'
import { harmless } from './text.ts'

const { version: VERSION } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }

/** What the parser of the command line has to say, written once parsing has ended, and the exit code. */
interface Said {
  /** How the command ends when nothing is thrown. */
  code: number
  out: string
  err: string
}

interface Surroundings {
  readonly shell: Shell
  /** The word after the name of the command; undefined when there is none. */
  readonly next: string | undefined
  readonly end: (code: number) => void
}

type Add = (program: Command, surroundings: Surroundings) => Promise<unknown>

/** All commands but those under Postfix's names, in the order of the help text. Only what is called is loaded. */
const COMMANDS: ReadonlyMap<string, Add> = new Map<string, Add>([
  ['start', async (program, { shell }) => (await import('./commands/start.ts')).addStart(program, shell)],
  ['queue', async (program, { shell, next }) => (await import('./commands/queue.ts')).addQueue(program, shell, next)],
  ['destination', async (program, { shell }) => (await import('./commands/destination.ts')).addDestination(program, shell)],
  ['config', async (program, { shell }) => (await import('./commands/config.ts')).addConfig(program, shell)],
  ['check', async (program, { shell, end }) => (await import('./commands/check.ts')).addCheck(program, shell, end)],
  ['backup', async (program, { shell }) => (await import('./commands/backup.ts')).addBackup(program, shell)],
  ['audit', async (program, { shell }) => (await import('./commands/audit.ts')).addAudit(program, shell)],
  ['user', async (program, { shell }) => (await import('./commands/user.ts')).addUser(program, shell)],
  ['bounce', async (program, { shell }) => (await import('./commands/bounce.ts')).addBounce(program, shell)],
  ['simulate', async (program, { shell }) => (await import('./commands/simulate.ts')).addSimulate(program, shell)],
  ['sink', async (program, { shell }) => (await import('./commands/sink.ts')).addSink(program, shell)],
])

/** The command that is called, or all of them when that is not clear from its name. */
export async function buildProgram(
  shell: Shell,
  [called = '', next]: readonly string[] = [],
  said: Said = { out: '', err: '', code: 0 },
): Promise<Command> {
  const program = withConfig(new Command('deferd'))
    .description('a mail relay whose heart is its deferred queue')
    .exitOverride()
    .version(VERSION, '--version', 'print the version')
    .configureOutput({
      writeOut: (text) => void (said.out += text),
      writeErr: (text) => void (said.err += text),
      outputError: (text, write) => write(`deferd: ${text.replace(/^error: /, '')}`),
      getOutHelpWidth: () => shell.stdout.columns ?? 100,
      getErrHelpWidth: () => shell.stderr.columns ?? 100,
    })
    .showHelpAfterError('(add --help for how it is used)')
    .helpCommand(false)
  const one = COMMANDS.get(called)
  const surroundings: Surroundings = { shell, next, end: (code) => void (said.code = code) }
  for (const add of one === undefined ? COMMANDS.values() : [one]) await add(program, surroundings)
  program.addHelpText(
    'after',
    `\nUnder Postfix’s names: ${[...POSTFIX_NAMES.keys()].join(', ')} (as "deferd mailq", or called by that name).`,
  )
  return program
}

const hasExitCode = (error: unknown): error is Error & { readonly exitCode: number } =>
  error instanceof Error && 'exitCode' in error && typeof error.exitCode === 'number'

/** A text line by line, fit for a terminal: what an operator typed or a stranger sent may be in it. */
const lines = (text: string, prefix = ''): string =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `${prefix}${harmless(line)}\n`)
    .join('')

/** Tells what went wrong and how the process should end. */
export async function failure(shell: Shell, error: unknown): Promise<number> {
  // Help that was asked for ends well; everything else the parser throws is wrong usage, and it has said what.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EX.usage
  // Whoever read our output has seen enough.
  if (error instanceof BrokenPipe) return 0
  if (hasExitCode(error)) {
    await shell.stderr.write(lines(error.message, 'deferd: '))
    return error.exitCode
  }
  await shell.stderr.write(lines(error instanceof Error ? (error.stack ?? error.message) : String(error), 'deferd: '))
  return EX.software
}

/** Runs a command line to its exit code; `calledAs` is the name of the executable. */
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

async function runProgram(shell: Shell, argv: readonly string[]): Promise<number> {
  const said: Said = { out: '', err: '', code: 0 }
  try {
    const program = await buildProgram(shell, argv, said)
    await program.parseAsync(argv, { from: 'user' })
    return said.code
  } catch (error) {
    if (said.err !== '') await shell.stderr.write(lines(said.err))
    if (error instanceof CommanderError) await shell.stdout.write(said.out)
    return failure(shell, error)
  }
}
