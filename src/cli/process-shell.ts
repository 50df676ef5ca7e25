/**
 * The Shell of a real process.
 */
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { Writable } from 'node:stream'
import { sep } from 'node:path'
import type { Config } from '../config/options.ts'
import { controlPath } from '../daemon/control-path.ts'
import type { LiveDestination } from '../queue/operations.ts'
import { systemClock } from '../system/clock.ts'
import { systemRandom } from '../system/random.ts'
import type { OperationsDesk } from './operations-desk.ts'
import { BrokenPipe, type Output, type Shell } from './shell.ts'

class StreamOutput implements Output {
  readonly #stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }

  constructor(stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }) {
    this.#stream = stream
    // Every write hears of its own failure; without a listener the stream would end the process first.
    stream.on('error', () => undefined)
  }

  get columns(): number | null {
    return this.#stream.isTTY === true ? this.#stream.columns || 80 : null
  }

  write(data: string | Uint8Array): Promise<void> {
    if (data.length === 0) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#stream.write(data, (error) => {
        if (error === null || error === undefined) resolve()
        else reject((error as NodeJS.ErrnoException).code === 'EPIPE' ? new BrokenPipe('nobody reads on', { cause: error }) : error)
      })
    })
  }
}

/** The login name behind this process. */
function loginName(): string {
  try {
    return userInfo().username
  } catch {
    // A user id without a name, as in containers.
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}

/** Who is asking, also behind sudo. */
function whoAsks(login: string, behind: string | undefined): string {
  return behind === undefined || behind === login ? login : `${behind} (${login})`
}

/** The desk of the daemon; null when none runs. What only some commands need is loaded when they do. */
async function daemonDesk(config: Config): Promise<OperationsDesk | null> {
  const { openDaemonDesk } = await import('./operations-desk.ts')
  return openDaemonDesk(config.queue_directory)
}

/** Without a socket there is nobody to ask, and what asks takes 10 ms to load. */
async function liveDestinations({ queue_directory: directory }: Config): Promise<readonly LiveDestination[] | null> {
  if (!existsSync(controlPath(directory))) return null
  const { askForDestinations } = await import('./operations-desk.ts')
  return askForDestinations(directory)
}

/** The desk of the daemon, or our own when none runs and the queue is free. */
async function openDesk(config: Config): Promise<OperationsDesk> {
  const daemon = await daemonDesk(config)
  if (daemon !== null) return daemon
  const { openOwnDesk } = await import('./own-desk.ts')
  return openOwnDesk(config, systemClock)
}

async function ask(question: string, { hidden } = { hidden: false }): Promise<string | null> {
  if (!process.stdin.isTTY) return null
  const { createInterface } = await import('node:readline/promises')
  // A terminal that echoes what is typed writes it to `output`: what is hidden goes nowhere.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: hidden ? nowhere : process.stderr, terminal: true })
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
    process.once('SIGTERM', () => resolve())
    process.once('SIGINT', () => resolve())
  })
}

/** `deferd` when it is found in the PATH, else the way it was started. */
const programName = (script: string | undefined): string =>
  script !== undefined && script.endsWith(`${sep}bin${sep}deferd.js`) && !script.includes(`${sep}node_modules${sep}`)
    ? 'npm exec deferd --'
    : 'deferd'

export function processShell(): Shell {
  const login = loginName()
  return {
    env: process.env,
    uid: process.getuid?.() ?? -1,
    login,
    user: whoAsks(login, process.env['SUDO_USER']),
    pid: process.pid,
    program: programName(process.argv[1]),
    clock: systemClock,
    random: systemRandom,
    stdin: process.stdin,
    stdout: new StreamOutput(process.stdout),
    stderr: new StreamOutput(process.stderr),
    ask,
    untilStopped,
    openDesk,
    openReader: async (config) => (await import('../queue/sqlite/queue-reader.ts')).openQueueReader(config.queue_directory),
    liveDestinations,
    startDaemon: async (loaded, readAgain) => (await import('./logged-daemon.ts')).startLoggedDaemon(loaded, readAgain),
  }
}
