/**
 * `deferd sink show N`: prints a message that a sink received. The sink stores the last messages in a folder of the user, as 1.eml,
 * 2.eml and so on.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { countArgument } from '../../shell/config-options.ts'
import { CommandError, EX } from '../../shell/exit.ts'
import type { Shell } from '../../shell/shell.ts'
import { maskControls } from '../../../presentation/text.ts'
import { makeFolder } from '../../../store/folder/folder.ts'

/** Maximum number of messages in the folder. Each further message removes the oldest one. */
export const KEPT_MESSAGES = 100

/** Folder of the user for the messages of a sink without `--keep`. */
export const defaultFolder = (uid: number): string => join(tmpdir(), `deferd-sink-${uid}`)

/**
 * Creates the folder of a sink with mode 0700. Throws CommandError for a folder of another user and for a link, because the folder may be in a
 * directory that all users may write.
 */
export function ownFolder(path: string, uid: number): string {
  try {
    if (!existsSync(path)) makeFolder(path)
    const status = lstatSync(path)
    if (!status.isDirectory() || status.uid !== uid) throw new Error('it is not a folder of this user')
    readdirSync(path)
    return path
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError(EX.cannotCreate, `cannot use the folder ${path}: ${why}; name another folder with --keep`, { cause })
  }
}

export class SinkFolder {
  readonly #path: string
  #last = 0

  /** Creates the folder as `ownFolder` does, and removes the messages of an earlier sink. */
  constructor(path: string, uid: number) {
    this.#path = ownFolder(path, uid)
    for (const name of readdirSync(path)) if (/^\d+\.eml$/.test(name)) rmSync(join(path, name))
  }

  /** Stores a message under the next number, and removes the oldest one above KEPT_MESSAGES. */
  add(content: Buffer): void {
    this.#last++
    writeFileSync(join(this.#path, `${this.#last}.eml`), content, { mode: 0o600 })
    rmSync(join(this.#path, `${this.#last - KEPT_MESSAGES}.eml`), { force: true })
  }
}

export function addSinkShow(sink: Command, shell: Shell): void {
  sink
    .command('show')
    .description('print a message that a sink received')
    .argument('<number>', 'number of the message', countArgument)
    .option('--keep <folder>', 'folder of the sink')
    .addHelpText(
      'after',
      `
A sink in a terminal keeps the last ${KEPT_MESSAGES} messages, until the next sink starts.

Examples:
  deferd sink show 1
  deferd sink show 1 --keep received`,
    )
    .action((number: number, _options: object, command: Command) =>
      showMessage(shell, number, command.optsWithGlobals<{ readonly keep?: string }>().keep),
    )
}

async function showMessage(shell: Shell, number: number, keep = defaultFolder(shell.uid)): Promise<void> {
  const content = contentOf(keep, number)
  if (shell.stdout.columns === null) return shell.stdout.write(content)
  const lines = content.toString('utf8').split(/\r?\n/)
  await shell.stdout.write(lines.map(maskControls).join('\n'))
}

function contentOf(folder: string, number: number): Buffer {
  try {
    return readFileSync(join(folder, `${number}.eml`))
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause
    const numbers = storedNumbers(folder)
    const stored = numbers.length === 0 ? 'no message is stored' : `stored are ${numbers.at(0)} to ${numbers.at(-1)}`
    throw new CommandError(EX.data, `there is no message ${number} in ${folder}; ${stored}`, { cause })
  }
}

function storedNumbers(folder: string): readonly number[] {
  try {
    const names = readdirSync(folder).filter((name) => /^\d+\.eml$/.test(name))
    return names.map((name) => Number.parseInt(name, 10)).toSorted((a, b) => a - b)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return []
    throw cause
  }
}
