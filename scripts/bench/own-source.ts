/**
 * A client that sends messages and waits for each reply, over several connections at once: `node own-source.ts SENDING FILE`, with the
 * members of `Sending` as JSON. Prints `began=TIME`, on the clock of `monotonic`, with the first connection, and writes for each message
 * its number and the times of its final dot and of the reply to FILE, as three numbers of eight bytes.
 */
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
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
  const { port, messages, sessions, connections } = sending
  const take = messagesOf(sending)
  const more = connections === 'kept' ? take : () => null
  const sent: Sent[] = []
  const client = async () => {
    for (let message = take(); message !== null; message = take()) await converse(port, message, more, (one) => void sent.push(one))
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

/** One connection: a message, and the next ones until `more` returns null, then QUIT. Each command waits for its reply. */
function converse(port: number, first: Message, more: () => Message | null, accepted: (sent: Sent) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
    let message: Message | null = first
    let step = -2
    let [reply, dot] = ['', 0]
    const write = (line: string): void => void socket.write(line)
    // Large content is written when the kernel has taken all of it.
    const writeContent = (content: string): void => void socket.write(content, () => (dot = monotonic()))
    const proceed = (): void => {
      step++
      if (message !== null && step === message.lines.length) {
        accepted({ number: message.number, dot, reply: monotonic() })
        message = more()
        step = 0
      }
      if (step < 0) return write('EHLO load.test\r\n')
      const line = message?.lines[step]
      if (message === null || line === undefined) return write('QUIT\r\n')
      if (step === message.lines.length - 1) return writeContent(line)
      const wait = step === 0 ? message.due - monotonic() : 0
      if (wait > 0) setTimeout(write, wait, line)
      else write(line)
    }
    socket.on('data', (chunk: string) => {
      reply += chunk
      const last = /(?:^|\n)(\d{3}) [^\n]*\n$/.exec(reply)
      if (last === null) return
      if (Number(last[1]) >= 400) socket.destroy(new Error(`the relay said: ${reply.trim()}`))
      else if (message === null) socket.end()
      else proceed()
      reply = ''
    })
    socket.once('error', reject)
    socket.once('close', () => (message === null ? resolve() : reject(new Error('the relay closed a connection early'))))
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
