/** SMTP clients that submit numbered messages to a relay, continue when it is restarted, and record the acknowledged ones. */
import { connect, type Socket } from 'node:net'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Recipients of the message with a number. */
export type RecipientsOf = (number: number) => string | readonly string[]

/** Pause after a lost or refused connection, in ms. */
const RECONNECT = 5
/** Pause after a refusal, in ms. */
const REFUSED = 20

export class SmtpLoad {
  /** Queue ids by the numbers that were answered 250. */
  readonly acknowledged = new Map<number, string>()
  /** Time at which each of these replies was read, in ms since the epoch. */
  readonly acknowledgedAt = new Map<number, number>()
  /** Port of the relay; null while none runs. */
  port: number | null = null
  /** Pause of a client after a message, in ms; null: no messages. */
  pace: number | null = 0
  /** Envelope sender of the message with a number. */
  senderOf: (number: number) => string = () => 'app@us.example'
  /** Size of each message. */
  contentBytes = 1_000
  /** Replies that refused MAIL, DATA or a message. */
  readonly refusals: string[] = []
  /** Numbers of the messages that were refused after the final dot. */
  readonly refused = new Set<number>()
  /** Number of open connections. */
  sessions = 0
  /** Ends the session after a refusal, as most clients do. The server delays its replies in a session with many errors. */
  leavesAfterRefusal = false
  /** Called with each acknowledged message. */
  onAcknowledged: (number: number, queueId: string) => void = () => undefined
  #nextNumber: number
  #isClosed = false
  readonly #clients: Promise<void>[] = []

  /** `first` is the number of the first message: several loads have different numbers. */
  constructor(first = 1) {
    this.#nextNumber = first
  }

  start(clients: number, recipientsOf: RecipientsOf): void {
    for (let i = 0; i < clients; i++) this.#clients.push(this.#run(recipientsOf))
  }

  /** Ends the clients. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#clients)
  }

  /** The next number, for a message that is submitted in another way. */
  takeNumber(): number {
    return this.#nextNumber++
  }

  acknowledge(number: number, queueId: string): void {
    this.acknowledged.set(number, queueId)
    this.acknowledgedAt.set(number, Date.now())
    this.onAcknowledged(number, queueId)
  }

  async #run(recipientsOf: RecipientsOf): Promise<void> {
    while (!this.#isClosed) {
      if (this.port === null || this.pace === null) await pause(10)
      else await this.#session(this.port, recipientsOf)
    }
  }

  async #session(port: number, recipientsOf: RecipientsOf): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.sessions++
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
      while (!this.#isClosed && this.pace !== null) {
        await this.#transaction(ask, recipientsOf)
        if (this.pace > 0) await pause(this.pace)
      }
    } catch (error) {
      if (!(error instanceof Gone)) throw error
      await pause(RECONNECT)
    } finally {
      socket.destroy()
      this.sessions--
    }
  }

  async #transaction(ask: (line: string) => Promise<string>, recipientsOf: RecipientsOf): Promise<void> {
    const number = this.takeNumber()
    const begun = await ask(`MAIL FROM:<${this.senderOf(number)}>\r\n`)
    if (!begun.startsWith('250')) return this.#refused(begun)
    for (const recipient of [recipientsOf(number)].flat()) await ask(`RCPT TO:<${recipient}>\r\n`)
    if (!(await ask('DATA\r\n')).startsWith('354')) return void (await ask('RSET\r\n'))
    const lines = `${'x'.repeat(76)}\r\n`.repeat(Math.ceil(this.contentBytes / 78))
    const reply = await ask(`X-Number: ${number}\r\nSubject: crash\r\n\r\n${lines}.\r\n`)
    if (reply.startsWith('250')) return this.acknowledge(number, / as (\w+)/.exec(reply)?.[1] ?? '')
    this.refused.add(number)
    await this.#refused(reply)
  }

  async #refused(reply: string): Promise<void> {
    this.refusals.push(reply)
    await pause(REFUSED)
    if (this.leavesAfterRefusal) throw new Gone()
  }
}

class Gone extends Error {}

/** The last lines of replies, one by one; undefined when the connection is closed. */
export function repliesOf(socket: Socket): () => Promise<string | undefined> {
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
