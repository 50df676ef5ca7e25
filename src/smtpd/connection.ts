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
import type { Chunk } from './chunk-sequence.ts'
import { ClientSocket } from './client-socket.ts'
import { ChunkReader, DataStream } from './data-stream.ts'
import { Deadline } from './command-deadline.ts'
import type { Networks } from '../config/values/networks.ts'
import { UNKNOWN } from './peer-name.ts'
import * as replies from './replies.ts'
import type { Response } from './commands.ts'
import type { ListenerRules, Login } from './client-identity.ts'
import { Session, type SessionContext } from './session.ts'
import type { CommandLine } from './line-reader.ts'

/** Code with which content that was not received to its end is counted. No reply is sent. */
const LOST = 421

/** Time limit of a TLS handshake. It is short, because no user types during a handshake. */
const HANDSHAKE_TIMEOUT: Duration = 10 * SECOND

export type ConnectionSettings = Pick<
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
  /** Looks up the name of a client; absent with smtpd_peername_lookup = no. */
  readonly nameOf?: ((address: string) => Promise<string>) | undefined
  /** Networks whose clients may end lines with a bare LF (smtpd_forbid_bare_newline_exclusions). */
  readonly bareNewlineExclusions: Networks
  /** Returns true if a new connection is within smtpd_process_limit. Closes an idle connection to make room if necessary. */
  readonly hasRoom: () => boolean
  /** Called once, when a connection has ended. */
  readonly ended: (connection: Connection) => void
}

export interface ConnectionOptions {
  readonly context: ServerContext
  readonly rules: ListenerRules
  readonly id: string
  /** Address of the client, which a proxy may have given. */
  readonly address: string
}

export class Connection extends ClientSocket {
  readonly #context: ServerContext
  readonly #session: Session
  readonly #deadline: Deadline
  readonly #isWrapped: boolean
  #receiver: ContentTaker | null = null
  /** Reads the content that #receiver takes. */
  #content: DataStream | null = null
  /** The chunk that is being read. */
  #chunk: Chunk | null = null
  /** True when LF.LF ends a message of this client too. */
  #lenient: boolean
  #announced = false
  #greeted = false
  #spokeBeforeGreeting = false
  /** True while the client waits for a reply. */
  #working = false
  #draining = false

  constructor(server: SMTPServer, socket: Socket, { context, rules, id, address }: ConnectionOptions) {
    super(server, socket, { clock: context.clock, id, address })
    this.#context = context
    this.#session = new Session(context.sessions, { name: UNKNOWN, address: this.address }, rules)
    this.#isWrapped = rules.tls === 'wrapper'
    this.#lenient = context.bareNewlineExclusions.has(this.address)
    const { smtpd_timeout: timeout, smtpd_min_data_rate: bytesPerSecond } = context.settings
    this.#deadline = new Deadline({ clock: context.clock, timeout, bytesPerSecond, expired: () => this.#timedOut() })
  }

