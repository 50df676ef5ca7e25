/**
 * One connection of the SMTP server: greets the client, carries its lines to the session and the answers back, brings
 * contents to the accept path, and keeps the time.
 */
import type { Socket } from 'node:net'
import type { SMTPServer } from 'smtp-server'
import type { Config } from '../config/options.ts'
import { SECOND, sleep, type Clock, type Duration } from '../mail/clock.ts'
import { formatReply, harmless, type SmtpReply } from '../mail/reply.ts'
import type { Acceptor } from '../queue/accept.ts'
import type { Receipt } from '../queue/receipt.ts'
import { DataStream } from './data-stream.ts'
import { Deadline } from './deadline.ts'
import type { Networks } from '../config/networks.ts'
import { UNKNOWN } from './peer-name.ts'
import * as say from './replies.ts'
import type { Said } from './commands.ts'
import { Session, type Desk, type ListenerRules, type Login } from './session.ts'
import { Wire } from './wire.ts'
import type { CommandLine } from './wire-reader.ts'

/** A handshake is a matter of machines. */
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
>

/** What all connections of a server share. */
export interface House {
  readonly settings: ConnectionSettings
  readonly clock: Clock
  readonly acceptor: Acceptor
  readonly desk: Desk
  /** Finds the name of a client; absent when nobody looks. */
  readonly nameOf?: ((address: string) => Promise<string>) | undefined
  /** Clients whose bare LFs are line ends like any other. */
  readonly bareNewlineExclusions: Networks
  /** Is there room for the connection that has just come? Another one may have to make it. */
  readonly hasRoom: () => boolean
  /** Told when a connection has ended. */
  readonly gone: (connection: Connection) => void
}

export class Connection extends Wire {
  readonly #house: House
  readonly #session: Session
  readonly #deadline: Deadline
  readonly #isWrapped: boolean
  /** Bare LFs of this client refuse its mail. */
  readonly #strict: boolean
  readonly #lenient: boolean
  #receipt: Receipt | null = null
  #announced = false
  #greeted = false
  #talkedTooSoon = false
  /** We owe the client an answer. */
  #working = false
  #draining = false
  #lastCommand = 'CONNECT'

  constructor(server: SMTPServer, socket: Socket, house: House, rules: ListenerRules, id: string) {
    super(server, socket, house.clock, id)
    this.#house = house
    this.#session = new Session(house.desk, { name: UNKNOWN, address: this.address }, rules)
    this.#isWrapped = rules.tls === 'wrapper'
    this.#lenient = house.bareNewlineExclusions.has(this.address)
    this.#strict = house.settings.smtpd_forbid_bare_newline === 'reject' && !this.#lenient
    const { smtpd_timeout: timeout, smtpd_min_data_rate: bytesPerSecond } = house.settings
    this.#deadline = new Deadline({ clock: house.clock, timeout, bytesPerSecond, expired: () => this.#timedOut() })
  }

