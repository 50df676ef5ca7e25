/**
 * The Shell of a real process.
 */
import { createInterface } from 'node:readline/promises'
import { userInfo } from 'node:os'
import type { Writable } from 'node:stream'
import { sep } from 'node:path'
import type { Config } from '../config/options.ts'
import { systemClock } from '../system/clock.ts'
import { openDaemonDesk, type OperationsDesk } from './operations-desk.ts'
import { BrokenPipe, type Output, type Shell } from './shell.ts'

class StreamOutput implements Output {
  readonly #stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }

  constructor(stream: Writable & { readonly isTTY?: boolean; readonly columns?: number }) {
    this.#stream = stream
    // Every write hears of its own failure; without a listener the stream would end the process first.
    stream.on('error', () => undefined)
  }

  get columns(): number | null {
    return this.#stream.isTTY === true ? (this.#stream.columns ?? 80) : null
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

/** The name of whoever is behind this process, also behind sudo. */
function userName(env: NodeJS.ProcessEnv): string {
  const behind = env['SUDO_USER']
  try {
    const { username } = userInfo()
    return behind === undefined || behind === username ? username : `${behind} (${username})`
  } catch {
    // A user id without a name, as in containers.
    return `uid ${process.getuid?.() ?? '?'}`
  }
}

/** The desk of the daemon, or our own when none runs and the queue is free. */
async function openDesk(config: Config): Promise<OperationsDesk> {
  const daemon = await openDaemonDesk(config.queue_directory)
  if (daemon !== null) return daemon
  const { openOwnDesk } = await import('./own-desk.ts')
  return openOwnDesk(config)
}

async function ask(question: string): Promise<string | null> {
  if (!process.stdin.isTTY) return null
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await terminal.question(question)
  } finally {
    terminal.close()
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
  return {
    env: process.env,
    uid: process.getuid?.() ?? -1,
    user: userName(process.env),
    pid: process.pid,
    program: programName(process.argv[1]),
    clock: systemClock,
    stdin: process.stdin,
    stdout: new StreamOutput(process.stdout),
    stderr: new StreamOutput(process.stderr),
    ask,
    untilStopped,
    openDesk,
    openReader: async (config) => (await import('../queue/sqlite/sqlite-reader.ts')).openQueueReader(config.queue_directory),
    liveDestinations: async (config) => (await (await openDaemonDesk(config.queue_directory))?.destinations()) ?? null,
    startDaemon: async (config, reload) => {
      const { startDaemon } = await import('../daemon/daemon.ts')
      return startDaemon({ config, reload })
    },
  }
}
