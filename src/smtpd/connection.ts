/**
 * One connection of the SMTP server: smtp-server's connection with our reader, our session and our clock. The library
 * keeps the socket, upgrades it to TLS and leads the AUTH dialogue; everything that is said is ours.
 */
/* oxlint-disable no-underscore-dangle -- they are the library's own names */
import type { Socket } from 'node:net'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import type { SMTPServer } from 'smtp-server'
import { SECOND, sleep, type Clock, type Duration, type Timer } from '../mail/clock.ts'
import { formatReply, harmless, type SmtpReply } from '../mail/reply.ts'
import type { Acceptor } from '../queue/accept.ts'
import type { Receipt } from '../queue/receipt.ts'
import type { ClientLimits } from './client-limits.ts'
import { DataStream } from './data-stream.ts'
import { Deadline } from './deadline.ts'
import { peerAddress, type Networks } from './networks.ts'
import * as say from './replies.ts'
import { Session, type Answer, type Desk } from './session.ts'
import { WireReader, type CommandLine, type WireHandler } from './wire-reader.ts'

/** How long a client may take to close its side after we closed ours. */
const LINGER: Duration = 5 * SECOND

export interface ConnectionSettings {
  readonly myhostname: string
  readonly smtpd_banner: string
  readonly smtpd_timeout: Duration
  readonly smtpd_min_data_rate: number
  readonly smtpd_forbid_bare_newline: 'normalize' | 'reject'
  readonly smtpd_forbid_unauth_pipelining: boolean
}

/** What all connections of a server share. */
export interface House {
  readonly settings: ConnectionSettings
  readonly clock: Clock
  readonly acceptor: Acceptor
  readonly desk: Desk
  readonly limits: ClientLimits
  /** Clients whose bare LFs are line ends like any other. */
  readonly bareNewlineExclusions: Networks
  /** Told when a connection has ended. */
  readonly gone: (connection: Connection) => void
}

export class Connection extends SMTPConnection implements WireHandler {
  readonly #house: House
  readonly #session: Session
  readonly #address: string
  readonly #lenient: boolean
  #deadline: Deadline
  #linger: Timer | undefined
  #receipt: Receipt | null = null
  /** Replies that were not written yet: what a client sends in one go is answered in one go. */
  #out = ''
  /** We owe the client an answer. */
  #working = false
  #talkedTooSoon = false
  #draining = false
  #lastCommand = 'CONNECT'
  #ended = false

  constructor(server: SMTPServer, socket: Socket, house: House, id: string) {
    super(server, socket, { id })
    this.#house = house
    this.#address = peerAddress(socket.remoteAddress ?? '')
    this.#session = new Session(house.desk, { name: 'unknown', address: this.#address })
    this.#lenient = house.bareNewlineExclusions.has(this.#address)
    const { smtpd_timeout: timeout, smtpd_min_data_rate: bytesPerSecond } = house.settings
    this.#deadline = new Deadline({ clock: house.clock, timeout, bytesPerSecond, expired: () => this.#timedOut() })
  }

  /** Counts the client in and greets it, unless it talks first: a moment is enough to see that. */
  override init(): void {
    const { client } = this.#session
    this.#house.desk.events.emit({ kind: 'connected', client })
    const refusal = this.#house.limits.enter(this.#address, this.#house.desk.access.trusts(this.#address))
    this._setListeners(() => {
      if (refusal !== undefined) return this.#refuseClient(refusal)
      // What the client sent before is read within one turn of the event loop, which a timer of 0 ms lets pass.
      this.#house.clock.after(0, () => this.#greet())
    })
  }

