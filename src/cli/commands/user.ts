/**
 * `deferd user`: manages SMTP AUTH users. Passwords are read from standard input or a terminal, never from the command line. Only
 * their scrypt hashes are stored.
 */
import { readFile, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { replaceFile } from '../../system/files/replaced-file.ts'
import { hashPassword, isUserName, parseUsers } from '../../access/users.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls, jsonLine } from '../../presentation/text.ts'

async function usersFile(shell: Shell, command: Command): Promise<string> {
  const { config } = await configOf(shell, command)
  if (config.smtpd_sasl_users_file === '')
    throw new CommandError(EX.config, 'smtpd_sasl_users_file is not set: set it in the configuration to the path of the users file')
  return config.smtpd_sasl_users_file
}

/** Reads the users file. A missing file has no users. */
async function readUsers(path: string): Promise<{ readonly text: string; readonly users: ReadonlyMap<string, string> }> {
  try {
    const text = await readFile(path, 'utf8')
    return { text, users: parseUsers(text) }
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return { text: '', users: new Map() }
    throw new CommandError(EX.config, `cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

/** Replaces the file. Owner and mode are kept; a new file gets mode 0600. */
async function writeUsers(path: string, text: string): Promise<void> {
  const before = await stat(path).catch(() => null)
  try {
    await replaceFile(path, text, { mode: before === null ? 0o600 : before.mode & 0o777, owner: before })
  } catch (cause) {
    throw new CommandError(EX.config, `cannot write ${path}: ${errorMessage(cause)}`, { cause })
  }
}

const nameOn = (line: string): string => line.trim().split(/\s+/)[0] ?? ''

/** The lines without the lines of one user. Comments are kept. */
const without = (text: string, name: string): readonly string[] =>
  text
    .replace(/\n$/, '')
    .split('\n')
    .filter((line) => text !== '' && nameOn(line) !== name)

async function readPassword(shell: Shell): Promise<string> {
  const asked = await shell.ask('Password: ', { hidden: true })
  if (asked !== null) return asked
  const chunks: Uint8Array[] = []
  for await (const chunk of shell.stdin) chunks.push(chunk)
  return Buffer.concat(chunks)
    .toString()
    .replace(/\r?\n$/, '')
}

async function add(shell: Shell, name: string, command: Command): Promise<void> {
  if (!isUserName(name)) throw new CommandError(EX.usage, 'invalid user name: use printable ASCII without blanks, not beginning with #')
  const path = await usersFile(shell, command)
  const { text, users } = await readUsers(path)
  const known = users.has(name)
  const password = await readPassword(shell)
  if (password === '') throw new CommandError(EX.usage, 'the password is empty')
  const hash = await hashPassword(password, shell.random)
  await writeUsers(path, [...without(text, name), `${name} ${hash}`].map((line) => `${line}\n`).join(''))
  await shell.stdout.write(`${name} ${known ? 'has a new password' : 'may log in'}\n`)
}

async function remove(shell: Shell, name: string, command: Command): Promise<void> {
  const path = await usersFile(shell, command)
  const { text, users } = await readUsers(path)
  if (!users.has(name)) throw new CommandError(EX.data, `there is no user ${maskControls(name)}`)
  await writeUsers(
    path,
    without(text, name)
      .map((line) => `${line}\n`)
      .join(''),
  )
  await shell.stdout.write(`${name} may no longer log in\n`)
}

export function addUser(program: Command, shell: Shell): void {
  const parent = program.command('user').description('manage SMTP AUTH users (smtpd_sasl_users_file)')
  subcommand(parent, 'add <name>', 'add a user, or set a new password')
    .addHelpText('after', '\nThe password is read from the terminal or from standard input:\n  deferd user add app < password.txt')
    .action((name: string, _options: unknown, command: Command) => add(shell, name, command))
  subcommand(parent, 'remove <name>', 'remove a user').action((name: string, _options: unknown, command: Command) =>
    remove(shell, name, command),
  )
  subcommand(parent, 'list', 'print user names')
    .option('--json', 'one JSON object per user')
    .action(async (options: { readonly json?: true }, command: Command) => {
      const { users } = await readUsers(await usersFile(shell, command))
      const names = [...users.keys()]
      await shell.stdout.write(names.map((name) => (options.json === true ? jsonLine({ name }) : `${maskControls(name)}\n`)).join(''))
    })
}
