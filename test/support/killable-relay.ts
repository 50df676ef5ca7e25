/**
 * Runs a relay in a process of its own, under load, and kills it. Counts the messages that were answered 250, delivered and
 * returned.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseDatabaseUrl } from '../../src/config/values/database-url.ts'
import { openPostgresReader } from '../../src/store/postgres/open-reader.ts'
import type { ListedRecipient, QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openReaderEngine } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { RemoteLedger } from './remote-ledger.ts'
import { repliesOf, SmtpLoad, type RecipientsOf } from './smtp-load.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Recipient of a message by its number: a tenth is refused, a tenth is deferred once, the others are accepted. */
const recipientOf = (number: number): string => `${['refuse', 'defer'][number % 10] ?? 'ann'}-${number}@far.example`
export const isRefused = (number: number): boolean => number % 10 === 0

export class KillableRelay {
  readonly far = new RemoteLedger()
  readonly load = new SmtpLoad()
  /** Log lines of the daemon. */
  readonly log: string[] = []
  readonly queueDirectory: string
  #remotePort = 0
  #child: ChildProcess | null = null
  readonly #settings: Readonly<Record<string, string>>

  constructor(settings: Readonly<Record<string, string>> = {}) {
    this.#settings = settings
    this.queueDirectory = settings['queue_directory'] ?? mkdtempSync(join(tmpdir(), 'deferd-crash-'))
  }

  /** Queue ids by the numbers answered 250. */
  get acknowledged(): ReadonlyMap<number, string> {
    return this.load.acknowledged
  }

  /** The remote server, as in `relayhost`. */
  get nextHop(): string {
    return `[127.0.0.1]:${this.#remotePort}`
  }

  /** Opens the remote server, then clients of the relay. */
  async open(clients: number, recipientsOf: RecipientsOf = recipientOf): Promise<void> {
    this.#remotePort = await this.far.listen()
    this.load.start(clients, recipientsOf)
  }

  /** Starts the relay, which crashes at the failpoint if one is given. Resolves when it accepts mail. */
  async start(failpoint = ''): Promise<void> {
    const overrides = this.#overrides()
    const program = join(import.meta.dirname, 'relay-process.ts')
    const child = spawn(process.execPath, [program, failpoint, ...overrides], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      this.load.port = Number(line)
      return
    }
    // The process can crash before it has reported its port; that counts as a crash too.
  }

