/**
 * Kills a relay under load, again and again, and keeps account: what was answered 250, what arrived, what was returned.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { ListedRecipient } from '../../src/queue/reader.ts'
import { openQueueReader } from '../../src/queue/sqlite/queue-reader.ts'
import { FarLedger } from './far-ledger.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** What a number becomes: a tenth is refused, a tenth is deferred once, the rest is served. */
const recipientOf = (number: number): string => `${['refuse', 'defer'][number % 10] ?? 'ann'}-${number}@far.example`
export const isRefused = (number: number): boolean => number % 10 === 0

export class CrashLab {
  readonly far = new FarLedger()
  /** Queue ids by the numbers answered 250. */
  readonly acknowledged = new Map<number, string>()
  readonly queueDirectory = mkdtempSync(join(tmpdir(), 'deferd-crash-'))
  #farPort = 0
  #port: number | null = null
  #child: ChildProcess | null = null
  #nextNumber = 1
  #sending = true
  readonly #clients: Promise<void>[] = []
  readonly #settings: Readonly<Record<string, string>>
  #recipientOf = recipientOf

  constructor(settings: Readonly<Record<string, string>> = {}) {
    this.#settings = settings
  }

  async open(clients: number, recipient = recipientOf): Promise<void> {
    this.#recipientOf = recipient
    this.#farPort = await this.far.listen()
    for (let i = 0; i < clients; i++) this.#clients.push(this.#send())
  }

  /** Starts the relay; it dies at the failpoint, if one is given. Resolves when it takes mail. */
  async start(failpoint = ''): Promise<void> {
    const settings = {
      queue_directory: this.queueDirectory,
      smtpd_listen: '127.0.0.1:0',
      relayhost: `[127.0.0.1]:${this.#farPort}`,
      minimal_backoff_time: '1s',
      maximal_backoff_time: '2s',
      ...this.#settings,
    }
    const overrides = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
    const program = join(import.meta.dirname, 'relay-process.ts')
    const child = spawn(process.execPath, [program, failpoint, ...overrides], { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      this.#port = Number(line)
      return
    }
    // It can die before it has told its port: that is a crash like any other.
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
    this.#port = null
    this.#child = null
    return first
  }

  /** Sends SIGTERM; resolves with the exit code and how long it took, in ms. */
  async terminate(): Promise<{ readonly code: number | null; readonly took: number }> {
    const child = this.#child
    if (child === null) throw new Error('nothing runs')
    const began = performance.now()
    const code = await new Promise<number | null>((resolve) => {
      child.once('exit', resolve)
      child.kill('SIGTERM')
    })
    this.#port = null
    this.#child = null
    return { code, took: performance.now() - began }
  }

  /** No more mail comes in. */
  async quiet(): Promise<void> {
    this.#sending = false
    await Promise.all(this.#clients)
  }

  /** Waits until so many messages were answered 250. */
  async acknowledges(count: number): Promise<void> {
    while (this.acknowledged.size < count) await pause(10)
  }

  /** Waits until the live recipients are as wanted. */
  async settled(wanted: (recipients: readonly ListedRecipient[]) => boolean): Promise<void> {
    const reader = openQueueReader(this.queueDirectory)
    try {
      const live = () => reader.list({}, { after: 0, limit: 100_000, now: Date.now() }).flatMap(({ recipients }) => recipients)
      while (!wanted(live())) await pause(50)
    } finally {
      reader.close()
    }
  }

  /** Waits until the queue is empty. */
  async drained(patience: number): Promise<boolean> {
    const reader = openQueueReader(this.queueDirectory)
    try {
      for (let waited = 0; waited < patience; waited += 100) {
        const counts = reader.counts(Date.now()).filter(({ messages }) => messages > 0)
        if (counts.every(({ queue }) => queue === 'corrupt')) return true
        await pause(100)
      }
      return false
    } finally {
      reader.close()
    }
  }

  /** Numbers that were set aside because the relay died in their delivery three times. */
  corrupt(): ReadonlySet<number> {
    const reader = openQueueReader(this.queueDirectory)
    try {
      const listed = reader.list({ queue: 'corrupt' }, { after: 0, limit: 10_000, now: Date.now() })
      return new Set(listed.flatMap(({ recipients }) => recipients.map(({ address }) => Number(/-(\d+)@/.exec(address)?.[1]))))
    } finally {
      reader.close()
    }
  }

  async close(): Promise<void> {
    this.#sending = false
    this.#child?.kill('SIGKILL')
    await Promise.all(this.#clients)
    await this.far.close()
    rmSync(this.queueDirectory, { recursive: true, force: true })
  }

  /** One client: sends message after message, and comes back when the relay went away. */
  async #send(): Promise<void> {
    while (this.#sending) {
      const port = this.#port
      if (port === null) await pause(10)
      else await this.#session(port)
    }
  }

  async #session(port: number): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    try {
      const next = repliesOf(socket)
      const ask = async (line: string): Promise<string> => {
        if (line !== '') socket.write(line)
        const reply = await next()
        if (reply === undefined) throw new Gone()
        return reply
      }
      await ask('')
      await ask('EHLO load.example\r\n')
      while (this.#sending) {
        const number = this.#nextNumber++
        await ask('MAIL FROM:<app@us.example>\r\n')
        await ask(`RCPT TO:<${this.#recipientOf(number)}>\r\n`)
        await ask('DATA\r\n')
        const reply = await ask(`X-Number: ${number}\r\nSubject: crash\r\n\r\n${'x'.repeat(1000)}\r\n.\r\n`)
        if (reply.startsWith('250')) this.acknowledged.set(number, / as (\w+)/.exec(reply)?.[1] ?? '')
      }
    } catch (error) {
      if (!(error instanceof Gone)) throw error
    } finally {
      socket.destroy()
    }
  }
}

class Gone extends Error {}

/** The final lines of replies, one by one; undefined when the other side has gone away. */
function repliesOf(socket: Socket): () => Promise<string | undefined> {
  const lines: string[] = []
  let rest = ''
  const link = { gone: false }
  let wake: () => void = () => undefined
  socket.on('data', (bytes) => {
    const pieces = (rest + bytes.toString('latin1')).split('\r\n')
    rest = pieces.pop() ?? ''
    lines.push(...pieces.filter((line) => /^\d{3} /.test(line)))
    wake()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    link.gone = true
    wake()
  })
  return async () => {
    while (lines.length === 0 && !link.gone) await new Promise<void>((resolve) => (wake = resolve))
    return lines.shift()
  }
}
