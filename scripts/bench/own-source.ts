/**
 * A client that sends messages and waits for each reply, over several connections at once: `node own-source.ts SENDING FILE`, with the
 * members of `Sending` as JSON. Prints `began=TIME`, on the clock of `monotonic`, with the first connection, and writes for each message
 * its number and the times of its final dot and of the reply to FILE, as three numbers of eight bytes.
 */
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as secure } from 'node:tls'
import type { Fate } from './cases.ts'
import { monotonic } from './clock.ts'

export interface Sending {
  readonly port: number
  readonly messages: number
  readonly sessions: number
  readonly bytes: number
  readonly recipients: number
  readonly connections: 'kept' | 'new'
  /** Tells the sink its replies, by the names of the recipients. */
  readonly fate?: Fate
  /** Messages per second; null or absent for as many as the relay takes. */
  readonly rate?: number | null
  /** STARTTLS with TLS 1.3: a full handshake for each connection, or one that resumes the session of an earlier connection. Absent: without TLS. */
  readonly tls?: 'full' | 'resumed'
  /** Number of the first message; its sender is `s<number>@load.test`. */
  readonly first?: number
}

/** A message that was accepted, with times on the clock of `monotonic`. */
export interface Sent {
  readonly number: number
  readonly dot: number
  readonly reply: number
}

interface Message {
  readonly number: number
  /** The commands of the transaction, the last one its content. */
  readonly lines: readonly string[]
  /** Earliest time of its first command. */
  readonly due: number
}

const LINE = `${'X'.repeat(78)}\r\n`

/** Sends all messages; rejects with the first reply that refuses one. */
export async function send(sending: Sending): Promise<readonly Sent[]> {
  const { port, messages, sessions, connections, tls } = sending
  const take = messagesOf(sending)
  const more = connections === 'kept' ? take : () => null
  const sent: Sent[] = []
  const accepted = (one: Sent): void => void sent.push(one)
  const client = async () => {
    const handshakes = tls === undefined ? null : new Handshakes(tls)
    for (let message = take(); message !== null; message = take()) await converse({ port, handshakes }, message, { more, accepted })
  }
  await Promise.all(Array.from({ length: Math.min(sessions, messages) }, client))
  return sent
}

/** Returns one message after the other, then null. */
function messagesOf({ messages, bytes, recipients, first = 0, fate = 'delivered', rate = null }: Sending): () => Message | null {
  const content = `From: <sender@load.test>\r\nSubject: bench\r\n\r\n${LINE.repeat(Math.ceil(bytes / LINE.length))}.\r\n`
  const to = (name: string): readonly string[] => Array.from({ length: recipients }, (_, n) => `RCPT TO:<${name}${n}@sink.test>\r\n`)
  const envelopes = recipientNames(fate).map(to)
  const began = monotonic()
  let taken = 0
  return () => {
    if (taken === messages) return null
    const number = first + taken
    const due = rate === null ? began : began + (taken * 1_000) / rate
    const envelope = envelopes[taken % envelopes.length] ?? []
    taken++
    return { number, due, lines: [`MAIL FROM:<s${number}@load.test>\r\n`, ...envelope, 'DATA\r\n', content] }
  }
}

/** The names of the recipients, in turn. */
function recipientNames(fate: Fate): readonly string[] {
  switch (fate) {
    case 'delivered':
    case 'held':
      return ['rcpt']
    case 'deferred':
      return ['deferred']
    case 'deferred once':
      return ['greylisted']
    case 'half bounced':
      return ['rcpt', 'bounced']
  }
}

/** The TLS handshakes of one client. */
class Handshakes {
  readonly #kind: 'full' | 'resumed'
  #session: Buffer | undefined

  constructor(kind: 'full' | 'resumed') {
    this.#kind = kind
  }

  /** Makes a handshake over an open connection. The certificate is not verified, as with the level `may`. */
  over(socket: Socket): Socket {
    const stream = secure({ socket, rejectUnauthorized: false, minVersion: 'TLSv1.3', session: this.#session })
    if (this.#kind === 'resumed') stream.on('session', (session) => (this.#session = session))
    return stream
  }
}

const EHLO = 'EHLO load.test\r\n'

interface Server {
  readonly port: number
  /** Null for connections without TLS. */
  readonly handshakes: Handshakes | null
}

interface Transactions {
  /** The next message of the connection; null for QUIT. */
  readonly more: () => Message | null
  readonly accepted: (sent: Sent) => void
}

/** One connection: a message, and the next ones until `more` returns null, then QUIT. Each command waits for its reply. */
function converse({ port, handshakes }: Server, first: Message, { more, accepted }: Transactions): Promise<void> {
  return new Promise((resolve, reject) => {
    let socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const opening = handshakes === null ? [EHLO] : [EHLO, 'STARTTLS\r\n', EHLO]
    let message: Message | null = first
    let step = -opening.length - 1
    let [reply, dot] = ['', 0]
    const write = (line: string): void => void socket.write(line)
    // Large content is written when the kernel has taken all of it.
    const writeContent = (content: string): void => void socket.write(content, () => (dot = monotonic()))
    const proceed = (): void => {
      step++
      // The reply to STARTTLS.
      if (handshakes !== null && step === -1) listen(handshakes.over(socket.removeAllListeners()))
      if (message !== null && step === message.lines.length) {
        accepted({ number: message.number, dot, reply: monotonic() })
        message = more()
        step = 0
      }
      if (step < 0) return write(opening.at(step) ?? EHLO)
      const line = message?.lines[step]
      if (message === null || line === undefined) return write('QUIT\r\n')
      if (step === message.lines.length - 1) return writeContent(line)
      const wait = step === 0 ? message.due - monotonic() : 0
      if (wait > 0) setTimeout(write, wait, line)
      else write(line)
    }
    const took = (chunk: string): void => {
      reply += chunk
      const last = /(?:^|\n)(\d{3}) [^\n]*\n$/.exec(reply)
      if (last === null) return
      if (Number(last[1]) >= 400) socket.destroy(new Error(`the relay said: ${reply.trim()}`))
      else if (message === null) socket.end()
      else proceed()
      reply = ''
    }
    const listen = (stream: Socket): void => {
      socket = stream.setEncoding('latin1').on('data', took)
      socket.once('error', reject)
      socket.once('close', () => (message === null ? resolve() : reject(new Error('the relay closed a connection early'))))
    }
    listen(socket)
  })
}

if (import.meta.main) {
  const [sending = '', file = ''] = process.argv.slice(2)
  process.stdout.write(`began=${monotonic()}\n`)
  try {
    const sent = await send(JSON.parse(sending) as Sending)
    writeFileSync(file, new Float64Array(sent.flatMap(({ number, dot, reply }) => [number, dot, reply])))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exit(1)
  }
}