  /** Counts the connection and greets the client. Rejects it at a limit, and when the client sends data before the greeting. */
  init(): void {
    const { clock, nameOf, hasRoom } = this.#context
    const refusal = this.#session.peer.enter() ?? (hasRoom() ? undefined : replies.tooManyConnections(this.#myhostname))
    if (nameOf === undefined) this.#announce()
    if (this.#isWrapped) this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.open(this.#isWrapped, () => {
      if (this.#isWrapped) this.#session.secured(this.encryption)
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
    return this.#working || this.#receiver !== null || !this.isOpen ? Infinity : this.#deadline.since
  }

  /** Closes an idle connection before its time limit, to make room for a new connection. */
  closeEarly(): void {
    this.#timedOut()
    this.destroySoon()
  }

  /** Ends the connection with 421, after the message that is being received. */
  drain(): void {
    this.#draining = true
    if (this.#receiver === null && !this.#working) this.#shutDown()
  }

  // called by the line reader

  line(line: CommandLine): Promise<void> | undefined {
    if (!this.#greeted || !this.isOpen) return undefined
    if (this.#draining && this.#receiver === null) return this.#shutDown()
    if (line.bareNewline && this.#strict) return this.#disconnectWith(replies.bareNewline(this.#myhostname), 'bare-newline')
    if (line.tooLong) return this.#tooLong()
    if (this.inAuthExchange) return this.#whileWorking(this.#authenticate(line.text))
    if (line.isBroken) return this.#respond(this.#session.broken())
    if (this.#hasPipelined && this.#session.mustWait(line.text)) {
      return this.#disconnectWith(this.#session.outOfStep(line.text), 'pipelining')
    }
    const answer = this.#session.command(line.text)
    if (answer === 'auth-exchange') return this.#whileWorking(this.#authenticate(line.text))
    if ('chunk' in answer) return this.#startChunk(answer.chunk)
    if (!this.#session.expectsChunks) this.#abandonContent()
    return answer instanceof Promise ? this.#whileWorking(answer.then((late) => this.#respond(late))) : this.#respond(answer)
  }

  content(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    const stored = this.#receiver?.write(pieces)
    return stored && this.#whileWorking(stored)
  }

  contentEnd(): Promise<void> | undefined {
    const chunk = this.#chunk
    this.#chunk = null
    return chunk === null ? this.#conclude() : this.#endChunk(chunk)
  }

  /** Ends the content, and replies when it is on disk. */
  #conclude(): Promise<void> | undefined {
    const [receiver, content] = [this.#receiver, this.#content]
    this.#receiver = null
    this.#content = null
    if (receiver === null || content === null) return undefined
    this.#check(content, receiver)
    const concluded = receiver.end().then((acceptance) => {
      if (acceptance.kind === 'unknown') return this.#hangUp()
      return this.#respond(this.#session.concluded(acceptance, receiver))
    })
    return this.#whileWorking(concluded)
  }

  endlessLine(): void {
    this.#disconnectWith(replies.disconnect('4.7.0', this.#myhostname, 'Error: line too long'), 'endless-line')
  }

  received(bytes: number): void {
    if (!this.#greeted) this.#spokeBeforeGreeting = true
    this.#deadline.extend(bytes)
  }

  failed(error: unknown): void {
    const text = `smtpd: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
    this.#context.sessions.events.emit({ kind: 'note', level: 'panic', text })
    this.#disconnectWith(replies.disconnect('4.3.0', this.#myhostname, 'Error: internal error'), 'internal-error')
  }

  loginRefused(login: Login): void {
    this.#session.loginRefused(login)
  }

  protected tlsFailed(why: string): void {
    this.#session.stats.failed('starttls')
    this.#reportFailure({ what: 'tls-failed', why })
  }

  protected ended(lost: boolean): void {
    this.#deadline.cancel()
    this.#announce()
    const { client, stats } = this.#session
    const { stage } = this.#session
    // A client that leaves after the reply to its message has not lost anything (Postfix smtpd).
    if (lost && stage !== 'END-OF-MESSAGE') this.#reportFailure({ what: 'lost-connection', after: this.#where })
    if (this.#isReading) stats.count(stage === 'BDAT' ? 'bdat' : 'data', LOST)
    this.#abandonContent()
    this.#session.peer.leave()
    this.#context.sessions.events.emit({ kind: 'disconnected', client, commands: stats.commands })
    this.#context.ended(this)
  }

  /** True when the client has sent data before the reply, at a point where pipelining is not allowed. */
  get #hasPipelined(): boolean {
    return this.#context.settings.smtpd_forbid_unauth_pipelining && this.hasMore
  }

  /** True while content is read whose end was not received. */
  get #isReading(): boolean {
    return this.#chunk !== null || (this.#receiver !== null && this.#session.stage === 'DATA')
  }

  /** The last step of the client, with the octets of the content that it has sent, for the log. */
  get #where(): string {
    const { stage } = this.#session
    const hasContent = this.#receiver !== null && (stage === 'DATA' || stage === 'BDAT')
    return hasContent ? `${stage} (${this.#receiver?.octets} bytes)` : stage
  }

  /** True when mail from this client is refused if it contains a bare LF. */
  get #strict(): boolean {
    return this.#context.settings.smtpd_forbid_bare_newline === 'reject' && !this.#lenient
  }

  get #myhostname(): string {
    return this.#context.settings.myhostname
  }

  /** Logs the connection once. When the client's name is looked up, the log line follows the lookup. */
  #announce(): void {
    if (this.#announced) return
    this.#announced = true
    this.#context.sessions.events.emit({ kind: 'connected', client: this.#session.client })
  }

  #greet(name = UNKNOWN): void {
    if (!this.isOpen) return
    this.#session.peer.named(name)
    this.#announce()
    if (this.#spokeBeforeGreeting || this.hasMore) this.#disconnectWith(replies.NOT_SYNCHRONIZED, 'pipelining')
    else if (this.#draining) this.#shutDown()
    else {
      this.#greeted = true
      this.sendReply(replies.reply(220, undefined, this.#context.settings.smtpd_banner))
      this.flush()
      this.#deadline.restart()
    }
  }

  /** Sends the reply, then takes the action that follows it. A client with many errors gets the reply after smtpd_error_sleep_time. */
  #respond(response: Response): Promise<void> | undefined {
    const { delay } = this.#session.stats
    if (delay === 0) return this.#act(response)
    // The time limit that the action sets is the last.
    return this.#whileWorking(sleep(this.#context.clock, delay)).then(() => this.#act(response))
  }

  #act({ reply, keywords, next }: Response): undefined {
    if (!this.isOpen) return
    // Content received while the reply was delayed was also sent without waiting for the reply.
    if (next === 'content' && this.#hasPipelined) return this.#disconnectWith(this.#session.outOfStep('DATA'), 'pipelining')
    if (next === 'greet') return this.#greetAgain(reply)
    this.sendReply(reply, keywords)
    this.#deadline.restart()
    if (next === 'quit') this.closeAfterQuit()
    else if (next === 'close' || reply.code === 421 || reply.code === 521) this.close()
    else if (next === 'content') this.#startMessage()
    else if (next === 'starttls') this.#startTls()
    else if (this.#draining && this.#receiver === null) this.#shutDown()
    else if (this.#session.stats.isExhausted) {
      this.#disconnectWith(replies.disconnect('4.7.0', this.#myhostname, 'Error: too many errors'), 'too-many-errors')
    }
  }

  /** Begins the session of the client that XCLIENT names, as after a connect (Postfix xclient_cmd). */
  #greetAgain(greeting: SmtpReply): undefined {
    const { peer } = this.#session
    this.becomes(peer.client.address)
    this.#lenient = this.#context.bareNewlineExclusions.has(this.address)
    if (this.#hasPipelined) return this.#disconnectWith(replies.NOT_SYNCHRONIZED, 'pipelining')
    const refusal = peer.enter()
    if (refusal !== undefined) return this.#rejectConnection(refusal)
    if (this.#draining) return this.#shutDown()
    this.sendReply(greeting)
    this.#deadline.restart()
  }

  #startMessage(): void {
    const content = new DataStream({ lenient: this.#lenient })
    this.#openMessage(content)
    this.startContent(content)
  }

  #openMessage(content: DataStream): void {
    this.#receiver = this.#context.acceptor.open(this.#session.submission())
    this.#content = content
  }

  /** Reads the octets after BDAT. Those of a refused chunk are skipped. */
  #startChunk(chunk: Chunk): Promise<void> | undefined {
    if (chunk.refusal !== undefined) this.#abandonContent()
    else if (this.#receiver === null) this.#openMessage(new DataStream({ chunked: true }))
    this.#chunk = chunk
    if (chunk.octets === 0) return this.contentEnd()
    this.startContent(new ChunkReader(chunk.octets, this.#content))
    return undefined
  }

  #endChunk(chunk: Chunk): Promise<void> | undefined {
    const [receiver, content] = [this.#receiver, this.#content]
    if (receiver === null || content === null) return this.#respond(this.#session.chunkEnded(chunk))
    this.#check(content, receiver)
    if (chunk.last) {
      const stored = receiver.write(content.finish())
      return stored === undefined ? this.#conclude() : stored.then(() => this.#conclude())
    }
    const { staging } = receiver
    if (staging === null) return this.#respondToChunk(chunk, receiver)
    return this.#whileWorking(staging.then(() => this.#respondToChunk(chunk, receiver)))
  }

  #respondToChunk(chunk: Chunk, { refusal }: ContentTaker): Promise<void> | undefined {
    if (refusal !== undefined) this.#abandonContent()
    return this.#respond(this.#session.chunkEnded(chunk, refusal))
  }

  #check(content: DataStream, receiver: ContentTaker): void {
    if (content.nul) receiver.refuse(replies.HAS_NUL)
    if (content.bareNewline && this.#strict) receiver.refuse(replies.bareNewline(this.#myhostname))
  }

  /** Discards content that was not concluded: the client has disconnected, or has ended the transaction. */
  #abandonContent(): void {
    const receiver = this.#receiver
    this.#receiver = null
    this.#content = null
    if (receiver !== null) void receiver.abandon()
  }

  #startTls(): void {
    this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.startTls(() => {
      this.#session.secured(this.encryption)
      this.#deadline.restart()
    })
  }

  /** Handles one line of the AUTH exchange, which smtp-server performs. */
  async #authenticate(line: string): Promise<void> {
    const { nextDelay: delay } = this.#session.stats
    if (delay > 0) await sleep(this.#context.clock, delay)
    await this.continueAuth(line)
    if (this.inAuthExchange || !this.isOpen) return
    const refusal = this.#session.authenticated(this.authenticatedUser as Login | false | undefined)
    if (refusal !== undefined) this.#disconnectWith(refusal, 'too-many-failed-logins')
  }

  #tooLong(): Promise<void> | undefined {
    this.endAuthExchange()
    return this.#respond(this.#session.tooLong())
  }

  /** Suspends the client's time limit until the promise settles. */
  async #whileWorking(work: Promise<void> | undefined): Promise<void> {
    this.flush()
    this.#working = true
    this.#deadline.pause()
    await work
    this.#working = false
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
    this.#context.sessions.events.emit({ kind: 'client-failure', client: this.#session.client, failure })
  }
}
