/**
 * A client that sends messages and waits for each reply, over several connections at once:
 * `node own-source.ts PORT MESSAGES SESSIONS BYTES RECIPIENTS kept|new`. Prints `began=TIME`, in ms since the epoch,
 * with the first connection.
 */
import { connect } from 'node:net'

export interface Sending {
  readonly port: number
  readonly messages: number
  readonly sessions: number
  readonly bytes: number
  readonly recipients: number
  readonly connections: 'kept' | 'new'
}

const LINE = `${'X'.repeat(78)}\r\n`

/** Sends all messages; rejects with the first reply that refuses one. */
export async function send(sending: Sending): Promise<void> {
  const { bytes, recipients, sessions, messages, connections } = sending
  const content = `From: <sender@load.test>\r\nSubject: bench\r\n\r\n${LINE.repeat(Math.ceil(bytes / LINE.length))}.\r\n`
  const to = Array.from({ length: recipients }, (_, n) => `RCPT TO:<${n}rcpt@sink.test>\r\n`)
  const transaction = ['MAIL FROM:<sender@load.test>\r\n', ...to, 'DATA\r\n', content]
  let left = messages
  const client = async () => {
    while (left > 0) {
      left--
      await converse(sending.port, transaction, () => connections === 'kept' && left-- > 0)
    }
  }
  await Promise.all(Array.from({ length: Math.min(sessions, messages) }, client))
}

/** One connection: a transaction, repeated while `more` returns true, then QUIT. Each step waits for its reply. */
function converse(port: number, transaction: readonly string[], more: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }).setEncoding('latin1')
    let step = -2
    let reply = ''
    const next = (): string => {
      step++
      if (step < 0) return 'EHLO load.test\r\n'
      if (step === transaction.length && more()) step = 0
      return transaction[step] ?? 'QUIT\r\n'
    }
    socket.on('data', (chunk: string) => {
      reply += chunk
      const last = /(?:^|\n)(\d{3}) [^\n]*\n$/.exec(reply)
      if (last === null) return
      if (Number(last[1]) >= 400) socket.destroy(new Error(`the relay said: ${reply.trim()}`))
      else if (step > transaction.length - 1) socket.end()
      else socket.write(next())
      reply = ''
    })
    socket.once('error', reject)
    socket.once('close', () => (step >= transaction.length ? resolve() : reject(new Error('the relay closed a connection early'))))
  })
}

if (import.meta.main) {
  const [port = 0, messages = 0, sessions = 0, bytes = 0, recipients = 0] = process.argv.slice(2).map(Number)
  process.stdout.write(`began=${Date.now()}\n`)
  const connections = process.argv[7] === 'kept' ? 'kept' : 'new'
  try {
    await send({ port, messages, sessions, bytes, recipients, connections })
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exit(1)
  }
}