  /** Counts the client in and greets it, unless it talks first: a moment is enough to see that. */
  override init(): void {
    const { desk, clock, nameOf, hasRoom } = this.#house
    const refusal = desk.limits.enter(this.address) ?? (hasRoom() ? undefined : say.full(this.#myhostname))
    if (nameOf === undefined) this.#announce()
    if (this.#isWrapped) this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.open(() => {
      if (this.#isWrapped) this.#session.secured(this.encryption)
      if (refusal !== undefined) this.#turnAway(refusal)
      // What the client sent before is read within one turn of the event loop, which a timer of 0 ms lets pass.
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

  /** With soft_bounce nothing is refused for good. */
  protected override say(reply: SmtpReply, keywords?: readonly string[]): void {
    super.say(this.#house.settings.soft_bounce ? say.softened(reply) : reply, keywords)
  }

  /** Since when we have been waiting for a command, on the stopwatch; Infinity while we are not. */
  get idleSince(): Duration {
    return this.#working || this.#receipt !== null || !this.isOpen ? Infinity : this.#deadline.since
  }

  /** Others want to be served: the time of this one is over early. */
  giveWay(): void {
    this.#timedOut()
    this.cutSoon()
  }

  /** Ends the connection as soon as no message is on its way in. */
  drain(): void {
    this.#draining = true
    if (this.#receipt === null && !this.#working) this.#goodbye()
  }

  // what the reader brings

  line(line: CommandLine): Promise<void> | undefined {
    if (!this.#greeted || !this.isOpen) return undefined
    if (this.#draining) return this.#goodbye()
    if (line.bareNewline && this.#strict) return this.#showOut(say.bareNewline(this.#myhostname), 'bare <LF>')
    if (line.tooLong) return this.#tooLong()
    if (this.inDialogue) return this.#whileWorking(this.#authenticate(line.text))
    this.#lastCommand = harmless(line.text.trim().split(/\s/, 1)[0] ?? '')
      .slice(0, 32)
      .toUpperCase()
    if (this.#cannotWait && this.#session.mustWait(line.text)) {
      return this.#showOut(say.OUT_OF_STEP, 'improper command pipelining')
    }
    const answer = this.#session.command(line.text)
    if (answer === 'dialogue') return this.#whileWorking(this.#authenticate(line.text))
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
    if (content.nul) receipt.refuse(say.HAS_NUL)
    if (content.bareNewline && this.#strict) receipt.refuse(say.bareNewline(this.#myhostname))
    const concluded = receipt.end().then((acceptance) => this.#answer(this.#session.concluded(acceptance, receipt.queueId)))
    return this.#whileWorking(concluded)
  }

  endlessLine(): void {
    this.#showOut(say.shownOut('4.7.0', this.#myhostname, 'Error: line too long'), 'endless line')
  }

  arrived(bytes: number): void {
    if (!this.#greeted) this.#talkedTooSoon = true
    this.#deadline.extend(bytes)
  }

  failed(error: unknown): void {
    const text = `smtpd: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
    this.#house.desk.events.emit({ kind: 'note', level: 'panic', text })
    this.#showOut(say.shownOut('4.3.0', this.#myhostname, 'Error: internal trouble'), 'our own failure')
  }

  protected tlsFailed(why: string): void {
    this.#trouble(`SSL_accept error: ${why}`)
  }

  protected ended(lost: boolean): void {
    this.#deadline.cancel()
    this.#announce()
    const { client, conduct } = this.#session
    if (lost) this.#trouble(`lost connection after ${this.#lastCommand}`)
    const receipt = this.#receipt
    this.#receipt = null
    if (receipt !== null) void receipt.abandon()
    this.#house.desk.limits.leave(this.address)
    this.#house.desk.events.emit({ kind: 'disconnected', client, commands: conduct.commands })
    this.#house.gone(this)
  }

  /** It sent more before we answered. */
  get #cannotWait(): boolean {
    return this.#house.settings.smtpd_forbid_unauth_pipelining && this.hasMore
  }

  get #myhostname(): string {
    return this.#house.settings.myhostname
  }

  /** Says once that the client is here; by its name, when that is looked for. */
  #announce(): void {
    if (this.#announced) return
    this.#announced = true
    this.#house.desk.events.emit({ kind: 'connected', client: this.#session.client })
  }

  #greet(name = UNKNOWN): void {
    if (!this.isOpen) return
    this.#session.client = { name, address: this.address }
    this.#announce()
    if (this.#talkedTooSoon || this.hasMore) this.#showOut(say.OUT_OF_STEP, 'improper command pipelining')
    else if (this.#draining) this.#goodbye()
    else {
      this.#greeted = true
      this.say(say.reply(220, undefined, this.#house.settings.smtpd_banner))
      this.flush()
      this.#deadline.restart()
    }
  }

  /** Says the answer, late when the client made many errors, and does what comes with it. */
  #answer(answer: Said): Promise<void> | undefined {
    const { delay } = this.#session.conduct
    if (delay === 0) return this.#act(answer)
    return this.#whileWorking(sleep(this.#house.clock, delay).then(() => this.#act(answer)))
  }

  #act({ reply, keywords, next }: Said): undefined {
    if (!this.isOpen) return
    // A content that came while the reply was held back has not waited for it either.
    if (next === 'content' && this.#cannotWait) return this.#showOut(say.OUT_OF_STEP, 'improper command pipelining')
    this.say(reply, keywords)
    this.#deadline.restart()
    if (next === 'close' || reply.code === 421) this.close()
    else if (next === 'content') this.#startMessage()
    else if (next === 'starttls') this.#startTls()
    else if (this.#draining) this.#goodbye()
    else if (this.#session.conduct.isExhausted) {
      this.#showOut(say.shownOut('4.7.0', this.#myhostname, 'Error: too many errors'), 'too many errors')
    }
  }

  #startMessage(): void {
    this.#receipt = this.#house.acceptor.open(this.#session.submission())
    this.startContent(new DataStream({ lenient: this.#lenient }))
  }

  #startTls(): void {
    this.#deadline.shorten(HANDSHAKE_TIMEOUT)
    this.startTls(() => {
      this.#session.secured(this.encryption)
      this.#deadline.restart()
    })
  }

  /** One step of the AUTH dialogue, which the library leads. */
  async #authenticate(line: string): Promise<void> {
    const { delay } = this.#session.conduct
    if (delay > 0) await sleep(this.#house.clock, delay)
    await this.dialogue(line)
    if (this.inDialogue || !this.isOpen) return
    const refusal = this.#session.authenticated(this.session.user as Login | false | undefined)
    if (refusal !== undefined) this.#showOut(refusal, 'too many failed logins')
  }

  #tooLong(): Promise<void> | undefined {
    this.endDialogue()
    return this.#answer(this.#session.tooLong())
  }

  /** It is our turn until the promise settles. */
  async #whileWorking(work: Promise<void> | undefined): Promise<void> {
    this.flush()
    this.#working = true
    this.#deadline.pause()
    await work
    this.#working = false
    this.#deadline.restart()
  }

  #timedOut(): void {
    this.#showOut(say.shownOut('4.4.2', this.#myhostname, 'Error: timeout exceeded'), 'timeout')
  }

  /** Too many of this client are here. */
  #turnAway(reply: SmtpReply): void {
    this.#announce()
    this.#trouble(formatReply(reply))
    this.say(reply)
    this.close()
    this.cutSoon()
  }

  #goodbye(): undefined {
    this.say(say.shownOut('4.3.2', this.#myhostname, 'Service shutting down'))
    this.close()
  }

  #showOut(reply: SmtpReply, why: string): undefined {
    this.#trouble(`${why} after ${this.#lastCommand}`)
    this.say(reply)
    this.close()
  }

  #trouble(what: string): void {
    this.#house.desk.events.emit({ kind: 'client-trouble', client: this.#session.client, what })
  }
}
