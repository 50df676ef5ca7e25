/**
 * All commands under one roof, and what happens when one of them fails: one sentence on standard error and an exit
 * code of sysexits(3). Only what nobody foresaw shows a stack.
 */
import { Command, CommanderError } from 'commander'
import { withConfig } from './command.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup } from './commands/backup.ts'
import { addBounce } from './commands/bounce.ts'
import { addCheck } from './commands/check.ts'
import { addConfig } from './commands/config.ts'
import { addDestination } from './commands/destination.ts'
import { addQueueCat } from './commands/queue-cat.ts'
import { addQueueList } from './commands/queue-list.ts'
import { addQueueOperations } from './commands/queue-operate.ts'
import { addQueueShow } from './commands/queue-show.ts'
import { addQueueShape } from './commands/qshape.ts'
import { addSimulate } from './commands/simulate.ts'
import { addSink } from './commands/sink.ts'
import { addStart } from './commands/start.ts'
import { POSTFIX_NAMES } from './postfix-names.ts'
import { addUser } from './commands/user.ts'
import { BrokenPipe, EX, type Shell } from './shell.ts'
import { harmless } from './text.ts'

/** What the parser of the command line has to say, written once parsing has ended, and the exit code. */
interface Said {
  /** How the command ends when nothing is thrown. */
  code: number
  out: string
  err: string
}

/** All commands but those under Postfix's names. */
export function buildProgram(shell: Shell, said: Said = { out: '', err: '', code: 0 }): Command {
  const program = withConfig(new Command('deferd'))
    .description('a mail relay whose heart is its deferred queue')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void (said.out += text),
      writeErr: (text) => void (said.err += text),
      outputError: (text, write) => write(`deferd: ${text.replace(/^error: /, '')}`),
      getOutHelpWidth: () => shell.stdout.columns ?? 100,
      getErrHelpWidth: () => shell.stderr.columns ?? 100,
    })
    .showHelpAfterError('(add --help for how it is used)')
    .helpCommand(false)
  addStart(program, shell)
  const queue = program.command('queue').description('look at the mail in the queue, and act on it')
  addQueueList(queue, shell)
  addQueueShow(queue, shell)
  addQueueCat(queue, shell)
  addQueueShape(queue, shell)
  addQueueOperations(queue, shell)
  addDestination(program, shell)
  addConfig(program, shell)
  addCheck(program, shell, (code) => void (said.code = code))
  addBackup(program, shell)
  addAudit(program, shell)
  addUser(program, shell)
  addBounce(program, shell)
  addSimulate(program, shell)
  addSink(program, shell)
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
      await tool(shell, called === undefined ? rest : argv)
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
    await buildProgram(shell, said).parseAsync(argv, { from: 'user' })
    return said.code
  } catch (error) {
    if (said.err !== '') await shell.stderr.write(lines(said.err))
    if (error instanceof CommanderError) await shell.stdout.write(said.out)
    return failure(shell, error)
  }
}
