/**
 * The connection of an SMTP session. nodemailer's SMTPConnection performs EHLO or HELO, STARTTLS and AUTH with a password. deferd implements the
 * dialogue and the mail transaction itself, for three reasons: nodemailer takes several protocol errors for success, it waits without limit
 * for a server that sends single bytes, and it has one set of DSN parameters for all recipients. It also implements AUTH with an access
 * token, because nodemailer has no OAUTHBEARER and drops the reason of a refusal. This file relies on the undocumented members of nodemailer
 * that are listed in Internals.
 */
/* oxlint-disable no-underscore-dangle -- the names are nodemailer's */
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import SMTPConnection, { type SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection'
import type { Duration, QueueTime } from '../../system/clock.ts'
import { requireMembers } from '../../system/library-members.ts'
import { LEVEL_RULES } from '../../mail/tls-levels.ts'
import type { DaneVerification } from '../dane/dane-verification.ts'
import type { ServerReply } from '../reply-reader.ts'
import { isCertificateRefused, tlsConnection, type TlsConnection } from '../tls/tls-connection.ts'
import type { SessionFailure } from '../transcript.ts'
import { challengeText, parseChallenge, type SaslChallenge } from '../sasl-challenge.ts'
import { MASKED } from '../../sessions/masked-line.ts'
import type { SessionRecorder } from '../../sessions/session-recorder.ts'
import { Dialogue, type Waiting } from './dialogue.ts'
import { parseExtensions, type Extensions } from './envelope-commands.ts'
import { systemErrorText, tlsErrorText } from './error-text.ts'
import { isKind, type Command, type CommandChannel } from './mail-transaction.ts'
import { failureEvent, tlsEvent } from './session-events.ts'
import type { SessionOptions } from './session-options.ts'
import { FAILURE_ANSWERS, initialResponse, isTokenMechanism, type TokenMechanism } from './token-mechanisms.ts'

/** Undocumented members of nodemailer's connection. */
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

/** All members except `_ehloLines`, which does not exist before the first EHLO reply. */
const INTERNALS: Readonly<Record<Exclude<keyof Internals, '_ehloLines'>, true>> = {
  _socket: true,
  _responseActions: true,
  _supportedAuth: true,
  _onData: true,
  _sendCommand: true,
  _startPhase: true,
  _upgradeConnection: true,
}

/** Throws UnfitLibrary when nodemailer lacks a member that a session relies on. */
export function checkNodemailer(): void {
  const documented = ['connect', 'login', 'close', 'on', 'secure'] as const
  requireMembers('nodemailer', new Base({}), [...documented, ...(Object.keys(INTERNALS) as (keyof typeof INTERNALS)[])])
}

/** Maximum time of setTimeout in ms. nodemailer's own time limits are set to it, so that they never expire. */
const NEVER: Duration = 2_147_483_647

function awaitedAfter(command: string): Waiting {
  if (/^(?:EHLO|HELO|LHLO) /.test(command)) return 'ehlo'
  return command === 'STARTTLS' ? 'starttls' : 'auth'
}

const optionsFor = (socket: Socket, { peer, helo, lmtp, tls, ticket, settings }: SessionOptions): SMTPConnectionOptions => ({
  connection: socket,
  host: peer.name,
  port: peer.port,
  name: helo,
  lmtp,
  secure: tls.wrapper,
  ignoreTLS: LEVEL_RULES[tls.level].starttls === 'unused' || settings.smtp_discard_ehlo_keywords.includes('starttls'),
  opportunisticTLS: LEVEL_RULES[tls.level].starttls === 'optional',
  tls: ticket?.offered === undefined ? tls.options : { ...tls.options, session: ticket.offered },
  logger: false,
  socketTimeout: NEVER,
  connectionTimeout: NEVER,
  greetingTimeout: NEVER,
  socketCloseTimeout: 0,
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const failureOf = (verification: Exclude<DaneVerification, { readonly kind: 'fits' }>): SessionFailure =>
  verification.kind === 'anchor' ? verification : { kind: 'certificate', why: verification.why }

export class ClientConnection extends Base implements CommandChannel {
  readonly dialogue: Dialogue
  readonly #options: SessionOptions
  /** False for a socket in memory, whose writableLength is not updated in time. */
  readonly #isSystemSocket: boolean
  #drained: (() => void) | undefined
  extensions: Extensions = new Map()
  /** The host's name as stated in its EHLO reply. */
  ehloName = ''
  /** Records the session; null where nothing is recorded. */
  recorder: SessionRecorder | null
  /** Set when TLS is established. */
  tlsConnection: TlsConnection | undefined

  constructor(socket: Socket, options: SessionOptions) {
    super(optionsFor(socket, options))
    this.#options = options
    this.recorder = options.recorder ?? null
    this.#isSystemSocket = socket instanceof Socket
    this.dialogue = new Dialogue({
      clock: options.clock,
      settings: options.settings,
      disconnect: () => {
        this.close()
        this.#drained?.()
      },
      heard: (lines, challenge) => this.recorder?.server(lines, challenge && challengeText(challenge).trim()),
      failed: (failure) => this.#note(failureEvent(failure)),
      handshake: (lines) => this.#handshakeReply(lines),
    })
    this.dialogue.endBy(options.endBy)
    this.on('error', (error: Error & { readonly response?: string }) => this.#failed(error))
    this.on('end', () => this.dialogue.fail({ kind: 'lost', stage: this.dialogue.stage }))
  }

  get failure(): SessionFailure | undefined {
    return this.dialogue.failure
  }

  /** Offered mechanisms that the session knows, in upper case: those of nodemailer, then OAUTHBEARER. */
  get mechanisms(): readonly string[] {
    const offered = (this._ehloLines ?? []).filter((line) => /^AUTH[\s=]/i.test(line)).flatMap((line) => line.toUpperCase().split(/[\s=]+/))
    return offered.includes('OAUTHBEARER') ? [...this._supportedAuth, 'OAUTHBEARER'] : this._supportedAuth
  }

  /** Performs greeting, EHLO and STARTTLS, or TLS before them in wrapper mode. Resolves with the failure, if any. */
  handshake(): Promise<SessionFailure | undefined> {
    return new Promise((resolve) => {
      this.dialogue.onOver = () => resolve(this.failure)
      this.dialogue.await(this.#options.tls.wrapper ? 'tls' : 'greeting')
      this.connect((error) => {
        if (error !== undefined) return this.#failed(error)
        this.dialogue.await('idle')
        this.extensions = parseExtensions(this._ehloLines ?? [], this.#options.settings.smtp_discard_ehlo_keywords)
        resolve(undefined)
      })
    })
  }

  /** Logs in with a password, or with an access token in its place. Resolves with the failure, if any. */
  authenticate(user: string, password: string, method: string): Promise<SessionFailure | undefined> {
    return isTokenMechanism(method) ? this.#presentToken(user, password, method) : this.#presentPassword(user, password, method)
  }

  async #presentToken(user: string, token: string, mechanism: TokenMechanism): Promise<SessionFailure | undefined> {
    const { name: host, port } = this.#options.peer
    const response = initialResponse(mechanism, { user, token, host, port })
    this.dialogue.conceal([token, response, base64(token)])
    let challenge: SaslChallenge | undefined
    // A server that sends another challenge after the answer to a failure is asked to cancel (RFC 4954 §4).
    for (const line of [`AUTH ${mechanism} ${response}`, FAILURE_ANSWERS[mechanism], '*']) {
      const reply = await this.#sendAuth(line)
      if (reply === undefined) return this.failure
      if (isKind(2, reply)) return undefined
      if (reply.code >= 400) return { kind: 'refused', stage: 'auth', reply, challenge }
      challenge ??= parseChallenge(reply.text, (text) => this.dialogue.concealed(text))
    }
    this.dialogue.fail({ kind: 'protocol-error', stage: 'auth', what: '334 after the login was cancelled' })
    return this.failure
  }

  #sendAuth(line: string): Promise<ServerReply | undefined> {
    const reply = this.dialogue.expect('auth')
    if (!this.dialogue.over) {
      this.recorder?.client(line, !line.startsWith('AUTH '))
      this._socket.write(`${line}\r\n`)
    }
    return reply
  }

  #presentPassword(user: string, password: string, method: string): Promise<SessionFailure | undefined> {
    this.dialogue.conceal([password, base64(password), base64(`\0${user}\0${password}`)])
    return new Promise((resolve) => {
      this.dialogue.onOver = () => resolve(this.failure)
      this.login({ user, pass: password, method }, (error) => {
        this.dialogue.await('idle')
        if (error === null) return resolve(undefined)
        const reply = this.dialogue.lastReply
        const refused = reply !== undefined && reply.code >= 400
        // The message has the last reply, and a challenge may be anything in base64.
        const why = this.dialogue.concealed(error.message.replaceAll(/\b334[ -]\S+/g, `334 ${MASKED}`))
        resolve(refused ? { kind: 'refused', stage: 'auth', reply } : { kind: 'auth-unavailable', why })
      })
    })
  }

  // the CommandChannel of the mail transaction

  now(): QueueTime {
    return this.#options.clock.now()
  }

  request(commands: readonly Command[]): Promise<ServerReply | undefined>[] {
    const replies = commands.map(({ step }) => this.dialogue.expect(step))
    if (this.dialogue.over) return replies
    if (this.recorder !== null) for (const { text } of commands) this.recorder.client(text)
    this._socket.write(commands.map(({ text }) => `${text}\r\n`).join(''))
    return replies
  }

  beginContent(): void {
    this.dialogue.await('body')
  }

  async write(bytes: Uint8Array): Promise<boolean> {
    if (this.dialogue.over) return false
    this.dialogue.await('body')
    this.recorder?.content(bytes.length)
    await new Promise<void>((resolve) => {
      this.#drained = resolve
      this._socket.write(bytes, () => resolve())
    })
    return !this.dialogue.over
  }

  finish(bytes: Uint8Array, count: number, command?: string): Promise<ServerReply | undefined>[] {
    const replies = Array.from({ length: count }, () => this.#afterContent('end-of-data'))
    this.#send(bytes, command)
    return replies
  }

  chunk(bytes: Uint8Array, command: string): Promise<ServerReply | undefined> {
    const reply = this.#afterContent('bdat')
    this.#send(bytes, command)
    return reply
  }

  /** Sends content, behind a command in the same write. */
  #send(bytes: Uint8Array, command?: string): void {
    if (this.dialogue.over) return
    if (command !== undefined) this.recorder?.client(command)
    this.recorder?.content(bytes.length)
    this._socket.write(command === undefined ? bytes : Buffer.concat([Buffer.from(`${command}\r\n`), bytes]))
  }

  #afterContent(step: 'bdat' | 'end-of-data'): Promise<ServerReply | undefined> {
    return this.dialogue.expect(step).then((reply) => this.#whenAllSent(reply))
  }

  drop(): void {
    this.dialogue.end()
  }

  /** Calls a function when the connection has been closed. */
  whenClosed(call: () => void): void {
    if (this._socket.closed) call()
    else this._socket.once('close', call)
  }

  /** Sends QUIT and does not wait for the reply (smtp_skip_quit_response). Closes the connection after smtp_quit_timeout. */
  sendQuit(): void {
    if (this.dialogue.over) return
    this.dialogue.quit()
    const socket = this._socket
    const { clock, settings, quitting } = this.#options
    const timer = clock.after(settings.smtp_quit_timeout, () => socket.destroy())
    quitting.add(socket)
    socket.once('close', () => {
      timer.cancel()
      quitting.delete(socket)
    })
    this.recorder?.client('QUIT')
    socket.end('QUIT\r\n')
  }

  // overrides of nodemailer

  override _startPhase(): void {
    // Does nothing: the dialogue has its own time limits instead of those of nodemailer.
  }

  override _sendCommand(command: string, shown?: string): void {
    const awaited = awaitedAfter(command)
    this.dialogue.await(awaited)
    this.recorder?.client(command, awaited === 'auth' && !command.startsWith('AUTH '))
    super._sendCommand(command, shown)
  }

  override _upgradeConnection(done: (error: Error | null, secured?: boolean) => void): void {
    this.dialogue.discard()
    const { ticket, secured, tls, inspects } = this.#options
    if (!tls.wrapper) this.dialogue.await('handshake')
    super._upgradeConnection((error, isSecure) => {
      if (error === null && this._socket instanceof TLSSocket) {
        const verification = tls.verifyPeer?.(this._socket) ?? { kind: 'fits' as const }
        if (verification.kind !== 'fits') return this.dialogue.fail(failureOf(verification))
        this.tlsConnection = tlsConnection(this._socket, tls, inspects)
        this.recorder?.event(tlsEvent(this.tlsConnection))
        secured?.(this.tlsConnection)
      }
      if (tls.wrapper) this.dialogue.await('greeting')
      done(error, isSecure)
    })
    // `_socket` is the TLS socket now. TLS 1.3 session tickets arrive after the handshake.
    if (ticket === undefined) return
    // A session with a certificate that is refused must never be resumed, because a resumed session has no certificate.
    const isVerified = tls.verifyPeer !== undefined || tls.options.rejectUnauthorized === true
    this._socket.on('session', (session: Buffer) => {
      if (!isVerified || this.tlsConnection !== undefined) ticket.keep(session)
    })
  }

  override _onData(chunk: Buffer): void {
    const socket = this._socket
    this.dialogue.receive(chunk, () => this._socket === socket)
  }

  #handshakeReply(lines: readonly string[]): void {
    if (this.dialogue.stage === 'greeting') this.#options.greeted?.()
    if (this.dialogue.stage === 'ehlo') this.ehloName = /^2\d\d[ -](\S*)/.exec(lines[0] ?? '')?.[1] ?? ''
    this._responseActions.shift()?.call(this, lines.join('\n'))
  }

  /** Replaces a 2xx reply with a protocol error when it arrived before this process had sent all bytes. */
  #whenAllSent(reply: ServerReply | undefined): ServerReply | undefined {
    if (!isKind(2, reply) || !this.#isSystemSocket || this._socket.writableLength === 0) return reply
    this.dialogue.protocolError(reply?.raw ?? '')
    return undefined
  }

  /** The TLS socket holds the cause of a failed handshake; nodemailer may report only that the connection closed. */
  #tlsError(error: Error): string {
    return tlsErrorText(this._socket.errored ?? error)
  }

  #note(event: string | null): void {
    if (event !== null) this.recorder?.event(event)
  }

  /** Called for every error of nodemailer. */
  #failed(error: Error & { readonly response?: string | undefined }): void {
    const { stage, lastReply } = this.dialogue
    const { errored } = this._socket
    if (errored !== null && this.upgrading !== true && !this.dialogue.over) this.#note(systemErrorText(errored))
    if (this.upgrading === true)
      this.dialogue.fail({ kind: isCertificateRefused(this._socket) ? 'certificate' : 'tls', why: this.#tlsError(error) })
    else if (error.response !== undefined && lastReply !== undefined) this.dialogue.fail({ kind: 'refused', stage, reply: lastReply })
    else this.dialogue.fail({ kind: 'lost', stage })
  }
}
