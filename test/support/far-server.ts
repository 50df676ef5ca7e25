/**
 * A scripted SMTP server on raw sockets: says exactly what a test tells it, sense or nonsense, and remembers what it
 * was told. It checks nothing.
 */
import type { Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { CERTIFICATE, KEY } from './certificates.ts'

/** What the server does at one point of the conversation. */
export type Act =
  | string
  | { readonly say?: string; /** Closes the connection after that. */ readonly drop?: boolean }
  /** Exactly these bytes, one write for each. */
  | { readonly packets: readonly Uint8Array[]; readonly drop?: boolean }
  /** Nothing at all. */
  | null

/** One act, acts for successive occasions (the last one stays), or a decision by the line received. */
export type Script = Act | readonly Act[] | ((line: string, nth: number) => Act)

export interface FarScript {
  readonly greeting?: Script
  readonly ehlo?: Script
  readonly helo?: Script
  readonly mail?: Script
  readonly rcpt?: Script
  readonly data?: Script
  /** After so many bytes of content; not at all when absent. */
  readonly inContent?: { readonly after: number; readonly act: Act }
  readonly dot?: Script
  readonly rset?: Script
  readonly auth?: Script
  readonly lhlo?: Script
  readonly quit?: Script
  /** A 220 is followed by a handshake with the certificate of mx.example.net. */
  readonly starttls?: Script
}

/** One connection as the server saw it. */
export interface FarSession {
  readonly host: string
  /** Command lines, in order. */
  readonly commands: string[]
  /** Contents as they came over the wire, without the final dot. */
  readonly contents: string[]
  /** Bytes of content that was begun. */
  contentBytes: number
  closed: boolean
  /** TLS was begun. */
  secure: boolean
  /** The TLS session is one from an earlier connection. */
  resumed: boolean
}

const DEFAULTS: Required<Omit<FarScript, 'inContent'>> = {
  greeting: '220 far.example ESMTP',
  ehlo: '250-far.example\r\n250-PIPELINING\r\n250-SIZE 0\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 DSN',
  lhlo: '250-far.example\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES',
  helo: '250 far.example',
  mail: '250 2.1.0 Ok',
  rcpt: '250 2.1.5 Ok',
  data: '354 End data with <CR><LF>.<CR><LF>',
  dot: '250 2.0.0 Ok: queued as FAR1',
  rset: '250 2.0.0 Ok',
  auth: '235 2.7.0 Authentication successful',
  quit: { say: '221 2.0.0 Bye', drop: true },
  starttls: '454 4.7.0 TLS not available',
}

/** One for all connections: it has the key of the session tickets. */
const TLS = createSecureContext({ cert: CERTIFICATE, key: KEY })

type Point = keyof typeof DEFAULTS

export class FarServer {
  readonly sessions: FarSession[] = []
  readonly #script: FarScript
  readonly #name: string
  readonly #counts = new Map<Point, number>()

  constructor(name: string, script: FarScript = {}) {
    this.#name = name
    this.#script = script
  }

  readonly accept = (socket: Socket): void => {
    const session: FarSession = {
      host: this.#name,
      commands: [],
      contents: [],
      contentBytes: 0,
      closed: false,
      secure: false,
      resumed: false,
    }
    this.sessions.push(session)
    socket.on('close', () => (session.closed = true))
    this.#perform(socket, 'greeting', '')
    this.#listen(socket, session)
  }

  #listen(socket: Socket, session: FarSession): void {
    let input = ''
    let inContent = false
    let spoken = false
    const take = (chunk: Buffer) => {
      input += chunk.toString('latin1')
      while (!socket.writableEnded) {
        if (inContent) {
          const { inContent: early } = this.#script
          session.contentBytes = input.length
          if (early !== undefined && !spoken && input.length >= early.after) {
            spoken = true
            act(socket, early.act)
          }
          const end = `\r\n${input}`.indexOf('\r\n.\r\n')
          if (end < 0) return
          session.contents.push(input.slice(0, end))
          input = input.slice(end + 3)
          inContent = false
          for (let replies = this.#script.lhlo === undefined ? 1 : rcpts(session); replies > 0; replies--) this.#perform(socket, 'dot', '')
          continue
        }
        const end = input.indexOf('\r\n')
        if (end < 0) return
        const line = input.slice(0, end)
        input = input.slice(end + 2)
        session.commands.push(line)
        if (line === 'STARTTLS' && this.#perform(socket, 'starttls', line).startsWith('220')) {
          socket.off('data', take)
          session.secure = true
          const secured = new TLSSocket(socket, { isServer: true, secureContext: TLS })
          secured.on('secure', () => (session.resumed = secured.isSessionReused()))
          return this.#listen(secured, session)
        }
        if (line !== 'STARTTLS') inContent = this.#command(socket, line)
      }
    }
    socket.on('error', () => {})
    socket.on('data', take)
  }

  /** Obeys a command; true when content follows. */
  #command(socket: Socket, line: string): boolean {
    const verb = /^[A-Za-z]+/.exec(line)?.[0]?.toLowerCase() ?? ''
    const point = verb in DEFAULTS ? (verb as Point) : 'auth'
    const said = this.#perform(socket, point, line)
    return point === 'data' && said.startsWith('3')
  }

  #perform(socket: Socket, point: Point, line: string): string {
    const nth = this.#counts.get(point) ?? 0
    this.#counts.set(point, nth + 1)
    const script: Script = this.#script[point] === undefined ? DEFAULTS[point] : this.#script[point]
    const chosen =
      typeof script === 'function' ? script(line, nth) : isList(script) ? (script[Math.min(nth, script.length - 1)] ?? null) : script
    act(socket, chosen)
    if (chosen === null || typeof chosen === 'string') return chosen ?? ''
    return 'packets' in chosen ? Buffer.concat(chosen.packets).toString('latin1') : (chosen.say ?? '')
  }
}

/** Recipients of the transaction under way: LMTP answers the dot once for each. */
const rcpts = ({ commands }: FarSession): number =>
  commands.slice(commands.findLastIndex((line) => line.startsWith('MAIL'))).filter((line) => line.startsWith('RCPT')).length

const isList = (script: Exclude<Script, (...args: never[]) => unknown>): script is readonly Act[] => Array.isArray(script)

function act(socket: Socket, what: Act): void {
  if (what === null) return
  if (typeof what === 'string') socket.write(`${what}\r\n`)
  else if ('packets' in what) for (const packet of what.packets) socket.write(packet)
  else if (what.say !== undefined) socket.write(`${what.say}\r\n`)
  if (typeof what !== 'string' && what.drop === true) socket.end()
}
