/** The Shell of a real process, with its streams, environment, signals and queue. */
import { open, rm } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { Writable } from 'node:stream'
import { sep } from 'node:path'
import { errorCode } from '../system/caught-error.ts'
import { DEFAULT_FILES } from '../config/values/sources.ts'
import { maskControls } from '../mail/smtp-reply.ts'
import { systemClock } from '../system/system-clock.ts'
import { systemRandom } from '../system/system-random.ts'
import { queueAccess } from './queue-client/queue-access.ts'
import { BrokenPipe, OutputFailed } from './shell/exit.ts'
import type { Output, Shell } from './shell/shell.ts'

type TerminalStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }

class StreamOutput implements Output {
  readonly #stream: TerminalStream

  constructor(stream: TerminalStream) {
    this.#stream = stream
    // Each write reports its own failure. Without a listener, the stream's error event would end the process.
    stream.on('error', () => undefined)
  }

  get columns(): number | null {
    return this.#stream.isTTY === true ? this.#stream.columns || 80 : null
  }

  get rows(): number | null {
    return this.#stream.isTTY === true ? this.#stream.rows || 24 : null
  }

  write(data: string | Uint8Array): Promise<void> {
    if (data.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#stream.write(data, (error) => {
        if (error === null || error === undefined) resolve()
        else
          reject(
            errorCode(error) === 'EPIPE'
              ? new BrokenPipe('the reader of the output has closed', { cause: error })
              : new OutputFailed(error),
          )
      })
    })
  }
}

function loginName(): string {
  try {
    return userInfo().username
  } catch {
    // A user id without a name occurs in containers.
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}

/** Full name in the password file: the first part of the comment field, in which `&` is the login name (Postfix fullname()). */
function fullName(login: string): string {
  let entries: string
  try {
    entries = readFileSync('/etc/passwd', 'utf8')
  } catch {
    // A container may have no password file. The name is then left out.
    return ''
  }
  const comment =
    entries
      .split('\n')
      .find((line) => line.startsWith(`${login}:`))
      ?.split(':')[4] ?? ''
  return comment.replace(/,.*$/, '').replaceAll('&', login.slice(0, 1).toUpperCase() + login.slice(1))
}

/** User name for the audit log. Under sudo, it includes the user who called sudo. */
function auditUser(login: string, behind: string | undefined): string {
  return behind === undefined || behind === login ? login : `${behind} (${login})`
}

async function ask(question: string, { hidden } = { hidden: false }): Promise<string | null> {
  if (!process.stdin.isTTY) return null
  const { createInterface } = await import('node:readline/promises')
  // readline echoes to `output`. For hidden input, that is a stream that discards the echo.
  const discard = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: hidden ? discard : process.stderr, terminal: true })
  if (hidden) process.stderr.write(question)
  try {
    return await terminal.question(question)
  } finally {
    terminal.close()
    if (hidden) process.stderr.write('\n')
  }
}

function untilStopped(reload: () => void): Promise<void> {
  process.on('SIGHUP', reload)
  return new Promise((resolve) => {
    // A signal during the stop, which takes 10 s at most, is not the end of the process.
    process.on('SIGTERM', () => resolve())
    process.on('SIGINT', () => resolve())
  })
}

/** Command that runs this program: `npx deferd` in a checkout, otherwise `deferd`. */
const programName = (script: string | undefined): string =>
  script !== undefined && script.endsWith(`${sep}bin${sep}deferd.js`) && !script.includes(`${sep}node_modules${sep}`)
    ? 'npx deferd'
    : 'deferd'

export function processShell(): Shell {
  const login = loginName()
  return {
    env: process.env,
    defaultFiles: DEFAULT_FILES,
    uid: process.getuid?.() ?? -1,
    platform: process.platform,
    login,
    fullName: () => fullName(login),
    user: auditUser(login, process.env['SUDO_USER']),
    pid: process.pid,
    program: programName(process.argv[1]),
    clock: systemClock,
    random: systemRandom,
    stdin: process.stdin,
    stdout: new StreamOutput(process.stdout),
    stderr: new StreamOutput(process.stderr),
    files: { open, rm },
    ask,
    untilStopped,
    api: null,
    ...queueAccess({ clock: systemClock, warn: (text) => process.stderr.write(`deferd: ${maskControls(text)}\n`) }),
    startDaemon: async (loaded, readAgain, user) => (await import('./run-daemon.ts')).runDaemon(loaded, readAgain, user),
  }
}
