/** One SMTP session over an open connection: from the greeting to the login, then mail transactions, then QUIT. */
import type { Socket } from 'node:net'
import type { TlsFacts } from '../../mail/tls-facts.ts'
import { loginRefusal } from '../../mail/login-refusal.ts'
import { statusOf } from '../../mail/smtp-reply.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { Duration } from '../../system/clock.ts'
import { chooseMechanism, type Credentials } from '../tls/sasl-credentials.ts'
import type { TlsConnection } from '../tls/tls-connection.ts'
import { tlsFacts } from '../tls/tls-outcome.ts'
import { needsAnotherToken } from '../sasl-challenge.ts'
import type { Peer, SessionFailure, Transcript } from '../transcript.ts'
import { ClientConnection } from './client-connection.ts'
import { isSuspicious, transact, type Mail } from './mail-transaction.ts'
import type { SessionRecorder } from '../../sessions/session-recorder.ts'
import { failureEvent } from './session-events.ts'
import type { SessionOptions } from './session-options.ts'

/** A session that could not be opened. */
export interface FailedSession {
  readonly failure: SessionFailure
  readonly tls: TlsFacts
  /** The TLS connection of a session that failed after its handshake. */
  readonly tlsConnection?: TlsConnection | undefined
  readonly oauth?: string | undefined
}

export class SmtpSession {
  readonly peer: Peer
  readonly tls: TlsFacts
  /** The TLS connection; absent without TLS. */
  readonly tlsConnection: TlsConnection | undefined
  /** Name of the `[oauth.NAME]` table whose access token the server gets; undefined for another login, or none. */
  readonly oauth: string | undefined
  /** Time when the connection began, on the monotonic clock. */
  readonly openedAt: Duration
  /** Undefined where the system does not tell it. */
  readonly localAddress: string | undefined
  readonly #connection: ClientConnection
  #uses = 0
  #inStep = true

  private constructor(connection: ClientConnection, options: SessionOptions, localAddress: string | undefined) {
    this.#connection = connection
    this.peer = options.peer
    this.tlsConnection = connection.tlsConnection
    this.tls = tlsFacts({ terms: options.tls, connection: connection.tlsConnection })
    this.oauth = tableOf(connection, options)
    this.openedAt = options.openedAt
    this.localAddress = localAddress
    connection.whenClosed(() => this.recorder?.end())
  }

  /** Opens a session up to the end of AUTH. On failure, closes the connection and resolves with the failure. */
  static async open(socket: Socket, options: SessionOptions, signal: AbortSignal): Promise<SmtpSession | FailedSession> {
    const connection = new ClientConnection(socket, options)
    const failure = await abortable(connection, signal, async () => (await connection.handshake()) ?? prepareForMail(connection, options))
    if (failure === undefined) return new SmtpSession(connection, options, socket.localAddress)
    if (connection.failure === undefined) note(connection, failure)
    connection.drop()
    const tls = tlsFacts({ terms: options.tls, connection: connection.tlsConnection, failure })
    return { failure, tls, tlsConnection: connection.tlsConnection, oauth: tableOf(connection, options) }
  }

  transact(mail: Omit<Mail, 'reset'>, endBy: Duration, signal: AbortSignal): Promise<Transcript> {
    const connection = this.#connection
    connection.dialogue.endBy(endBy)
    this.#uses++
    return abortable(connection, signal, async () => {
      const transcript = await transact(connection, { ...mail, reset: this.#uses > 1 })
      if (transcript.failure !== undefined && connection.failure === undefined) note(connection, transcript.failure)
      this.#inStep &&= ![transcript.mail, transcript.data, ...transcript.rcpt, ...transcript.end].some(isSuspicious)
      return transcript
    })
  }

  /** Number of mail transactions, including failed ones. */
  get uses(): number {
    return this.#uses
  }

  /** True when the session uses TLS. */
  get secure(): boolean {
    return this.#connection.secure
  }

  /** True when the server offers AUTH. If there were credentials, they were used. */
  get authenticated(): boolean {
    return this.#connection.extensions.has('AUTH')
  }

  /** True when the session may be used for another mail transaction. */
  get usable(): boolean {
    return !this.#connection.dialogue.over && this.#inStep
  }

  /** Records the session; null where nothing is recorded. */
  get recorder(): SessionRecorder | null {
    return this.#connection.recorder
  }

  set recorder(recorder: SessionRecorder | null) {
    this.#connection.recorder = recorder
  }

  quit(): void {
    this.#connection.sendQuit()
  }
}

function note({ recorder }: ClientConnection, failure: SessionFailure): void {
  const event = failureEvent(failure)
  if (event !== null) recorder?.event(event)
}

/** The table of the login that a server asks for. */
const tableOf = ({ extensions }: ClientConnection, { credentials }: SessionOptions): string | undefined =>
  extensions.has('AUTH') ? credentials?.oauth : undefined

async function abortable<T>(connection: ClientConnection, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
  const abort = () => connection.dialogue.fail({ kind: 'aborted', stage: connection.dialogue.stage })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await action()
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

const NO_PASSWORD = 'the login has no password: write one, or name the [oauth.NAME] table of its access token in smtp_sasl_oauth'

/** Checks what mail requires of the session (TLS, no loop), then logs in. Resolves with the failure, if any. */
async function prepareForMail(
  connection: ClientConnection,
  { tls, credentials, detectLoop, helo }: SessionOptions,
): Promise<SessionFailure | undefined> {
  if (detectLoop && connection.ehloName.toLowerCase() === helo.toLowerCase()) return { kind: 'loop' }
  if (tls.required && !connection.secure) return { kind: 'tls-not-offered' }
  // When the EHLO reply lacks AUTH, mail is sent without a login (Postfix smtp_sasl_proto.c).
  if (credentials === undefined || !connection.extensions.has('AUTH')) return undefined
  if (credentials.password === '' && credentials.tokens === undefined) return { kind: 'auth-unavailable', why: NO_PASSWORD }
  const mechanism = chooseMechanism(connection.mechanisms, credentials, connection.secure)
  if (mechanism === undefined) return { kind: 'auth-unavailable', why: 'no mechanism available' }
  return logIn(connection, credentials, mechanism)
}

/** True when the server may accept another access token: it may have revoked the one that it refuses. */
function wantsAnotherToken(failure: SessionFailure): boolean {
  if (failure.kind !== 'refused') return false
  const { stage, reply, challenge } = failure
  const refusal = loginRefusal({ status: statusOf(reply), stage, reply: reply.raw })
  return refusal?.renews ?? (reply.code >= 500 || needsAnotherToken(challenge))
}

/** Logs in. A server that refuses an access token is given another one, if there is one. */
async function logIn(
  connection: ClientConnection,
  { user, password, tokens }: Credentials,
  mechanism: string,
): Promise<SessionFailure | undefined> {
  if (tokens === undefined) return connection.authenticate(user, password, mechanism)
  try {
    const first = await tokens.get(user)
    const failure = await connection.authenticate(user, first, mechanism)
    if (failure === undefined || !wantsAnotherToken(failure)) return failure
    const second = await tokens.replacement(user, first)
    return second === null ? failure : await connection.authenticate(user, second, mechanism)
  } catch (error) {
    return { kind: 'auth-unavailable', why: `no access token: ${errorMessage(error)}` }
  }
}
