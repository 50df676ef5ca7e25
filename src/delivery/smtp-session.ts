/**
 * One SMTP session over a connection that is already open. nodemailer's SMTPConnection greets, says EHLO or HELO, starts
 * TLS and logs in; `sendmail` aside, this is the only file that imports it. The dialogue and the mail transaction are
 * our own, because nodemailer takes much that breaks the protocol for success, waits for ever on a server that drips,
 * and has one set of DSN parameters for all recipients. Relies on the members named in Internals, of exactly nodemailer 10.6.0.
 */
/* oxlint-disable no-underscore-dangle -- the names are nodemailer's */
import { Socket } from 'node:net'
import SMTPConnection, { type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'
import XOAuth2 from 'nodemailer/lib/xoauth2'
import type { Duration, Instant } from '../mail/clock.ts'
import { Dialogue, type Waiting } from './dialogue.ts'
import { parseExtensions, type Extensions } from './envelope-commands.ts'
import { isKind, isSuspicious, transact, type Command, type Line, type Mail } from './mail-transaction.ts'
import type { ServerReply } from './reply-reader.ts'
import { chooseMechanism, type Credentials } from './sasl-passwords.ts'
import type { SessionTerms } from './session-terms.ts'
import { tlsErrorText } from './system-error.ts'
import type { Peer, Transcript, Trouble } from './transcript.ts'

/** The parts of nodemailer's connection that are not in its types. */
interface Internals {
  _socket: Socket
  _responseActions: ((this: object, reply: string) => void)[]
  _supportedAuth: string[]
  _ehloLines?: string[]
  _onData(chunk: Buffer): void
  _sendCommand(command: string, shown?: string): void
  _startPhase(timeout: Duration, error: Error): void
  _upgradeConnection(done: (error: Error | null, secured?: boolean) => void): void
}

const Base = SMTPConnection as unknown as new (options: SMTPConnectionOptions) => SMTPConnection & Internals

/** setTimeout's longest: nodemailer's own time limits never fire, ours do. */
const NEVER: Duration = 2_147_483_647

function whatAnswers(command: string): Waiting {
  if (/^(?:EHLO|HELO|LHLO) /.test(command)) return 'ehlo'
  return command === 'STARTTLS' ? 'starttls' : 'auth'
}

const optionsFor = (socket: Socket, { peer, helo, lmtp, tls, ticket }: SessionTerms): SMTPConnectionOptions => ({
  connection: socket,
  host: peer.name,
  port: peer.port,
  name: helo,
  lmtp,
  secure: false,
  ignoreTLS: tls.level === 'none',
  opportunisticTLS: tls.level === 'may',
  tls: ticket?.offered === undefined ? tls.options : { ...tls.options, session: ticket.offered },
  logger: false,
  socketTimeout: NEVER,
  connectionTimeout: NEVER,
  greetingTimeout: NEVER,
  socketCloseTimeout: 0,
})

class Conversation extends Base implements Line {
  readonly dialogue: Dialogue
  readonly #terms: SessionTerms
  /** A socket of the system knows what it has not sent yet; one in memory learns of it too late. */
  readonly #real: boolean
  #drained: (() => void) | undefined
  extensions: Extensions = new Map()
  /** What the host calls itself in its reply to EHLO. */
  ehloName = ''

  constructor(socket: Socket, terms: SessionTerms) {
    super(optionsFor(socket, terms))
    this.#terms = terms
    this.#real = socket instanceof Socket
    this.dialogue = new Dialogue({
      clock: terms.clock,
      settings: terms.settings,
      hangUp: () => {
        this.close()
        this.#drained?.()
      },
      handshake: (lines) => this.#shakeHands(lines),
    })
    this.dialogue.endBy(terms.endBy)
    this.on('error', (error: Error & { readonly response?: string }) => this.#failed(error))
    this.on('end', () => this.dialogue.fail({ kind: 'lost', stage: this.dialogue.stage }))
  }

  get trouble(): Trouble | undefined {
    return this.dialogue.trouble
  }

  get mechanisms(): readonly string[] {
    return this._supportedAuth
  }

  /** Greeting, EHLO, STARTTLS. Says how it failed. */
  handshake(): Promise<Trouble | undefined> {
    return new Promise((resolve) => {
      this.dialogue.onOver = () => resolve(this.trouble)
      this.dialogue.await('greeting')
      this.connect((error) => {
        if (error !== undefined) return this.#failed(error)
        this.dialogue.await('idle')
        this.extensions = parseExtensions(this._ehloLines ?? [])
        resolve(undefined)
      })
    })
  }

  authenticate({ user, password }: Credentials, method: string): Promise<Trouble | undefined> {
    return new Promise((resolve) => {
      this.dialogue.onOver = () => resolve(this.trouble)
      const oauth2 = method === 'XOAUTH2' ? new XOAuth2({ user, accessToken: password }) : undefined
      this.login({ user, pass: password, method, oauth2 }, (error) => {
        this.dialogue.await('idle')
        if (error === null) return resolve(undefined)
        const reply = this.dialogue.lastReply
        const refused = reply !== undefined && reply.code >= 400
        resolve(refused ? { kind: 'refused', stage: 'auth', reply } : { kind: 'auth-unavailable', why: error.message })
      })
    })
  }

  // as a transaction sees it

  now(): Instant {
    return this.#terms.clock.now()
  }

  request(commands: readonly Command[]): Promise<ServerReply | undefined>[] {
    const replies = commands.map(({ step }) => this.dialogue.expect(step))
    if (!this.dialogue.over) this._socket.write(commands.map(({ text }) => `${text}\r\n`).join(''))
    return replies
  }

  beginContent(): void {
    this.dialogue.await('body')
  }

  async write(bytes: Uint8Array): Promise<boolean> {
    if (this.dialogue.over) return false
    this.dialogue.await('body')
    await new Promise<void>((resolve) => {
      this.#drained = resolve
      this._socket.write(bytes, () => resolve())
    })
    return !this.dialogue.over
  }

  finish(bytes: Uint8Array, count: number): Promise<ServerReply | undefined>[] {
    const replies = Array.from({ length: count }, () => this.dialogue.expect('end-of-data').then((reply) => this.#whenAllSent(reply)))
    if (!this.dialogue.over) this._socket.write(bytes)
    return replies
  }

  drop(): void {
    this.dialogue.end()
  }

  /** QUIT, without waiting for its reply (smtp_skip_quit_response): the connection ends by itself, or after a while. */
  leave(): void {
    if (this.dialogue.over) return
    this.dialogue.leave()
    const socket = this._socket
    const { clock, settings, leaving } = this.#terms
    const timer = clock.after(settings.smtp_quit_timeout, () => socket.destroy())
    leaving.add(socket)
    socket.once('close', () => {
      timer.cancel()
      leaving.delete(socket)
    })
    socket.end('QUIT\r\n')
  }

  // what nodemailer does otherwise

  override _startPhase(): void {
    // nodemailer's phases have time limits of their own; ours are set by what is awaited.
  }

  override _sendCommand(command: string, shown?: string): void {
    this.dialogue.await(whatAnswers(command))
    super._sendCommand(command, shown)
  }

  override _upgradeConnection(done: (error: Error | null, secured?: boolean) => void): void {
    this.dialogue.forget()
    super._upgradeConnection(done)
    // It is the TLS socket now. With TLS 1.3 tickets come after the handshake.
    const { ticket } = this.#terms
    if (ticket !== undefined) this._socket.on('session', ticket.keep)
  }

  override _onData(chunk: Buffer): void {
    const socket = this._socket
    this.dialogue.receive(chunk, () => this._socket === socket)
  }

  #shakeHands(lines: readonly string[]): void {
    if (this.dialogue.stage === 'ehlo') this.ehloName = /^2\d\d[ -](\S*)/.exec(lines[0] ?? '')?.[1] ?? ''
    this._responseActions.shift()?.call(this, lines.join('\n'))
  }

  /** A 2xx counts only after everything has left this process. */
  #whenAllSent(reply: ServerReply | undefined): ServerReply | undefined {
    if (!isKind(2, reply) || !this.#real || this._socket.writableLength === 0) return reply
    this.dialogue.nonsense(reply?.raw ?? '')
    return undefined
  }

  /** nodemailer gave up. */
  #failed(error: Error & { readonly response?: string | undefined }): void {
    const { stage, lastReply } = this.dialogue
    // What ended the handshake is known to the TLS socket; nodemailer may only have seen it close.
    if (this.upgrading === true) this.dialogue.fail({ kind: 'tls', why: tlsErrorText(this._socket.errored ?? error) })
    else if (error.response !== undefined && lastReply !== undefined) this.dialogue.fail({ kind: 'refused', stage, reply: lastReply })
    else this.dialogue.fail({ kind: 'lost', stage })
  }
}

export class SmtpSession {
  readonly peer: Peer
  /** Its opening on the stopwatch. */
  readonly openedAt: Duration
  readonly #line: Conversation
  #uses = 0
  #inStep = true

  private constructor(line: Conversation, terms: SessionTerms) {
    this.#line = line
    this.peer = terms.peer
    this.openedAt = terms.clock.monotonic()
  }

  /** From the greeting to the end of AUTH. The connection is closed when that fails. */
  static async open(socket: Socket, terms: SessionTerms, signal: AbortSignal): Promise<SmtpSession | Trouble> {
    const line = new Conversation(socket, terms)
    const trouble = await abortable(line, signal, async () => (await line.handshake()) ?? readiness(line, terms))
    if (trouble === undefined) return new SmtpSession(line, terms)
    line.drop()
    return trouble
  }

  transact(mail: Omit<Mail, 'reset'>, endBy: Duration, signal: AbortSignal): Promise<Transcript> {
    const line = this.#line
    line.dialogue.endBy(endBy)
    this.#uses++
    return abortable(line, signal, async () => {
      const transcript = await transact(line, { ...mail, reset: this.#uses > 1 })
      this.#inStep &&= ![transcript.mail, transcript.data, ...transcript.rcpt, ...transcript.end].some(isSuspicious)
      return transcript
    })
  }

  /** How often it has carried a message, or tried to. */
  get uses(): number {
    return this.#uses
  }

  /** May it carry another message? */
  get usable(): boolean {
    return !this.#line.dialogue.over && this.#inStep
  }

  quit(): void {
    this.#line.leave()
  }
}

async function abortable<T>(line: Conversation, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
  const abort = () => line.dialogue.fail({ kind: 'aborted', stage: line.dialogue.stage })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await action()
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** What must hold before mail is handed over. */
async function readiness(line: Conversation, { tls, credentials, detectLoop, helo }: SessionTerms): Promise<Trouble | undefined> {
  if (detectLoop && line.ehloName.toLowerCase() === helo.toLowerCase()) return { kind: 'loop' }
  if (tls.required && !line.secure) return { kind: 'tls-not-offered' }
  // Without AUTH on offer the mail goes as it is (postfix smtp_sasl_proto.c).
  if (credentials === undefined || !line.extensions.has('AUTH')) return undefined
  const mechanism = chooseMechanism(line.mechanisms, credentials, line.secure)
  if (mechanism === undefined) return { kind: 'auth-unavailable', why: 'no mechanism available' }
  return line.authenticate(credentials, mechanism)
}