  /** Starts the daemon itself, `deferd start`, with an environment of its own. Resolves when it listens or has ended. */
  async startDaemon(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const overrides = this.#overrides().flatMap((override) => ['-o', override])
    const program = join(import.meta.dirname, '../../bin/deferd.js')
    const child = spawn(process.execPath, [program, 'start', ...overrides], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    createInterface({ input: child.stderr }).on('line', (line) => this.log.push(line))
    for await (const line of createInterface({ input: child.stdout })) {
      if (this.#child === child) this.load.port = Number(/listens on .*:(\d+)$/.exec(line)?.[1])
      return
    }
  }

  /** Resolves with the exit code when the process has ended by itself; with 'running' after `patience` ms. */
  async ends(patience: number): Promise<number | 'running'> {
    const child = this.#child
    if (child === null) throw new Error('nothing runs')
    const ended = new Promise<number>((resolve) => {
      if (child.exitCode === null) child.once('exit', (code) => resolve(code ?? -1))
      else resolve(child.exitCode)
    })
    const first = await Promise.race([ended, pause(patience).then(() => 'running' as const)])
    if (first !== 'running') {
      this.load.port = null
      this.#child = null
    }
    return first
  }

  /** Waits for the failpoint, or kills after `patience` ms; resolves when the process is gone. */
  async die(patience: number): Promise<'at the failpoint' | 'killed'> {
    const child = this.#child
    if (child === null) throw new Error('nothing runs')
    const gone = new Promise<void>((resolve) =>
      child.exitCode === null && child.signalCode === null ? child.once('exit', () => resolve()) : resolve(),
    )
    const first = await Promise.race([gone.then(() => 'at the failpoint' as const), pause(patience).then(() => 'killed' as const)])
    child.kill('SIGKILL')
    await gone
    if (child.signalCode !== 'SIGKILL') throw new Error(`the relay ended by itself, with code ${child.exitCode}`)
    this.load.port = null
    this.#child = null
    return first
  }

  #overrides(): readonly string[] {
    const settings = {
      queue_directory: this.queueDirectory,
      smtpd_listen: '127.0.0.1:0',
      relayhost: this.nextHop,
      minimal_backoff_time: '1s',
      maximal_backoff_time: '2s',
      ...this.#settings,
    }
    return Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  }

  /** Sends a signal to the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGTERM' | 'SIGINT'): void {
    this.#child?.kill(signal)
  }

  /** Sends SIGTERM; resolves with the exit code and the duration in ms. */
  async terminate(): Promise<{ readonly code: number | null; readonly took: number }> {
    const child = this.#child
    if (child === null) throw new Error('nothing runs')
    const began = performance.now()
    const code = await new Promise<number | null>((resolve) => {
      child.once('exit', resolve)
      child.kill('SIGTERM')
    })
    this.load.port = null
    this.#child = null
    return { code, took: performance.now() - began }
  }

  /** Opens a connection; resolves with the time until its greeting, in ms. */
  async greeting(): Promise<number> {
    const began = performance.now()
    const socket = connect({ host: '127.0.0.1', port: this.load.port ?? 0, noDelay: true })
    try {
      const reply = await repliesOf(socket)()
      if (reply?.startsWith('220') !== true) throw new Error(`no greeting, but ${reply ?? 'a closed connection'}`)
      return performance.now() - began
    } finally {
      socket.destroy()
    }
  }

  /** Sends one message and resolves with the reply to its final dot, or to the command that was refused. */
  async sendOne(): Promise<string> {
    const socket = connect({ host: '127.0.0.1', port: this.load.port ?? 0, noDelay: true })
    try {
      const next = repliesOf(socket)
      let reply = (await next()) ?? ''
      const content = 'Subject: one\r\n\r\none\r\n.\r\n'
      for (const line of [
        'EHLO one.example\r\n',
        'MAIL FROM:<app@us.example>\r\n',
        'RCPT TO:<ann-0@far.example>\r\n',
        'DATA\r\n',
        content,
      ]) {
        if (!/^[23]/.test(reply)) break
        socket.write(line)
        reply = (await next()) ?? 'closed'
      }
      return reply
    } finally {
      socket.destroy()
    }
  }

  /** Stops all clients. */
  async quiet(): Promise<void> {
    await this.load.close()
  }

  /** Waits until `count` messages were answered 250. */
  async acknowledges(count: number): Promise<void> {
    while (this.acknowledged.size < count) await pause(10)
  }

  /** Opens the queue for reading: in PostgreSQL when the settings name a database. */
  async openReader(): Promise<QueueReader> {
    const url = parseDatabaseUrl(this.#settings['queue_database'] ?? '')
    return url === null ? openQueueReader(this.queueDirectory) : openPostgresReader({ url, durability: 'primary' })
  }

  /** Waits until `wanted` accepts the live recipients. */
  async settled(wanted: (recipients: readonly ListedRecipient[]) => boolean): Promise<void> {
    const reader = await this.openReader()
    try {
      const live = async () => (await reader.list(ANY_MESSAGE, { after: 0, limit: 100_000 })).flatMap(({ recipients }) => recipients)
      while (!wanted(await live())) await pause(50)
    } finally {
      await reader.close()
    }
  }

  /** Waits until the queue is empty. Resolves with false after `patience` ms. */
  async drained(patience: number): Promise<boolean> {
    const reader = await this.openReader()
    // Acknowledged messages that may be in the queue.
    const ids = [...this.acknowledged.values()]
    try {
      for (const deadline = performance.now() + patience; performance.now() < deadline;) {
        const counts = (await reader.counts()).filter(({ messages }) => messages > 0)
        if (counts.every(({ queue }) => queue === 'corrupt') && (await haveEnded(ids, reader))) return true
        await pause(100)
      }
      return false
    } finally {
      await reader.close()
    }
  }

  /** Describes up to 20 messages that are in the queue, and the destinations that are not open. */
  async left(): Promise<readonly string[]> {
    const reader = await this.openReader()
    try {
      const messages = await reader.list(ANY_MESSAGE, { after: 0, limit: 20 })
      const records = await reader.destinationRecords()
      return [...messages, ...records].map((one) => JSON.stringify(one))
    } finally {
      await reader.close()
    }
  }

  /** Numbers of the messages in queue corrupt: the relay crashed three times while it delivered them. */
  corrupt(): ReadonlySet<number> {
    const reader = openReaderEngine(this.queueDirectory)
    try {
      const listed = reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10_000 })
      return new Set(listed.flatMap(({ recipients }) => recipients.map(({ address }) => Number(/-(\d+)@/.exec(address)?.[1]))))
    } finally {
      reader.close()
    }
  }

  async close(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.load.close()
    await this.far.close()
    rmSync(this.queueDirectory, { recursive: true, force: true })
  }
}

/** Queues of messages that will not be delivered or returned any more. */
const ENDED: ReadonlySet<string> = new Set(['gone', 'corrupt', 'trash'])

/**
 * Whether nothing more will happen to any of the messages. A message without live recipients, whose notice is not sent yet, is in no count.
 * Removes the ids of those that have ended.
 */
async function haveEnded(ids: string[], reader: QueueReader): Promise<boolean> {
  for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
    if (ENDED.has((await reader.details(id))?.queue ?? 'gone')) continue
    ids.push(id)
    return false
  }
  return true
}
