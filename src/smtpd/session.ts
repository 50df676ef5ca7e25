/**
 * The dialogue with one client (RFC 5321 §3 and §4.1): a command line goes in, an answer comes out. The session knows
 * what was said so far; it has no socket, and whoever has one does what the answers say.
 */
import type { Config } from '../config/options.ts'
import type { ListenerBlock } from '../config/values.ts'
import { isInternational } from '../mail/address.ts'
import { harmless, type SmtpReply } from '../mail/reply.ts'
import type { Acceptance, SmtpClient, Submission } from '../queue/accept.ts'
import type { ClientName, Events } from '../telemetry/events.ts'
import type { ClientLimits } from './client-limits.ts'
import { argumentOf, commandOf, unknownCommand, type Answer, type Command, type Dialogue, type Said } from './commands.ts'
import { Conduct, type ConductSettings } from './conduct.ts'
import { parseMailParameters, parseRecipientParameters } from './parameters.ts'
import { parseAddress, splitPath } from './path.ts'
import type { RelayAccess } from './relay-access.ts'
import * as say from './replies.ts'
import { Transaction } from './transaction.ts'

export type SessionSettings = ConductSettings &
  Pick<
    Config,
    'myhostname' | 'myorigin' | 'soft_bounce' | 'message_size_limit' | 'smtpd_recipient_limit' | 'smtpd_recipient_overshoot_limit'
  >

/** What holds for the clients of one listener. */
export type ListenerRules = Pick<ListenerBlock, 'tls' | 'auth'>

/** What all sessions of a server share. */
export interface Desk {
  readonly settings: SessionSettings
  readonly access: RelayAccess
  readonly events: Events
  readonly limits: ClientLimits
  /** Undefined when mail of this size can be taken now; else the reply to MAIL. */
  readonly refusal: (size: number) => Promise<SmtpReply | undefined> | SmtpReply | undefined
}

/** What the library remembers of a client that logged in. */
export interface Login {
  readonly name: string
  readonly method: string
}

const HELO_LIMIT = 255
/** Failed logins in one session. */
const LOGIN_LIMIT = 3

export class Session implements Dialogue {
  readonly conduct: Conduct
  client: ClientName
  readonly #desk: Desk
  readonly #trusted: boolean
  readonly #rules: ListenerRules
  #helo = ''
  #extended = false
  #transaction: Transaction | null = null
  #encryption: SmtpClient['tls']
  #login: Login | undefined
  #failedLogins = 0

  constructor(desk: Desk, client: ClientName, rules: ListenerRules) {
    this.#desk = desk
    this.#rules = rules
    this.client = client
    this.#trusted = desk.access.trusts(client.address)
    this.conduct = new Conduct(desk.settings)
  }

  /** Must the client wait for the answer to this line before it sends anything else? */
  mustWait(line: string): boolean {
    return !this.#extended || commandOf(line)?.endsGroup === true
  }

