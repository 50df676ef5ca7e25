/**
 * One connection of the SMTP server: greets the client, passes command lines to the session and sends its replies,
 * passes content to the acceptor, and enforces the time limits.
 */
import type { Socket } from 'node:net'
import type { SMTPServer } from 'smtp-server'
import type { Config } from '../config/options.ts'
import { SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { ContentTaker, MessageTaker } from '../queue/intake/acceptor.ts'
import type { ClientFailure, ConnectionEnd } from '../telemetry/kinds/client-failures.ts'
import type { Chunk } from './dialogue/chunk-sequence.ts'
import { ClientSocket } from './client-socket.ts'
import { Deadline } from './command-deadline.ts'
import type { OpenSession } from './open-connections.ts'
import { IncomingContent, type ContentEnd, type NewlineRules } from './incoming-content.ts'
import type { SessionRecorder } from '../sessions/session-recorder.ts'
import type { SessionRecordings } from '../sessions/session-recordings.ts'
import { UNKNOWN } from './dialogue/peer-name.ts'
import * as replies from './dialogue/replies.ts'
import type { Response } from './dialogue/commands.ts'
import type { SessionRules, Login } from './dialogue/client-identity.ts'
import { Session } from './dialogue/session.ts'
import type { SessionContext } from './dialogue/session-context.ts'
import type { CommandLine } from './stream/line-reader.ts'

/** Code with which content that was not received to its end is counted. No reply is sent. */
const LOST = 421

/** Time limit of a TLS handshake. It is short, because no user types during a handshake. */
const HANDSHAKE_TIMEOUT: Duration = 10 * SECOND

type ConnectionSettings = Pick<
  Config,
  | 'myhostname'
  | 'soft_bounce'
  | 'smtpd_banner'
  | 'smtpd_timeout'
  | 'smtpd_min_data_rate'
  | 'smtpd_forbid_bare_newline'
  | 'smtpd_forbid_unauth_pipelining'
  | 'smtpd_upstream_proxy_timeout'
>

/** Settings and parts that all connections of a server share. */
export interface ServerContext {
  readonly settings: ConnectionSettings
  readonly clock: Clock
  readonly acceptor: MessageTaker
  readonly sessions: SessionContext
  /** Records sessions; absent where none are. */
  readonly recordings?: Pick<SessionRecordings, 'begin' | 'wants'> | undefined
  /** Looks up the name of a client; absent with smtpd_peername_lookup = no. */
  readonly nameOf?: ((address: string) => Promise<string>) | undefined
  /** Returns true if a new connection is within smtpd_process_limit. Closes an idle connection to make room if necessary. */
  readonly hasRoom: () => boolean
  /** Called once, when a connection has ended. */
  readonly ended: (connection: Connection) => void
}

export interface ConnectionOptions {
  readonly context: ServerContext
  readonly rules: SessionRules
  readonly id: string
  /** Address of the client, which a proxy may have given. */
  readonly address: string
  /** Records the session; null where nothing is recorded. */
  readonly recorder: SessionRecorder | null
}

type Phase =
  /** Before the greeting. `isLogged` is false while the name of the client is looked up. */
  | { readonly kind: 'opening'; readonly isLogged: boolean; readonly hasSpoken: boolean }
  /** A command or content of the client is awaited. */
  | { readonly kind: 'waiting' }
  /** The client waits for a reply. */
  | { readonly kind: 'working' }
  /** The connection ends after the reply for which the client waits, or after the message that is being received. */
  | { readonly kind: 'leaving' }

const WAITING: Phase = { kind: 'waiting' }
const WORKING: Phase = { kind: 'working' }
const LEAVING: Phase = { kind: 'leaving' }

export class Connection extends ClientSocket {
  readonly #context: ServerContext
  readonly #dialogue: Session
  readonly #deadline: Deadline
  readonly #isWrapped: boolean
  readonly #content = new IncomingContent()
  #phase: Phase = { kind: 'opening', isLogged: false, hasSpoken: false }

  constructor(server: SMTPServer, socket: Socket, { context, rules, id, address, recorder }: ConnectionOptions) {
    super(server, socket, { clock: context.clock, id, address, recorder })
    this.#context = context
    this.#dialogue = new Session(context.sessions, { name: UNKNOWN, address: this.address }, rules)
    this.#isWrapped = rules.tls === 'wrapper'
    const { smtpd_timeout: timeout, smtpd_min_data_rate: bytesPerSecond } = context.settings
    this.#deadline = new Deadline({ clock: context.clock, timeout, bytesPerSecond, expired: () => this.#timedOut() })
  }

  /** Counts the connection and greets the client. Rejects it at a limit, and when the client sends data before the greeting. */
  init(): void {
    const { clock, nameOf, hasRoom } = this.#context
    const refusal = this.#dialogue.peer.enter() ?? (hasRoom() ? undefined : replies.tooManyConnections(this.#myhostname))
    if (nameOf === undefined) this.#announce()
    if (this.#isWrapped) this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.open(this.#isWrapped, () => {
      if (this.#isWrapped) this.#secured()
      if (refusal !== undefined) this.#rejectConnection(refusal)
      // A timer of 0 ms lets one turn of the event loop pass. In that turn, all data that the client has sent early is read.
      else if (nameOf === undefined) clock.after(0, () => this.#greet())
      else
        nameOf(this.address).then(
          (name) => this.#greet(name),
          (error: unknown) => this.failed(error),
        )
    })
  }

  override close(): void {
    this.#deadline.cancel()
    super.close()
  }

  /** With soft_bounce every 5xx reply becomes 4xx. */
  protected override sendReply(reply: SmtpReply, keywords?: readonly string[]): void {
    super.sendReply(this.#context.settings.soft_bounce ? replies.softened(reply) : reply, keywords)
  }

  /** Time since which the server has waited for a command, on the monotonic clock. Infinity while no command is awaited. */
  get idleSince(): Duration {
    return this.#phase.kind === 'working' || this.#content.isOpen || !this.isOpen ? Infinity : this.#deadline.since
  }

  get session(): OpenSession {
    const { client, stage, isInTransaction } = this.#dialogue
    return { client: client.address, stage, isInTransaction, isAwaitingReply: this.#phase.kind === 'working' }
  }

  /** Closes an idle connection before its time limit, to make room for a new connection. */
  closeEarly(): void {
    this.#timedOut()
    this.destroySoon()
  }

  /** Ends the connection with 421, after the message that is being received. */
  drain(): void {
    const { kind } = this.#phase
    if (kind !== 'opening') this.#phase = LEAVING
    if (kind !== 'working' && !this.#content.isOpen) this.#shutDown()
  }

  // called by the line reader

  line(line: CommandLine): Promise<void> | undefined {
    if (this.#phase.kind === 'opening' || !this.isOpen) return undefined
    this.recorder?.client(line.text, this.inAuthExchange)
    if (this.#mustLeave) return this.#shutDown()
    if (line.bareNewline && this.#newlines.refusal !== undefined)
      return this.#disconnectWith(replies.bareNewline(this.#myhostname), 'bare-newline')
    if (line.tooLong) return this.#tooLong()
    if (this.inAuthExchange) return this.#whileWorking(this.#authenticate(line.text))
    if (line.isBroken) return this.#respond(this.#dialogue.broken())
    if (this.#hasPipelined && this.#dialogue.mustWait(line.text)) {
      return this.#disconnectWith(this.#dialogue.outOfStep(line.text), 'pipelining')
    }
    const answer = this.#dialogue.command(line.text)
    if (answer === 'auth-exchange') return this.#whileWorking(this.#authenticate(line.text))
    if ('chunk' in answer) return this.#startChunk(answer.chunk)
    if (!this.#dialogue.expectsChunks) this.#content.abandon()
    return answer instanceof Promise ? this.#whileWorking(answer.then((late) => this.#respond(late))) : this.#respond(answer)
  }

  content(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    for (const { length } of pieces) this.recorder?.content(length)
    const stored = this.#content.write(pieces)
    return stored && this.#whileWorking(stored)
  }

  contentEnd(): Promise<void> | undefined {
    const end = this.#content.ended()
    return end instanceof Promise ? this.#whileWorking(end.then((late) => this.#answer(late))) : this.#answer(end)
  }

  /** Replies to a chunk, or to a message that is on disk or refused. */
  #answer(end: ContentEnd | undefined): Promise<void> | undefined {
    if (end === undefined) return undefined
    if (end.kind === 'chunk') return this.#respond(this.#dialogue.chunkEnded(end.chunk, end.refusal))
    const { acceptance, receiver } = end
    return acceptance.kind === 'unknown' ? this.#hangUp() : this.#respond(this.#dialogue.concluded(acceptance, receiver))
  }

  endlessLine(): void {
    this.#disconnectWith(replies.disconnect('4.7.0', this.#myhostname, 'Error: line too long'), 'endless-line')
  }

  received(bytes: number): void {
    if (this.#phase.kind === 'opening' && !this.#phase.hasSpoken) this.#phase = { ...this.#phase, hasSpoken: true }
    this.#deadline.extend(bytes)
  }

  failed(error: unknown): void {
    const text = `smtpd: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
    this.#context.sessions.events.emit({ kind: 'note', level: 'panic', text })
    this.#disconnectWith(replies.disconnect('4.3.0', this.#myhostname, 'Error: internal error'), 'internal-error')
  }

  loginRefused(login: Login): void {
    this.#dialogue.loginRefused(login)
  }

  protected tlsFailed(why: string): void {
    this.#dialogue.stats.failed('starttls')
    this.recorder?.event(`TLS failed: ${why}`)
    this.#reportFailure({ what: 'tls-failed', why })
  }

  protected ended(lost: boolean): void {
    this.#deadline.cancel()
    this.#announce()
    const { client, stats } = this.#dialogue
    const { stage } = this.#dialogue
    // A client that leaves after the reply to its message has not lost anything (Postfix smtpd).
    if (lost && stage !== 'END-OF-MESSAGE') this.#reportFailure({ what: 'lost-connection', after: this.#where })
    if (this.#content.isReading) stats.count(stage === 'BDAT' ? 'bdat' : 'data', LOST)
    this.#content.abandon()
    this.#dialogue.peer.leave()
    this.#context.sessions.events.emit({ kind: 'disconnected', client, commands: stats.commands })
    this.#context.ended(this)
  }

  /** True when the client has sent data before the reply, at a point where pipelining is not allowed. */
  get #hasPipelined(): boolean {
    return this.#context.settings.smtpd_forbid_unauth_pipelining && this.hasMore
  }

  /** The last step of the client, with the octets of the content that it has sent, for the log. */
  get #where(): string {
    const { stage } = this.#dialogue
    const { octets } = this.#content
    return octets !== undefined && (stage === 'DATA' || stage === 'BDAT') ? `${stage} (${octets} bytes)` : stage
  }

  /** True when the connection ends now, as `drain` has asked. */
  get #mustLeave(): boolean {
    return this.#phase.kind === 'leaving' && !this.#content.isOpen
  }

  get #newlines(): NewlineRules {
    const { isLenient: lenient } = this.#dialogue.peer
    const isStrict = this.#context.settings.smtpd_forbid_bare_newline === 'reject' && !lenient
    return { lenient, refusal: isStrict ? replies.bareNewline(this.#myhostname) : undefined }
  }

  get #myhostname(): string {
    return this.#context.settings.myhostname
  }

  /** Logs the connection once. When the client's name is looked up, the log line follows the lookup. */
  #announce(): void {
    if (this.#phase.kind !== 'opening' || this.#phase.isLogged) return
    this.#phase = { ...this.#phase, isLogged: true }
    this.#context.sessions.events.emit({ kind: 'connected', client: this.#dialogue.client })
  }

  #greet(name = UNKNOWN): void {
    if (!this.isOpen) return
    this.#dialogue.peer.named(name)
    if (name !== UNKNOWN) this.recorder?.named(name)
    this.#announce()
    if ((this.#phase.kind === 'opening' && this.#phase.hasSpoken) || this.hasMore) {
      this.#disconnectWith(replies.NOT_SYNCHRONIZED, 'pipelining')
    } else {
      this.#phase = WAITING
      this.sendReply(replies.reply(220, undefined, this.#context.settings.smtpd_banner))
      this.flush()
      this.#deadline.restart()
    }
  }

  /** Sends the reply, then takes the action that follows it. A client with many errors gets the reply after smtpd_error_sleep_time. */
  #respond(response: Response): Promise<void> | undefined {
    const { delay } = this.#dialogue.stats
    if (delay === 0) return this.#act(response)
    // The time limit that the action sets is the last.
    return this.#whileWorking(sleep(this.#context.clock, delay)).then(() => this.#act(response))
  }

  #act({ reply, keywords, next }: Response): undefined {
    if (!this.isOpen) return
    // Content received while the reply was delayed was also sent without waiting for the reply.
    if (next === 'content' && this.#hasPipelined) return this.#disconnectWith(this.#dialogue.outOfStep('DATA'), 'pipelining')
    if (next === 'greet') return this.#greetAgain(reply)
    this.sendReply(reply, keywords)
    this.#deadline.restart()
    if (next === 'quit') this.closeAfterQuit()
    else if (next === 'close' || reply.code === 421 || reply.code === 521) this.close()
    else if (next === 'content') this.startContent(this.#content.beginData(this.#openMessage(), this.#newlines))
    else if (next === 'starttls') this.#startTls()
    else if (this.#mustLeave) this.#shutDown()
    else if (this.#dialogue.stats.isExhausted) {
      this.#disconnectWith(replies.disconnect('4.7.0', this.#myhostname, 'Error: too many errors'), 'too-many-errors')
    }
  }

  /** Begins the session of the client that XCLIENT names, as after a connect (Postfix xclient_cmd). */
  #greetAgain(greeting: SmtpReply): undefined {
    const { peer } = this.#dialogue
    this.becomes(peer.client.address)
    if (this.#hasPipelined) return this.#disconnectWith(replies.NOT_SYNCHRONIZED, 'pipelining')
    const refusal = peer.enter()
    if (refusal !== undefined) return this.#rejectConnection(refusal)
    if (this.#mustLeave) return this.#shutDown()
    this.sendReply(greeting)
    this.#deadline.restart()
  }

  #openMessage(): ContentTaker {
    return this.#context.acceptor.open(this.#dialogue.submission())
  }

  /** Reads the octets after BDAT. */
  #startChunk(chunk: Chunk): Promise<void> | undefined {
    const reader = this.#content.beginChunk(chunk, () => this.#openMessage(), this.#newlines)
    if (chunk.octets === 0) return this.contentEnd()
    this.startContent(reader)
    return undefined
  }

  #secured(): void {
    const { encryption } = this
    this.#dialogue.secured(encryption)
    if (encryption !== undefined) this.recorder?.event(`${encryption.version} with ${encryption.cipher}`)
  }

  #startTls(): void {
    this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.startTls(() => {
      this.#secured()
      this.#deadline.restart()
    })
  }

  /** Handles one line of the AUTH exchange, which smtp-server performs. */
  async #authenticate(line: string): Promise<void> {
    const { nextDelay: delay } = this.#dialogue.stats
    if (delay > 0) await sleep(this.#context.clock, delay)
    await this.continueAuth(line)
    if (this.inAuthExchange || !this.isOpen) return
    const refusal = this.#dialogue.authenticated(this.authenticatedUser as Login | false | undefined)
    if (refusal !== undefined) this.#disconnectWith(refusal, 'too-many-failed-logins')
  }

  #tooLong(): Promise<void> | undefined {
    this.endAuthExchange()
    return this.#respond(this.#dialogue.tooLong())
  }

  /** Suspends the client's time limit until the promise settles. */
  async #whileWorking(work: Promise<void> | undefined): Promise<void> {
    this.flush()
    if (this.#phase.kind === 'waiting') this.#phase = WORKING
    this.#deadline.pause()
    await work
    if (this.#phase.kind === 'working') this.#phase = WAITING
    this.#deadline.restart()
  }

  #timedOut(): void {
    this.#disconnectWith(replies.disconnect('4.4.2', this.#myhostname, 'Error: timeout exceeded'), 'timeout')
  }

  /** Rejects a connection that exceeds a limit, in place of the greeting. */
  #rejectConnection(reply: SmtpReply): undefined {
    this.#announce()
    this.#reportFailure({ what: 'rejected', reply })
    this.sendReply(reply)
    this.close()
    this.destroySoon()
  }

  /** Ends the connection without a reply: whether the message is queued is unknown, and its client repeats it. */
  #hangUp(): undefined {
    this.#reportFailure({ what: 'no-reply' })
    this.close()
    this.destroySoon()
  }

  #shutDown(): undefined {
    this.sendReply(replies.disconnect('4.3.2', this.#myhostname, 'Service shutting down'))
    this.close()
  }

  #disconnectWith(reply: SmtpReply, what: ConnectionEnd): undefined {
    this.#reportFailure({ what, after: this.#where })
    this.sendReply(reply)
    this.close()
  }

  #reportFailure(failure: ClientFailure): void {
    this.#context.sessions.events.emit({ kind: 'client-failure', client: this.#dialogue.client, failure })
  }
}
