/**
 * A strict client for tests of scripted remote servers. It delivers one mail over raw bytes and returns the result as text. It
 * accepts only valid replies that follow a command.
 */
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { domainOf } from '../../src/mail/address.ts'
import { MINUTE, SECOND, type Clock, type Duration } from '../../src/system/clock.ts'
import type { Lookup, Net } from '../../src/system/net.ts'
import { eventLoopTurn } from '../../src/system/event-loop.ts'

export interface ProbeMail {
  readonly from?: string
  readonly to: readonly string[]
  readonly content?: string
  /** Duration for which the connection is idle between the mail and QUIT. */
  readonly idle?: Duration
}

const PATIENCE: Duration = 5 * MINUTE
const CONTENT = 'From: app@us.example\r\nSubject: hello\r\nMessage-ID: <1@us.example>\r\n\r\nHello there.\r\n'

/** The failure as text, with its stage. */
class Met extends Error {}

class Line {
  readonly #clock: Clock
  #socket: Socket
  #heard = ''
  #end: 'closed' | 'reset' | undefined
  #wake: (() => void) | undefined

  constructor(clock: Clock, socket: Socket) {
    this.#clock = clock
    this.#socket = this.#attach(socket)
  }

  async encrypt(): Promise<void> {
    this.#socket.removeAllListeners('data')
    const secure = connectTls({ socket: this.#socket, rejectUnauthorized: false })
    const outcome = await new Promise<string>((resolve) => {
      const timer = this.#clock.after(PATIENCE, () => resolve('timed out'))
      const settle = (words: string) => {
        timer.cancel()
        resolve(words)
      }
      secure.once('secureConnect', () => settle('ok'))
      secure.once('error', () => settle('TLS error'))
      secure.once('close', () => settle('closed'))
    })
    if (outcome !== 'ok') throw new Met(`${outcome} at handshake`)
    this.#socket = this.#attach(secure)
  }

  /** Sends a command and waits for its complete reply. */
  async ask(stage: string, command: string | null): Promise<string> {
    // Bytes received before the command are unasked.
    await eventLoopTurn()
    if (this.#heard !== '' && command !== null) throw new Met(`unasked ${quoted(this.#heard)} before ${stage}`)
    if (command !== null) this.#socket.write(command)
    return this.reply(stage)
  }

  /** A complete reply as one text. Throws Met for anything else. */
  async reply(stage: string): Promise<string> {
    for (;;) {
      const match = /^(?:\d{3}-[^\r\n]*\r\n)*\d{3}(?: [^\r\n]*)?\r\n/.exec(this.#heard)
      if (match !== null) {
        this.#heard = this.#heard.slice(match[0].length)
        return match[0]
          .trimEnd()
          .split('\r\n')
          .map((line, index) => (index === 0 ? line.replace(/^(\d{3})-/, '$1 ') : line.slice(4)))
          .join(' / ')
      }
      if (this.#end !== undefined) throw new Met(`${this.#heard === '' ? '' : `${quoted(this.#heard)}, `}${this.#end} at ${stage}`)
      if (!/^(?:$|\d{1,3}$|\d{3}[ -])/.test(this.#heard) || /[^\r]\n/.test(this.#heard))
        throw new Met(`nonsense ${quoted(this.#heard)} at ${stage}`)
      if (!(await this.#more())) throw new Met(`${this.#heard === '' ? '' : `${quoted(this.#heard)}, `}timed out at ${stage}`)
    }
  }

  /** Writes, and waits until the bytes are sent or the connection is closed. */
  async write(bytes: string): Promise<void> {
    const gone = await new Promise<boolean>((resolve) => {
      const timer = this.#clock.after(PATIENCE, () => resolve(false))
      this.#socket.write(bytes, () => {
        timer.cancel()
        resolve(true)
      })
    })
    if (!gone) throw new Met('timed out at body')
  }

  /** Unasked input while the connection was idle; null for none. */
  async listen(delay: Duration): Promise<string | null> {
    await new Promise<void>((resolve) => this.#clock.after(delay, resolve))
    const said = this.#heard.trimEnd()
    if (this.#end !== undefined) return said === '' ? this.#end : `${said} and ${this.#end}`
    return said === '' ? null : said
  }

  hangUp(): void {
    this.#socket.destroy()
  }

  #attach(socket: Socket): Socket {
    socket.on('data', (bytes: Buffer) => this.#note(() => (this.#heard += bytes.toString('latin1'))))
    socket.on('end', () => this.#note(() => (this.#end ??= 'closed')))
    socket.on('error', () => this.#note(() => (this.#end ??= 'reset')))
    socket.on('close', () => this.#note(() => (this.#end ??= 'closed')))
    return socket
  }

  #note(change: () => void): void {
    change()
    this.#wake?.()
  }

  #more(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(PATIENCE, () => resolve(false))
      this.#wake = () => {
        timer.cancel()
        resolve(true)
      }
    })
  }
}

const quoted = (bytes: string): string => JSON.stringify(bytes.length > 40 ? `${bytes.slice(0, 40)}…` : bytes)

/** Delivers a mail and returns the result as text: `delivered`, `450 4.2.1 busy at rcpt`, `closed at end-of-data after 10s` … */
export async function probe(net: Net, clock: Clock, mail: ProbeMail): Promise<string> {
  const started = clock.monotonic()
  const timed = (outcome: string): string => {
    const took = clock.monotonic() - started
    return took === 0 ? outcome : `${outcome} after ${took % SECOND === 0 ? `${took / SECOND}s` : `${took}ms`}`
  }
  let line: Line | undefined
  try {
    line = new Line(clock, await dialExchanger(net, domainOf(mail.to[0] ?? '')))
    await greet(line)
    const delivered = timed(await transact(line, mail))
    return delivered + (await leave(line, mail.idle ?? 2 * SECOND))
  } catch (error) {
    if (error instanceof Met) return timed(error.message)
    throw error
  } finally {
    line?.hangUp()
  }
}

function met(lookup: Lookup<unknown>): string {
  if (lookup.kind === 'failed') return `${lookup.reason} at dns`
  return lookup.kind === 'none' && lookup.nxdomain ? 'NXDOMAIN at dns' : 'no data at dns'
}

async function dialExchanger(net: Net, domain: string): Promise<Socket> {
  const answer = await net.lookupMx(domain)
  if (answer.kind === 'failed' || (answer.kind === 'none' && answer.nxdomain)) throw new Met(met(answer))
  const hosts = answer.kind === 'none' ? [domain] : answer.records.toSorted((a, b) => a.preference - b.preference).map((mx) => mx.exchange)
  if (hosts[0] === '') throw new Met('null MX at dns')
  let failure = ''
  for (const host of hosts) {
    const found = await net.lookupAddresses(host, 4)
    if (found.kind !== 'found') {
      failure = met(found)
      continue
    }
    for (const address of found.records) {
      try {
        return await net.dial({ address, port: 25, timeout: 30 * SECOND })
      } catch (error) {
        failure = `${(error as NodeJS.ErrnoException).code} at connect`
      }
    }
  }
  throw new Met(failure)
}

async function greet(line: Line): Promise<void> {
  expectCode('2', 'greeting', await line.ask('greeting', null))
  let offer = await line.ask('ehlo', 'EHLO us.example\r\n')
  if (offer.startsWith('5')) return expectCode('2', 'helo', await line.ask('helo', 'HELO us.example\r\n'))
  expectCode('2', 'ehlo', offer)
  if (offer.includes('STARTTLS')) {
    expectCode('2', 'starttls', await line.ask('starttls', 'STARTTLS\r\n'))
    await line.encrypt()
    offer = await line.ask('ehlo', 'EHLO us.example\r\n')
  }
  if (offer.includes('AUTH PLAIN')) expectCode('2', 'auth', await line.ask('auth', 'AUTH PLAIN AHUAcA==\r\n'))
}

async function transact(line: Line, { from = 'app@us.example', to, content = CONTENT }: ProbeMail): Promise<string> {
  expectCode('2', 'mail', await line.ask('mail', `MAIL FROM:<${from}> SIZE=${content.length}\r\n`))
  const refused: string[] = []
  for (const address of to) {
    const reply = await line.ask('rcpt', `RCPT TO:<${address}>\r\n`)
    if (!reply.startsWith('2')) refused.push(to.length === 1 ? reply : `${reply.slice(0, 9)} for ${address}`)
  }
  if (refused.length === to.length) throw new Met(`${refused.join(', ')} at rcpt`)
  expectCode('354', 'data', await line.ask('data', 'DATA\r\n'))
  await line.write(content.replaceAll('\r\n.', '\r\n..'))
  expectCode('2', 'end-of-data', await line.ask('end-of-data', '.\r\n'))
  return refused.length === 0 ? 'delivered' : `delivered, but ${refused.join(', ')} at rcpt`
}

/** Text about failures after the delivery of the mail; empty when there were none. */
async function leave(line: Line, idle: Duration): Promise<string> {
  const unasked = await line.listen(idle)
  if (unasked !== null) return `, then ${unasked} while idle`
  try {
    expectCode('2', 'rset', await line.ask('rset', 'RSET\r\n'))
    const reply = await line.ask('quit', 'QUIT\r\n')
    return reply.startsWith('221') ? '' : `, then ${reply} at quit`
  } catch (error) {
    if (error instanceof Met) return `, then ${error.message}`
    throw error
  }
}

function expectCode(prefix: string, stage: string, reply: string): void {
  if (!reply.startsWith(prefix)) throw new Met(`${reply} at ${stage}`)
}