  /** Ends the connection as soon as no message is on its way in. */
  drain(): void {
    this.#draining = true
    if (this.#receipt === null && !this.#working) this.#goodbye()
  }

  /** Ends the connection at once. */
  cut(): void {
    this._socket.destroy()
  }

  // what the reader asks for

  line(line: CommandLine): Promise<void> | undefined {
    if (!this._ready || this._closing) return undefined
    const { myhostname, smtpd_forbid_bare_newline: bareNewlines, smtpd_forbid_unauth_pipelining: inTurn } = this.#house.settings
    if (this.#draining) return this.#goodbye()
    if (line.bareNewline && bareNewlines === 'reject' && !this.#lenient) {
      return this.#showOut(say.bareNewline(myhostname), 'bare <LF>')
    }
    if (line.tooLong) return this.#answer(this.#session.tooLong())
    this.#lastCommand = harmless(line.text.trim().split(/\s/, 1)[0] ?? '')
      .slice(0, 32)
      .toUpperCase()
    if (inTurn && this.#hasMore && this.#session.mustWait(line.text)) {
      return this.#showOut(say.OUT_OF_STEP, 'improper command pipelining')
    }
    const answer = this.#session.command(line.text)
    return answer instanceof Promise ? this.#whileWorking(answer.then((late) => this.#answer(late))) : this.#answer(answer)
  }

  content(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    const stored = this.#receipt?.write(pieces)
    return stored && this.#whileWorking(stored)
  }

  contentEnd(content: DataStream): Promise<void> | undefined {
    const receipt = this.#receipt
    this.#receipt = null
    if (receipt === null) return undefined
    const { myhostname, smtpd_forbid_bare_newline: bareNewlines } = this.#house.settings
    if (content.nul) receipt.refuse(say.HAS_NUL)
    if (content.bareNewline && bareNewlines === 'reject' && !this.#lenient) receipt.refuse(say.bareNewline(myhostname))
    const concluded = receipt.end().then((acceptance) => this.#answer(this.#session.concluded(acceptance, receipt.queueId)))
    return this.#whileWorking(concluded)
  }

  endlessLine(): void {
    this.#showOut(say.shownOut('4.7.0', this.#house.settings.myhostname, 'Error: line too long'), 'endless line')
  }

  arrived(bytes: number): void {
    if (!this._ready) this.#talkedTooSoon = true
    this.#deadline.extend(bytes)
  }

  idle(): Promise<void> | undefined {
    this.#flush()
    if (!this._socket.writableNeedDrain || this._socket.destroyed) return undefined
    // A client that sends without ever reading our replies waits with us.
    return new Promise((resolve) => this._whenWritable(resolve))
  }

  failed(error: unknown): void {
    const text = `smtpd: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
    this.#house.desk.events.emit({ kind: 'note', level: 'panic', text })
    this.#showOut(say.shownOut('4.3.0', this.#house.settings.myhostname, 'Error: internal trouble'), 'our own failure')
  }

  // what the library asks for

  /** Called by the library's constructor, and again for the TLS session after STARTTLS. */
  override _createParser(): WireReader {
    return new WireReader(this)
  }

  /** The library's replies (AUTH, TLS) are written like ours. */
  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    const status = this._getEnhancedStatusCode(code, context)
    this.#say({ code, status: status === '' ? undefined : status, text: Array.isArray(data) ? data.join(' ') : (data ?? '') })
    this.#flush()
    if (code === 421) this.close()
  }

  /** The deadline is ours. */
  override _armTimeout(): void {}

  override close(): void {
    if (this._closing || this._closed) return
    this._closing = true
    this.#flush()
    if (this._socket.writable) this._socket.end()
    if (this._parser !== false) {
      this._socket.unpipe(this._parser)
      this._parser.isClosed = true
    }
    // Nothing more is read, but the end of the connection must be seen.
    if (!this._upgrading && !this._socket.destroyed) this._socket.resume()
    this.#deadline.cancel()
    this.#linger = this.#house.clock.after(LINGER, () => this._socket.destroy())
  }

  override _onError(error: Error & { code?: string | undefined }): void {
    if (this._upgrading) this.#trouble(`SSL_accept error: ${harmless(error.message)}`)
    this._socket.destroy()
  }

  override _onClose(): void {
    if (!this.#ended) this.#end()
    super._onClose()
  }

  #end(): void {
    this.#ended = true
    this.#deadline.cancel()
    this.#linger?.cancel()
    const { client, conduct } = this.#session
    if (!this._closing) this.#trouble(`lost connection after ${this.#lastCommand}`)
    const receipt = this.#receipt
    this.#receipt = null
    if (receipt !== null) void receipt.abandon()
    this.#house.limits.leave(this.#address)
    this.#house.desk.events.emit({ kind: 'disconnected', client, commands: conduct.commands })
    this.#house.gone(this)
  }

  get #hasMore(): boolean {
    return (this._parser instanceof WireReader && this._parser.hasMore) || this._socket.readableLength > 0
  }

  #greet(): void {
    if (this._closing || this._closed) return
    if (this.#talkedTooSoon || this.#hasMore) return this.#showOut(say.OUT_OF_STEP, 'improper command pipelining')
    this._ready = true
    this.#say(say.reply(220, undefined, this.#house.settings.smtpd_banner))
    this.#flush()
    this.#deadline.restart()
  }

  /** Says the answer, late when the client made many errors, and does what comes with it. */
  #answer(answer: Answer): Promise<void> | undefined {
    const { delay } = this.#session.conduct
    if (delay === 0) return this.#act(answer)
    this.#flush()
    return this.#whileWorking(sleep(this.#house.clock, delay).then(() => this.#act(answer)))
  }

  #act(answer: Answer): undefined {
    this.#say(answer.reply, answer.keywords)
    this.#deadline.restart()
    if (answer.next === 'close' || answer.reply.code === 421) this.close()
    else if (answer.next === 'content') this.#startContent()
    else if (this.#draining) this.#goodbye()
    else if (this.#session.conduct.isExhausted) {
      this.#showOut(say.shownOut('4.7.0', this.#house.settings.myhostname, 'Error: too many errors'), 'too many errors')
    }
  }

  #startContent(): void {
    if (!(this._parser instanceof WireReader)) return
    this.#receipt = this.#house.acceptor.open(this.#session.submission())
    this._parser.startContent(new DataStream({ lenient: this.#lenient }))
  }

  /** It is our turn until the promise settles. */
  async #whileWorking(work: Promise<void> | undefined): Promise<void> {
    this.#flush()
    this.#working = true
    this.#deadline.pause()
    await work
    this.#working = false
    this.#deadline.restart()
  }

  #timedOut(): void {
    const { myhostname } = this.#house.settings
    this.#showOut(say.shownOut('4.4.2', myhostname, 'Error: timeout exceeded'), 'timeout')
  }

  #refuseClient(reply: SmtpReply): void {
    this.#say(reply)
    this.#trouble(formatReply(reply))
    this.close()
  }

  #goodbye(): undefined {
    this.#say(say.shownOut('4.3.2', this.#house.settings.myhostname, 'Service shutting down'))
    this.close()
  }

  #showOut(reply: SmtpReply, why: string): undefined {
    this.#trouble(`${why} after ${this.#lastCommand}`)
    this.#say(reply)
    this.close()
  }

  #trouble(what: string): void {
    this.#house.desk.events.emit({ kind: 'client-trouble', client: this.#session.client, what })
  }

  #say(reply: SmtpReply, more: readonly string[] = []): void {
    const lines = [formatReply(reply), ...more.map((line) => `${reply.code} ${line}`)]
    lines.forEach((line, i) => {
      this.#out += i < lines.length - 1 ? `${line.slice(0, 3)}-${line.slice(4)}\r\n` : `${line}\r\n`
    })
  }

  #flush(): void {
    if (this.#out === '' || this._upgrading) return
    if (this._socket.writable) this._socket.write(this.#out)
    this.#out = ''
  }
}
