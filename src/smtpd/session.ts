/**
 * The dialogue with one client (RFC 5321 §3 and §4.1): a command line goes in, an answer comes out. The session knows
 * what was said so far; it has no socket, and whoever has one does what the answers say.
 */
import type { Config } from '../config/options.ts'
import { isInternational } from '../mail/address.ts'
import type { EnvelopeRecipient } from '../mail/envelope.ts'
import { harmless, type SmtpReply } from '../mail/reply.ts'
import type { Acceptance, Submission } from '../queue/accept.ts'
import type { ClientName, Events } from '../telemetry/events.ts'
import { Conduct, type CommandName, type ConductSettings } from './conduct.ts'
import { parseMailParameters, parseRecipientParameters, type MailParameters } from './parameters.ts'
import { parseAddress, splitPath } from './path.ts'
import type { RelayAccess } from './relay-access.ts'
import * as say from './replies.ts'

export type SessionSettings = ConductSettings &
  Pick<Config, 'myhostname' | 'myorigin' | 'message_size_limit' | 'smtpd_recipient_limit' | 'smtpd_recipient_overshoot_limit'>

/** What all sessions of a server share. */
export interface Desk {
  readonly settings: SessionSettings
  readonly access: RelayAccess
  readonly events: Events
  /** Undefined when mail of this size can be taken now; else the reply to MAIL. */
  readonly refusal: (size: number) => Promise<SmtpReply | undefined> | SmtpReply | undefined
}

export interface Answer {
  readonly reply: SmtpReply
  /** Lines after the first one. */
  readonly keywords?: readonly string[]
  readonly next?: 'close' | 'content' | 'starttls'
  /** Refused, but no error that counts against the client. */
  readonly excused?: boolean
}

interface Transaction extends MailParameters {
  readonly sender: string
  readonly recipients: EnvelopeRecipient[]
  readonly addresses: Set<string>
  /** Recipients that were accepted, repeated ones included. */
  accepted: number
  refused: number
  overshoot: number
}

type Handler = (session: Session, argument: string) => Answer | Promise<Answer>

interface Command {
  readonly name: CommandName
  readonly run: Handler
  /** Must be the last of a group (RFC 2920 §3.1): nothing may be sent before it is answered. */
  readonly endsGroup?: boolean
}

/** Clients of other protocols, and web pages made to talk to us. */
const FOREIGN_COMMANDS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'TRACE'])

const HELO_LIMIT = 255

export class Session {
  readonly conduct: Conduct
  readonly client: ClientName
  readonly #desk: Desk
  readonly #trusted: boolean
  #helo = ''
  #extended = false
  #transaction: Transaction | null = null

  constructor(desk: Desk, client: ClientName) {
    this.#desk = desk
    this.client = client
    this.#trusted = desk.access.trusts(client.address)
    this.conduct = new Conduct(desk.settings)
  }

  /** Must the client wait for the answer to this line before it sends anything else? */
  mustWait(line: string): boolean {
    return !this.#extended || commandOf(line)?.endsGroup === true
  }

