/** A stored queue of a release, opened by a program of now, with a remote server that accepts all mail. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { SMTPServer } from 'smtp-server'
import { releaseFolder } from '../../scripts/release/frozen-migrations.ts'
import { StartedProcess, type Ended } from './started-daemon.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

/** A message as `queue list --json` prints it. */
export interface ListedMessage {
  readonly queue_id: string
  readonly sender: string
  readonly message_size: number
  readonly arrival_time: number
  readonly recipients: readonly { readonly address: string }[]
}

export interface StoredListings {
  readonly queue: readonly ListedMessage[]
  readonly trash: readonly ListedMessage[]
  readonly [name: string]: readonly object[]
}

/** The listings by a release of its stored queue. */
export const storedListings = (version: string, engine: 'sqlite' | 'postgres'): StoredListings =>
  JSON.parse(readFileSync(join(releaseFolder(version), `${engine}.json`), 'utf8')) as StoredListings

export const storedFile = (version: string, name: string): Buffer => gunzipSync(readFileSync(join(releaseFolder(version), name)))

export class ReleasedQueue {
  /** Recipients whose mail the remote server took. */
  readonly received: string[] = []
  readonly #folder = mkdtempSync(join(tmpdir(), 'deferd-released-'))
  readonly #directory = join(this.#folder, 'queue')
  readonly #remote: SMTPServer
  readonly #processes = new Set<StartedProcess>()

  private constructor() {
    mkdirSync(this.#directory)
    this.#remote = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData: (stream, session, done) => {
        stream.resume()
        stream.on('end', () => {
          this.received.push(...session.envelope.rcptTo.map(({ address }) => address))
          done()
        })
      },
    })
  }

  /** `engine` has the parameters of a queue in PostgreSQL. */
  static async open(engine: Readonly<Record<string, string>> = {}): Promise<ReleasedQueue> {
    const queue = new ReleasedQueue()
    await new Promise<void>((resolve) => queue.#remote.listen(0, '127.0.0.1', resolve))
    const address = queue.#remote.server.address()
    if (address === null || typeof address === 'string') throw new Error('the remote server has no port')
    const parameters = {
      myhostname: 'relay.example',
      queue_directory: queue.#directory,
      smtpd_listen: '127.0.0.1:0',
      // The time of the stored mail goes on.
      maximal_queue_lifetime: '36500d',
      delay_warning_time: '0',
      ...engine,
    }
    const lines = Object.entries(parameters).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`)
    writeFileSync(queue.#configuration, `${lines.join('')}\n[transport_maps]\n"*" = "smtp:[127.0.0.1]:${address.port}"\n`)
    return queue
  }

  get #configuration(): string {
    return join(this.#folder, 'deferd.toml')
  }

  /** Puts a database in the place of all files of the queue. */
  placeFile(content: Buffer): void {
    rmSync(this.#directory, { recursive: true })
    mkdirSync(this.#directory, { mode: 0o700 })
    writeFileSync(join(this.#directory, 'queue.db'), content, { mode: 0o600 })
  }

  #process(args: readonly string[], program: string): StartedProcess {
    const started = new StartedProcess([process.execPath, program, ...args, '--config', this.#configuration])
    this.#processes.add(started)
    void started.ended.then(() => this.#processes.delete(started))
    return started
  }

  /** Runs a command until its end. */
  run(...args: readonly string[]): Promise<Ended> {
    return this.#process(args, PROGRAM).ended
  }

  /** Objects of a listing. Throws with the error of the command when it fails. */
  async list(...args: readonly string[]): Promise<readonly object[]> {
    const { code, out, err } = await this.run(...args, '--json')
    if (code !== 0) throw new Error(`deferd ${args.join(' ')} ended with ${code}: ${err}`)
    return out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as object)
  }

  /** Starts a daemon, and waits until it listens. `program` is another bin/deferd.js. */
  async start(program = PROGRAM): Promise<StartedProcess> {
    const daemon = this.#process(['start'], program)
    await daemon.prints('queue directory')
    return daemon
  }

  async close(): Promise<void> {
    const open = [...this.#processes]
    for (const { child } of open) child.kill('SIGKILL')
    await Promise.all(open.map(({ ended }) => ended))
    await new Promise<void>((resolve) => this.#remote.close(resolve))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
