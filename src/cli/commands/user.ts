/**
 * `deferd user`: who may log in to send mail. Passwords come from standard input or a terminal, never from the command
 * line, and only their scrypt hashes are kept.
 */
import { chown, open, readFile, rename, rm, stat } from 'node:fs/promises'
import type { Command } from 'commander'
import { hashPassword, isUserName, parseUsers } from '../../smtpd/users.ts'
import { configOf, subcommand } from '../command.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { harmless, jsonLine } from '../text.ts'

async function usersFile(shell: Shell, command: Command): Promise<string> {
  const { config } = await configOf(shell, command)
  if (config.smtpd_sasl_users_file === '')
    throw new CommandError(EX.config, 'smtpd_sasl_users_file is not set: say in the configuration where users are kept')
  return config.smtpd_sasl_users_file
}

/** The text of the file and the users in it; a file that is not there yet has none. */
async function readUsers(path: string): Promise<{ readonly text: string; readonly users: ReadonlyMap<string, string> }> {
  try {
    const text = await readFile(path, 'utf8')
    return { text, users: parseUsers(text) }
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return { text: '', users: new Map() }
    throw new CommandError(EX.config, `cannot read ${path}: ${(cause as Error).message}`, { cause })
  }
}

/** Replaces the file as a whole; it keeps its owner and its mode, and is nobody else's business when it is new. */
async function writeUsers(path: string, text: string): Promise<void> {
  const before = await stat(path).catch(() => null)
  const partial = `${path}.partial`
  try {
    const file = await open(partial, 'w', 0o600)
    await file.writeFile(text)
    if (before !== null) await file.chmod(before.mode & 0o777)
    await file.sync()
    await file.close()
    if (before !== null && before.uid !== process.getuid?.()) await chown(partial, before.uid, before.gid)
    await rename(partial, path)
  } catch (cause) {
    await rm(partial, { force: true })
    throw new CommandError(EX.config, `cannot write ${path}: ${(cause as Error).message}`, { cause })
  }
}

const nameOn = (line: string): string => line.trim().split(/\s+/)[0] ?? ''

/** The lines without those of a user; comments stay. */
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
  if (!isUserName(name))
    throw new CommandError(EX.usage, 'a user name is made of printable ASCII without blanks, and does not begin with #')
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
  if (!users.has(name)) throw new CommandError(EX.data, `there is no user ${harmless(name)}`)
  await writeUsers(
    path,
    without(text, name)
      .map((line) => `${line}\n`)
      .join(''),
  )
  await shell.stdout.write(`${name} may no longer log in\n`)
}

export function addUser(program: Command, shell: Shell): void {
  const parent = program.command('user').description('who may log in to send mail (smtpd_sasl_users_file)')
  subcommand(parent, 'add <name>', 'let a user log in, or give a new password')
    .addHelpText('after', '\nThe password is asked for, or read from standard input:\n  deferd user add app < password.txt')
    .action((name: string, _options: unknown, command: Command) => add(shell, name, command))
  subcommand(parent, 'remove <name>', 'let a user no longer log in').action((name: string, _options: unknown, command: Command) =>
    remove(shell, name, command),
  )
  subcommand(parent, 'list', 'print the names')
    .option('--json', 'one JSON object per user')
    .action(async (options: { readonly json?: true }, command: Command) => {
      const { users } = await readUsers(await usersFile(shell, command))
      const names = [...users.keys()]
      await shell.stdout.write(names.map((name) => (options.json === true ? jsonLine({ name }) : `${harmless(name)}\n`)).join(''))
    })
}
