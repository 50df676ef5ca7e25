/**
 * A client that sends mail at a constant rate and times greetings: `node paced-source.ts PORT RATE SECONDS [DESTINATIONS]`. Prints one
 * line of JSON at its end: the messages that were accepted, and the times from connections to greetings, in ms.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { repliesOf } from '../../test/support/smtp-load.ts'

export interface Paced {
  readonly accepted: number
  readonly greetings: readonly number[]
}

const CONNECTIONS = 20
/** Greetings per second. */
const GREETINGS = 50
const CONTENT = `From: <sender@load.test>\r\nSubject: bench\r\n\r\n${`${'X'.repeat(78)}\r\n`.repeat(26)}.\r\n`
const transactionTo = (domain: string): readonly string[] => [
  'MAIL FROM:<sender@load.test>\r\n',
  `RCPT TO:<rcpt@${domain}>\r\n`,
  'DATA\r\n',
  CONTENT,
]

/** Calls `act` at each time of a schedule of so many per second, without waiting for the calls before. */
async function paced(rate: number, seconds: number, act: () => Promise<void>): Promise<void> {
  const began = performance.now()
  const running = new Set<Promise<void>>()
  for (let n = 0; n < rate * seconds; n++) {
    const wait = began + (n * 1_000) / rate - performance.now()
    if (wait > 0) await pause(wait)
    const one = act().then(() => void running.delete(one))
    running.add(one)
  }
  await Promise.all(running)
}

/**
 * Sends at a rate for so many seconds, to sink.test or to so many destinations d0.test, d1.test and so on. A message waits while all
 * connections are in use.
 */
export async function sendPaced(port: number, rate: number, seconds: number, destinations = 0): Promise<Paced> {
  const domains = destinations === 0 ? ['sink.test'] : Array.from({ length: destinations }, (_, n) => `d${n}.test`)
  const transactions = domains.map(transactionTo)
  const greetings: number[] = []
  let sent = 0
  let accepted = 0
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => openClient(port)))
  const idle = [...clients]
  const waiting: ((client: Client) => void)[] = []
  const message = async (): Promise<void> => {
    // The connection that has been idle longest: the relay would close one that is never used (smtpd_timeout).
    const client = idle.shift() ?? (await new Promise<Client>((resolve) => void waiting.push(resolve)))
    for (const line of transactions[sent++ % transactions.length] ?? []) await client.ask(line)
    accepted++
    const next = waiting.shift()
    if (next === undefined) idle.push(client)
    else next(client)
  }
  await Promise.all([paced(rate, seconds, message), paced(GREETINGS, seconds, async () => void greetings.push(await greeting(port)))])
  for (const { socket } of clients) socket.end('QUIT\r\n')
  return { accepted, greetings }
}

interface Client {
  readonly socket: Socket
  readonly ask: (line: string) => Promise<void>
}

async function openClient(port: number): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const next = repliesOf(socket)
  const ask = async (line: string): Promise<void> => {
    if (line !== '') socket.write(line)
    const reply = (await next()) ?? 'nothing'
    if (!/^[23]/.test(reply)) throw new Error(`the relay said: ${reply}`)
  }
  await ask('')
  await ask('EHLO load.test\r\n')
  return { socket, ask }
}

/** Time from the connection to the greeting, in ms. */
export function greeting(port: number): Promise<number> {
  const began = performance.now()
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    socket.once('error', reject)
    socket.once('data', () => {
      resolve(performance.now() - began)
      socket.end('QUIT\r\n')
      socket.resume()
    })
  })
}

if (import.meta.main) {
  const [port = 0, rate = 0, seconds = 0, destinations = 0] = process.argv.slice(2).map(Number)
  process.stdout.write(`${JSON.stringify(await sendPaced(port, rate, seconds, destinations))}\n`)
}
