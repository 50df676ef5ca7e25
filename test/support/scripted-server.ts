/**
 * A scripted SMTP server on raw sockets. It sends exactly the bytes of the script, valid or not, and records its input without
 * any check.
 */
import type { Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { CERTIFICATE, KEY } from './certificates.ts'

/** Action of the server at one stage of the session. */
export type Act =
  | string
  | { readonly say?: string; /** Closes the connection after that. */ readonly drop?: boolean }
  /** Exactly these bytes, one write for each. */
  | { readonly packets: readonly Uint8Array[]; readonly drop?: boolean }
  /** No reply. */
  | null

/** One act, acts for successive occasions (the last one repeats), or a function of the received line. */
export type Script = Act | readonly Act[] | ((line: string, nth: number) => Act)

export interface ServerScript {
  readonly greeting?: Script
  readonly ehlo?: Script
  readonly helo?: Script
  readonly mail?: Script
  readonly rcpt?: Script
  readonly data?: Script
  /** An act after this number of bytes of content. */
  readonly inContent?: { readonly after: number; readonly act: Act }
  /** Reply to the dot, or to BDAT with LAST. */
  readonly dot?: Script
  /** Reply to BDAT without LAST, after the chunk. */
  readonly bdat?: Script
  readonly rset?: Script
  readonly auth?: Script
  readonly lhlo?: Script
  readonly quit?: Script
  /** A 220 is followed by a handshake with the certificate of mx.example.net. */
  readonly starttls?: Script
  /** True to start TLS with the connection. */
  readonly wrapper?: boolean
}

/** Record of one connection. */
export interface ServerSession {
  readonly host: string
  /** Command lines, in order. */
  readonly commands: string[]
  /** Contents as received, without the final dot. */
  readonly contents: string[]
  /** Number of received bytes of the last content. */
  contentBytes: number
  closed: boolean
  /** True after STARTTLS, and in wrapper mode. */
  secure: boolean
  /** True when the TLS session of an earlier connection was resumed. */
  resumed: boolean
}

const DEFAULTS: Required<Omit<ServerScript, 'inContent' | 'wrapper'>> = {
  greeting: '220 far.example ESMTP',
  ehlo: '250-far.example\r\n250-PIPELINING\r\n250-SIZE 0\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 DSN',
  lhlo: '250-far.example\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES',
  helo: '250 far.example',
  mail: '250 2.1.0 Ok',
  rcpt: '250 2.1.5 Ok',
  data: '354 End data with <CR><LF>.<CR><LF>',
  dot: '250 2.0.0 Ok: queued as FAR1',
  bdat: '250 2.0.0 Ok: chunk',
  rset: '250 2.0.0 Ok',
  auth: '235 2.7.0 Authentication successful',
  quit: { say: '221 2.0.0 Bye', drop: true },
  starttls: '454 4.7.0 TLS not available',
}

/** Shared by all connections, because it has the key of the session tickets. */
const TLS = createSecureContext({ cert: CERTIFICATE, key: KEY })

type Point = keyof typeof DEFAULTS

export class ScriptedServer {
  readonly sessions: ServerSession[] = []
  readonly #script: ServerScript
  readonly #name: string
  readonly #counts = new Map<Point, number>()

  constructor(name: string, script: ServerScript = {}) {
    this.#name = name
    this.#script = script
  }

  readonly accept = (socket: Socket): void => {
    const session: ServerSession = {
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
    const spoken = this.#script.wrapper === true ? secured(socket, session) : socket
    this.#perform(spoken, 'greeting', '')
    this.#listen(spoken, session)
  }

  #listen(socket: Socket, session: ServerSession): void {
    let input = ''
    let inContent = false
    let spoken = false
    let bdatChunk: { readonly octets: number; readonly last: boolean } | undefined
    let chunks = ''
    const speakEarly = (received: number) => {
      const { inContent: early } = this.#script
      session.contentBytes = received
      if (early === undefined || spoken || received < early.after) return
      spoken = true
      act(socket, early.act)
    }
    const take = (chunk: Buffer) => {
      input += chunk.toString('latin1')
      while (!socket.writableEnded) {
        if (inContent) {
          speakEarly(input.length)
          const end = `\r\n${input}`.indexOf('\r\n.\r\n')
          if (end < 0) return
          session.contents.push(input.slice(0, end))
          input = input.slice(end + 3)
          inContent = false
          for (let replies = this.#script.lhlo === undefined ? 1 : rcpts(session); replies > 0; replies--) this.#perform(socket, 'dot', '')
          continue
        }
        if (bdatChunk !== undefined) {
          speakEarly(chunks.length + input.length)
          if (input.length < bdatChunk.octets) return
          chunks += input.slice(0, bdatChunk.octets)
          input = input.slice(bdatChunk.octets)
          if (bdatChunk.last) session.contents.push(chunks)
          this.#perform(socket, bdatChunk.last ? 'dot' : 'bdat', '')
          if (bdatChunk.last) chunks = ''
          bdatChunk = undefined
          continue
        }
        const end = input.indexOf('\r\n')
        if (end < 0) return
        const line = input.slice(0, end)
        input = input.slice(end + 2)
        session.commands.push(line)
        const bdat = /^BDAT (\d+)( LAST)?$/.exec(line)
        if (bdat !== null) {
          bdatChunk = { octets: Number(bdat[1]), last: bdat[2] !== undefined }
          continue
        }
        if (/^(?:MAIL|RSET)/.test(line)) chunks = ''
        if (line === 'STARTTLS' && this.#perform(socket, 'starttls', line).startsWith('220')) {
          socket.off('data', take)
          return this.#listen(secured(socket, session), session)
        }
        if (line !== 'STARTTLS') inContent = this.#command(socket, line)
      }
    }
    socket.on('error', () => {})
    socket.on('data', take)
  }

  /** Handles a command; returns true when content follows. */
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

/** The server's end of TLS over a socket. */
function secured(socket: Socket, session: ServerSession): TLSSocket {
  session.secure = true
  const tls = new TLSSocket(socket, { isServer: true, secureContext: TLS })
  tls.on('secure', () => (session.resumed = tls.isSessionReused()))
  return tls
}

/** Number of recipients of the current transaction: LMTP replies to the dot once for each. */
const rcpts = ({ commands }: ServerSession): number =>
  commands.slice(commands.findLastIndex((line) => line.startsWith('MAIL'))).filter((line) => line.startsWith('RCPT')).length

const isList = (script: Exclude<Script, (...args: never[]) => unknown>): script is readonly Act[] => Array.isArray(script)

function act(socket: Socket, what: Act): void {
  if (what === null) return
  if (typeof what === 'string') socket.write(`${what}\r\n`)
  else if ('packets' in what) for (const packet of what.packets) socket.write(packet)
  else if (what.say !== undefined) socket.write(`${what.say}\r\n`)
  if (typeof what !== 'string' && what.drop === true) socket.end()
}