  /** Answers a command line and notes how it went. */
  command(line: string): Answer | Promise<Answer> {
    const command = commandOf(line)
    const answer = command === undefined ? unknownCommand(line) : command.run(this, argumentOf(line))
    return answer instanceof Promise ? answer.then((late) => this.#note(command, late)) : this.#note(command, answer)
  }

  /** A line that could not be read whole. */
  tooLong(): Answer {
    return this.#note(undefined, { reply: say.LINE_TOO_LONG })
  }

  /** What DATA is about to bring. */
  submission(): Submission {
    const { sender, recipients, ret, envid, smtputf8, body } = this.#open()
    const envelope = { sender, recipients, ret, envid, smtputf8, body }
    return { envelope, client: { ...this.client, helo: this.#helo, protocol: this.#protocol, local: this.#trusted } }
  }

  /** The content came to its end and this became of it. */
  concluded(acceptance: Acceptance, queueId: string): Answer {
    const reply = acceptance.kind === 'queued' ? say.queuedAs(acceptance.queueId) : acceptance.reply
    if (acceptance.kind === 'refused') this.#refused('END-OF-MESSAGE', reply, { queueId })
    this.conduct.count('data', reply.code)
    if (acceptance.kind === 'queued') this.conduct.forgive()
    this.#transaction = null
    return { reply }
  }

  /** Names the client in the trace and in the log. */
  get #protocol(): string {
    return this.#transaction?.smtputf8 === true ? 'UTF8SMTP' : this.#extended ? 'ESMTP' : 'SMTP'
  }

  greet(name: string, extended: boolean): Answer {
    if (name === '') return { reply: say.reply(501, undefined, `Syntax: ${extended ? 'EHLO' : 'HELO'} hostname`) }
    const { myhostname, message_size_limit: limit } = this.#desk.settings
    this.#helo = harmless(name).slice(0, HELO_LIMIT)
    this.#extended = extended
    this.#transaction = null
    const reply = say.reply(250, undefined, myhostname)
    if (!extended) return { reply }
    const size = limit > 0 ? `SIZE ${limit}` : 'SIZE'
    return { reply, keywords: ['PIPELINING', size, 'ENHANCEDSTATUSCODES', '8BITMIME', 'DSN', 'SMTPUTF8'] }
  }

  mail(argument: string): Answer | Promise<Answer> {
    if (this.#transaction !== null) return { reply: say.misplaced('nested MAIL command') }
    const path = /^FROM:/i.test(argument) ? splitPath(argument.slice(5).trimStart()) : undefined
    if (path === undefined) return { reply: say.syntax('MAIL FROM:<address>') }
    const sender = path.path === '' ? '' : parseAddress(path.path, this.#desk.settings.myorigin)
    if (sender === undefined) return { reply: say.BAD_SENDER }
    const parsed = parseMailParameters(path.rest)
    if ('refusal' in parsed) return { reply: parsed.refusal }
    const { message_size_limit: limit } = this.#desk.settings
    if (isInternational(sender) && parsed.value.smtputf8 !== true) return { reply: say.NEEDS_SMTPUTF8 }
    if (limit > 0 && parsed.value.size > limit) return this.#refuseMail(say.SIZE_EXCEEDED, sender)
    const refusal = this.#desk.refusal(parsed.value.size)
    const begin = (why: SmtpReply | undefined): Answer => {
      if (why !== undefined) return this.#refuseMail(why, sender)
      const recipients: EnvelopeRecipient[] = []
      this.#transaction = { ...parsed.value, sender, recipients, addresses: new Set(), accepted: 0, refused: 0, overshoot: 0 }
      return { reply: say.SENDER_OK }
    }
    return refusal instanceof Promise ? refusal.then(begin) : begin(refusal)
  }

  rcpt(argument: string): Answer {
    const transaction = this.#transaction
    if (transaction === null) return { reply: say.misplaced('need MAIL command') }
    const answer = this.#recipient(transaction, argument)
    if (answer.reply.code >= 400) transaction.refused++
    return answer
  }

  data(argument: string): Answer {
    if (argument !== '') return { reply: say.syntax('DATA') }
    const transaction = this.#transaction
    if (transaction !== null && transaction.accepted === 0 && transaction.refused > 0) return { reply: say.NO_VALID_RECIPIENTS }
    if (transaction === null || transaction.accepted === 0) return { reply: say.misplaced('need RCPT command') }
    return { reply: say.GO_AHEAD, next: 'content' }
  }

  reset(argument: string): Answer {
    if (argument !== '') return { reply: say.syntax('RSET') }
    this.#transaction = null
    return { reply: say.OK }
  }

  #recipient(transaction: Transaction, argument: string): Answer {
    const { myorigin, smtpd_recipient_limit: limit, smtpd_recipient_overshoot_limit: overshoot } = this.#desk.settings
    const path = /^TO:/i.test(argument) ? splitPath(argument.slice(3).trimStart()) : undefined
    if (path === undefined) return { reply: say.syntax('RCPT TO:<address>') }
    const address = parseAddress(path.path, myorigin)
    if (address === undefined) return { reply: say.BAD_RECIPIENT }
    const parsed = parseRecipientParameters(path.rest)
    if ('refusal' in parsed) return { reply: parsed.refusal }
    if (isInternational(address) && transaction.smtputf8 !== true) return { reply: say.NEEDS_SMTPUTF8 }
    if (transaction.accepted >= limit) return { reply: say.TOO_MANY_RECIPIENTS, excused: ++transaction.overshoot <= overshoot }
    if (!this.#trusted && !this.#desk.access.isOpen(address)) {
      return this.#refused('RCPT', say.relayDenied(path.path), { sender: transaction.sender, recipient: address })
    }
    transaction.accepted++
    if (!transaction.addresses.has(address)) transaction.recipients.push({ address, ...parsed.value })
    transaction.addresses.add(address)
    return { reply: say.RECIPIENT_OK }
  }

  #open(): Transaction {
    if (this.#transaction === null) throw new Error('a content began outside a mail transaction')
    return this.#transaction
  }

  #refuseMail(reply: SmtpReply, sender: string): Answer {
    return this.#refused('MAIL', reply, { sender })
  }

  #refused(stage: string, reply: SmtpReply, about: { sender?: string; recipient?: string; queueId?: string }): Answer {
    const { client } = this
    this.#desk.events.emit({ kind: 'refused', client, stage, reply, ...about, protocol: this.#protocol, helo: this.#helo })
    return { reply }
  }

  #note(command: Command | undefined, answer: Answer): Answer {
    // DATA is counted by what becomes of the message.
    if (answer.next !== 'content') this.conduct.count(command?.name ?? 'unknown', answer.reply.code, answer.excused)
    return answer
  }
}

const COMMANDS: Readonly<Record<string, Command>> = {
  HELO: { name: 'helo', run: (session, name) => session.greet(name, false), endsGroup: true },
  EHLO: { name: 'ehlo', run: (session, name) => session.greet(name, true), endsGroup: true },
  MAIL: { name: 'mail', run: (session, argument) => session.mail(argument) },
  RCPT: { name: 'rcpt', run: (session, argument) => session.rcpt(argument) },
  DATA: { name: 'data', run: (session, argument) => session.data(argument), endsGroup: true },
  RSET: { name: 'rset', run: (session, argument) => session.reset(argument) },
  NOOP: { name: 'noop', run: () => ({ reply: say.OK }), endsGroup: true },
  VRFY: {
    name: 'vrfy',
    run: (_, argument) => ({ reply: argument === '' ? say.syntax('VRFY address') : say.notVerified(argument) }),
    endsGroup: true,
  },
  QUIT: { name: 'quit', run: () => ({ reply: say.BYE, next: 'close' }) },
}

const verbOf = (line: string): string => (/^\s*(\S*)/.exec(line)?.[1] ?? '').toUpperCase()

const argumentOf = (line: string): string => line.trim().replace(/^\S+\s*/, '')

function commandOf(line: string): Command | undefined {
  const verb = verbOf(line)
  return Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined
}

function unknownCommand(line: string): Answer {
  const verb = verbOf(line)
  if (verb === '') return { reply: say.BAD_SYNTAX }
  const foreign = FOREIGN_COMMANDS.has(verb) || /^[^A-Z]/.test(verb) || /^[!-9;-~]+:/.test(line.trimStart())
  return foreign ? { reply: say.NOT_SMTP, next: 'close' } : { reply: say.NOT_RECOGNIZED }
}