  /** Answers a command line and notes how it went. */
  command(line: string): Answer {
    const command = commandOf(line)
    const answer = command === undefined ? unknownCommand(line) : command.run(this, argumentOf(line))
    if (answer === 'dialogue') return answer
    return answer instanceof Promise ? answer.then((late) => this.#note(command, late)) : this.#note(command, answer)
  }

  /** A line that could not be read whole. */
  tooLong(): Said {
    return this.#note(undefined, { reply: say.LINE_TOO_LONG })
  }

  /** From here on nobody listens in; what was said before could have been anybody's (RFC 3207 §4.2). */
  secured(encryption: SmtpClient['tls']): void {
    this.#encryption = encryption
    this.#helo = ''
    this.#extended = false
    this.#transaction = null
  }

  /** The client has logged in, or tried to. The reply when it tried too often. */
  authenticated(login: Login | false | undefined): SmtpReply | undefined {
    this.conduct.count('auth', login ? 235 : 535)
    if (login) this.#login = login
    else if (++this.#failedLogins >= LOGIN_LIMIT) return say.shownOut('4.7.0', this.#desk.settings.myhostname, 'Error: too many errors')
    return undefined
  }

  /** What DATA is about to bring. */
  submission(): Submission {
    if (this.#transaction === null) throw new Error('a content began outside a mail transaction')
    const { envelope } = this.#transaction
    const { name: saslUsername, method: saslMethod } = this.#login ?? {}
    const said = { helo: this.#helo, protocol: this.#protocol, tls: this.#encryption, saslUsername, saslMethod }
    return { envelope, client: { ...this.client, ...said, local: this.#mayRelay } }
  }

  /** The content came to its end and this became of it. */
  concluded(acceptance: Acceptance, queueId: string): Said {
    const reply = acceptance.kind === 'queued' ? say.queuedAs(acceptance.queueId) : acceptance.reply
    if (acceptance.kind === 'refused') this.#refused('END-OF-MESSAGE', reply, { queueId })
    this.conduct.count('data', reply.code)
    if (acceptance.kind === 'queued') this.conduct.forgive()
    this.#transaction = null
    return { reply }
  }

  /** Names the client in the trace and in the log. */
  get #protocol(): string {
    if (!this.#extended) return 'SMTP'
    const name = this.#transaction?.isInternational === true ? 'UTF8SMTP' : 'ESMTP'
    return name + (this.#encryption === undefined ? '' : 'S') + (this.#login === undefined ? '' : 'A')
  }

  /** One of ours: by where it is, or by who it is. */
  get #mayRelay(): boolean {
    return this.#trusted || this.#login !== undefined
  }

  get #offersTls(): boolean {
    return (this.#rules.tls === 'may' || this.#rules.tls === 'encrypt') && this.#encryption === undefined
  }

  get #offersAuth(): boolean {
    return this.#rules.auth !== 'none' && this.#encryption !== undefined && this.#login === undefined
  }

  greet(name: string, extended: boolean): Said {
    if (name === '') return { reply: say.reply(501, undefined, `Syntax: ${extended ? 'EHLO' : 'HELO'} hostname`) }
    const { myhostname, message_size_limit: limit } = this.#desk.settings
    this.#helo = harmless(name).slice(0, HELO_LIMIT)
    this.#extended = extended
    this.#transaction = null
    const reply = say.reply(250, undefined, myhostname)
    if (!extended) return { reply }
    const offers = [...(this.#offersTls ? ['STARTTLS'] : []), ...(this.#offersAuth ? ['AUTH PLAIN LOGIN'] : [])]
    const size = limit > 0 ? `SIZE ${limit}` : 'SIZE'
    return { reply, keywords: ['PIPELINING', size, ...offers, 'ENHANCEDSTATUSCODES', '8BITMIME', 'DSN', 'SMTPUTF8'] }
  }

  starttls(argument: string): Said {
    const { tls } = this.#rules
    if (tls !== 'may' && tls !== 'encrypt') return { reply: say.NOT_RECOGNIZED }
    if (argument !== '') return { reply: say.syntax('STARTTLS') }
    if (this.#encryption !== undefined) return { reply: say.TLS_ACTIVE }
    const refusal = this.#desk.limits.count('handshake', this.client.address)
    return refusal === undefined ? { reply: say.TLS_READY, next: 'starttls' } : { reply: refusal }
  }

  auth(argument: string): Answer {
    if (this.#rules.auth === 'none') return { reply: say.NOT_RECOGNIZED }
    if (argument === '') return { reply: say.syntax('AUTH mechanism') }
    if (this.#encryption === undefined) return { reply: say.NEEDS_TLS_FOR_AUTH }
    if (this.#transaction !== null) return { reply: say.misplaced('MAIL transaction in progress') }
    if (this.#login !== undefined) return { reply: say.misplaced('already authenticated') }
    const refusal = this.#desk.limits.count('auth', this.client.address)
    return refusal === undefined ? 'dialogue' : { reply: refusal }
  }

  mail(argument: string): Answer {
    if (this.#rules.tls === 'encrypt' && this.#encryption === undefined) return { reply: say.NEEDS_TLS }
    if (this.#rules.auth === 'required' && this.#login === undefined) return { reply: say.NEEDS_AUTH }
    if (this.#transaction !== null) return { reply: say.misplaced('nested MAIL command') }
    const path = /^FROM:/i.test(argument) ? splitPath(argument.slice(5).trimStart()) : undefined
    if (path === undefined) return { reply: say.syntax('MAIL FROM:<address>') }
    const sender = path.path === '' ? '' : parseAddress(path.path, this.#desk.settings.myorigin)
    if (sender === undefined) return { reply: say.BAD_SENDER }
    const parsed = parseMailParameters(path.rest, this.#rules.auth !== 'none')
    if ('refusal' in parsed) return { reply: parsed.refusal }
    const { message_size_limit: limit } = this.#desk.settings
    if (isInternational(sender) && parsed.value.smtputf8 !== true) return { reply: say.NEEDS_SMTPUTF8 }
    if (limit > 0 && parsed.value.size > limit) return this.#refuseMail(say.SIZE_EXCEEDED, sender)
    const refusal = this.#desk.limits.count('message', this.client.address) ?? this.#desk.refusal(parsed.value.size)
    const begin = (why: SmtpReply | undefined): Said => {
      if (why !== undefined) return this.#refuseMail(why, sender)
      this.#transaction = new Transaction(sender, parsed.value)
      return { reply: say.SENDER_OK }
    }
    return refusal instanceof Promise ? refusal.then(begin) : begin(refusal)
  }

  rcpt(argument: string): Said {
    const transaction = this.#transaction
    if (transaction === null) return { reply: say.misplaced('need MAIL command') }
    const answer = this.#recipient(transaction, argument)
    if (answer.reply.code >= 400) transaction.refuse()
    return answer
  }

  data(argument: string): Said {
    if (argument !== '') return { reply: say.syntax('DATA') }
    const transaction = this.#transaction
    if (transaction?.allRefused === true) return { reply: say.NO_VALID_RECIPIENTS }
    if (transaction === null || transaction.accepted === 0) return { reply: say.misplaced('need RCPT command') }
    return { reply: say.GO_AHEAD, next: 'content' }
  }

  reset(argument: string): Said {
    if (argument !== '') return { reply: say.syntax('RSET') }
    this.#transaction = null
    return { reply: say.OK }
  }

  #recipient(transaction: Transaction, argument: string): Said {
    const { myorigin, smtpd_recipient_limit: limit, smtpd_recipient_overshoot_limit: overshoot } = this.#desk.settings
    const path = /^TO:/i.test(argument) ? splitPath(argument.slice(3).trimStart()) : undefined
    if (path === undefined) return { reply: say.syntax('RCPT TO:<address>') }
    const address = parseAddress(path.path, myorigin)
    if (address === undefined) return { reply: say.BAD_RECIPIENT }
    const parsed = parseRecipientParameters(path.rest)
    if ('refusal' in parsed) return { reply: parsed.refusal }
    if (isInternational(address) && !transaction.isInternational) return { reply: say.NEEDS_SMTPUTF8 }
    if (transaction.accepted >= limit) return { reply: say.TOO_MANY_RECIPIENTS, excused: transaction.exceed() <= overshoot }
    const tooMany = this.#desk.limits.count('recipient', this.client.address)
    if (tooMany !== undefined) return this.#refused('RCPT', tooMany, { sender: transaction.sender, recipient: address })
    if (!this.#mayRelay && !this.#desk.access.isOpen(address)) {
      return this.#refused('RCPT', say.relayDenied(path.path), { sender: transaction.sender, recipient: address })
    }
    transaction.accept({ address, ...parsed.value })
    return { reply: say.RECIPIENT_OK }
  }

  #refuseMail(reply: SmtpReply, sender: string): Said {
    return this.#refused('MAIL', reply, { sender })
  }

  #refused(stage: string, reply: SmtpReply, about: { sender?: string; recipient?: string; queueId?: string }): Said {
    const { client } = this
    const told = this.#desk.settings.soft_bounce ? say.softened(reply) : reply
    this.#desk.events.emit({ kind: 'refused', client, stage, reply: told, ...about, protocol: this.#protocol, helo: this.#helo })
    return { reply }
  }

  #note(command: Command | undefined, answer: Said): Said {
    // DATA is counted by what becomes of the message.
    if (answer.next !== 'content') this.conduct.count(command?.name ?? 'unknown', answer.reply.code, answer.excused)
    return answer
  }
}
