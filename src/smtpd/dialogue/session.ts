/**
 * State of one SMTP session (RFC 5321 §3 and §4.1). It takes command lines and returns replies, each with the action to take
 * after it. It has no socket: the connection sends the replies and takes the actions.
 */
import type { EhloKeyword } from '../../config/values/values.ts'
import { isInternational } from '../../mail/address.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { Acceptance, SmtpClient, Submission } from '../../queue/intake/acceptor.ts'
import type { Origin } from '../../queue/intake/share-key.ts'
import type { ClientName } from '../../mail/client-name.ts'
import { ChunkSequence, type Chunk } from './chunk-sequence.ts'
import { parseMail, parseRecipient, parseVerify, splitVerify, type ArgumentRules } from './command-arguments.ts'
import { argumentOf, commandOf, unknownCommand, verbOf, type Answer, type Command, type CommandHandler, type Response } from './commands.ts'
import { parseXclient, parseXforward, upstreamOf, type ForwardedAttributes } from './client-attributes.ts'
import { ClientIdentity, type SessionRules, type Login } from './client-identity.ts'
import { CommandStats } from './command-stats.ts'
import { etrnDomain, refuseEtrn } from './etrn-policy.ts'
import { announced } from './extensions.ts'
import type { Peer } from './peer.ts'
import { refusalOf, type SessionFacts } from './recipient-admission.ts'
import * as replies from './replies.ts'
import type { SessionContext } from './session-context.ts'
import { SessionReports, shown } from './session-reports.ts'
import { deliverByOf, refusalOfTimes } from './esmtp-parameters.ts'
import { answerPriority, type PriorityChoice } from './priority-request.ts'
import { Transaction } from './transaction.ts'

export class Session implements CommandHandler {
  readonly stats: CommandStats
  readonly #context: SessionContext
  readonly #identity: ClientIdentity
  readonly #listenerClass: string
  readonly #reports: SessionReports
  #transaction: Transaction | null = null
  readonly #chunks = new ChunkSequence()
  #stage = 'CONNECT'
  /** Description of the next message by XFORWARD. */
  #forwarded: ForwardedAttributes | undefined

  constructor(context: SessionContext, client: ClientName, rules: SessionRules) {
    this.#context = context
    this.#identity = new ClientIdentity(context, client, rules)
    this.#listenerClass = rules.class
    this.stats = new CommandStats(context.settings)
    this.#reports = new SessionReports(context, () => ({ client: this.client, protocol: this.#protocol, helo: this.#identity.helo }))
  }

  get peer(): Peer {
    return this.#identity.peer
  }

  get client(): ClientName {
    return this.peer.client
  }

  get isInTransaction(): boolean {
    return this.#transaction !== null || this.#chunks.inProgress
  }

  /** The last command of the client, CONNECT before the first one, UNKNOWN, or END-OF-MESSAGE, for the log (Postfix smtpd). */
  get stage(): string {
    return this.#stage
  }

  /**
   * True when the client must wait for the reply to this line before it sends anything else (RFC 2920 §3.1). A line without a
   * known command is refused in any case.
   */
  mustWait(line: string): boolean {
    const command = commandOf(line)
    return command !== undefined && (!this.#identity.isExtended || command.endsGroup === true)
  }

  /** Counts a command after which the client has sent more input although it must wait. Returns the reply. */
  outOfStep(line: string): SmtpReply {
    const command = this.#begin(line)
    return this.#note(command, { reply: replies.NOT_SYNCHRONIZED }).reply
  }

  /** Runs a command line and counts its reply. */
  command(line: string): Answer {
    const command = this.#begin(line)
    if (command === undefined) return verbOf(line) === '' ? this.#noCommand(replies.BAD_SYNTAX) : this.#note(undefined, this.#unknown(line))
    const answer = this.#run(command, line)
    if (answer === 'auth-exchange' || 'chunk' in answer) return answer
    return answer instanceof Promise ? answer.then((late) => this.#note(command, late)) : this.#note(command, answer)
  }

  /** Returns the reply to a line longer than the limit. */
  tooLong(): Response {
    return this.#note(undefined, { reply: replies.LINE_TOO_LONG })
  }

  /** Returns the reply to a line that is no UTF-8. */
  broken(): Response {
    return this.#noCommand(replies.BAD_UTF8)
  }

  /** Called after the TLS handshake. Discards all state from before it (RFC 3207 §4.2). */
  secured(encryption: SmtpClient['tls']): void {
    this.#identity.secured(encryption)
    this.#endTransaction()
  }

  /** True when a chunk was accepted and the last chunk is still missing. */
  get expectsChunks(): boolean {
    return this.#chunks.isOpen
  }

  /** Reports a login with a wrong name or password. */
  loginRefused({ name, method }: Login): void {
    this.#reports.failure({ what: 'failed-login', method, username: name })
  }

  /** Ends an AUTH exchange. `login` is set when it succeeded. After too many failures, returns the reply with which to disconnect. */
  authenticated(login: Login | false | undefined): SmtpReply | undefined {
    this.stats.count('auth', login ? 235 : 535)
    if (login) this.#identity.loggedIn(login)
    else if (this.#identity.loginFailed()) return replies.disconnect('4.7.0', this.#context.settings.myhostname, 'Error: too many errors')
    return undefined
  }

  /** Envelope and client of the content that follows DATA. */
  submission(): Submission {
    if (this.#transaction === null) throw new Error('content without a mail transaction')
    const { envelope, declaredSize, handling } = this.#transaction
    const { helo, encryption: tls, login } = this.#identity
    const session = { helo, protocol: this.#protocol, tls, saslUsername: login?.name, saslMethod: login?.method }
    const local = this.#forwarded?.isLocal ?? this.#identity.isLocal
    const own = this.#forwarded?.isLocal ?? this.#identity.mayRelay
    // Members of the client that XFORWARD describes are not mixed with those of the session.
    const upstream = this.#forwarded === undefined ? undefined : upstreamOf(this.#forwarded)
    const { message_size_limit: sizeLimit } = this.#context.settings
    const listenerClass = this.#listenerClass
    return { envelope, sizeLimit, declaredSize, handling, listenerClass, client: { ...this.client, ...session, local, own, upstream } }
  }

  /** Returns the reply to the end of the content. */
  concluded(
    acceptance: Exclude<Acceptance, { kind: 'unknown' }>,
    { queueId, octets }: { readonly queueId: string; readonly octets: number },
  ): Response {
    const isChunked = this.#chunks.inProgress
    const reply = acceptance.kind === 'queued' ? replies.queuedAs(acceptance.queueId, isChunked ? octets : undefined) : acceptance.reply
    if (acceptance.kind === 'refused') this.#reports.refused('END-OF-MESSAGE', reply, { queueId, isLogged: acceptance.isLogged })
    this.stats.count(isChunked ? 'bdat' : 'data', reply.code)
    this.#stage = 'END-OF-MESSAGE'
    if (acceptance.kind === 'queued') this.stats.reset()
    this.#endTransaction()
    return { reply }
  }

  /**
   * Returns the reply to a chunk that was refused at its command, or that is not the last one. `refusal` is given when the
   * acceptor refuses the content after the octets of an accepted chunk.
   */
  chunkEnded({ octets, last, refusal: refused }: Chunk, refusal = refused): Response {
    const reply = refusal ?? replies.chunkTaken(octets)
    this.stats.count('bdat', reply.code)
    if (refused === undefined && refusal !== undefined) {
      this.#endTransaction()
      this.#chunks.fail(last)
    }
    if (last) this.#endTransaction()
    return { reply }
  }

  get #protocol(): string {
    return this.#identity.protocol(this.#transaction?.isInternational === true)
  }

  greet(name: string, extended: boolean): Response {
    if (name === '') return { reply: replies.reply(501, undefined, `Syntax: ${extended ? 'EHLO' : 'HELO'} hostname`) }
    const { settings } = this.#context
    const { mayStartTls, mayLogIn, login } = this.#identity
    this.#identity.greeted(name, extended)
    this.#endTransaction()
    const reply = replies.reply(250, undefined, settings.myhostname)
    if (!extended) return { reply }
    const offers = {
      offersTls: mayStartTls,
      offersAuth: mayLogIn && login === undefined,
      offersXclient: this.peer.mayXclient,
      offersXforward: this.peer.mayXforward,
      offersHold: this.#identity.mayRelay || mayLogIn,
      offersPriority: this.#classes?.hasPriorities === true,
      now: this.#context.clock.wall.now(),
    }
    return { reply, keywords: announced({ settings, ...offers }) }
  }

  starttls(argument: string): Response {
    if (argument !== '') return { reply: replies.syntax('STARTTLS') }
    if (this.#identity.encryption !== undefined) return { reply: replies.TLS_ACTIVE }
    if (!this.#identity.mayStartTls || this.#discards('starttls')) return { reply: replies.NOT_IMPLEMENTED }
    const refusal = this.peer.count('handshake')
    return refusal === undefined ? { reply: replies.TLS_READY, next: 'starttls' } : { reply: refusal }
  }

  auth(argument: string): Answer {
    if (!this.#identity.mayLogIn || this.#discards('auth')) return { reply: replies.AUTH_DISABLED }
    if (this.#transaction !== null) return { reply: replies.badSequence('MAIL transaction in progress') }
    if (this.#identity.login !== undefined) return { reply: replies.badSequence('already authenticated') }
    if (!/^\S+(?:\s+\S+)?$/.test(argument)) return { reply: replies.syntax('AUTH mechanism') }
    const refusal = this.peer.count('auth')
    return refusal === undefined ? 'auth-exchange' : { reply: refusal }
  }

  mail(argument: string): Answer {
    if (this.#context.settings.smtpd_helo_required && this.#identity.helo === '') return { reply: replies.NEEDS_HELO }
    if (this.#identity.lacksLogin) return { reply: replies.NEEDS_AUTH }
    if (this.#transaction !== null) return { reply: replies.badSequence('nested MAIL command') }
    if (this.#chunks.inProgress) return { reply: replies.badSequence('MAIL after BDAT') }
    const parsed = parseMail(argument, this.#argumentRules)
    if ('refusal' in parsed) return this.#reports.notParsed('MAIL', parsed)
    const { sender: path, parameters } = parsed.value
    const { address: sender } = path
    const { message_size_limit: limit } = this.#context.settings
    const moment = { now: this.#context.clock.now(), wall: this.#context.clock.wall }
    const mayHold = this.#identity.mayRelay
    const ungranted = refusalOfTimes({ sender, parameters, mayHold, moment, settings: this.#context.settings })
    if (ungranted !== undefined) return this.#reports.refused('MAIL', ungranted, { sender })
    if (limit > 0 && parameters.size > limit) return this.#reports.refused('MAIL', replies.SIZE_EXCEEDED, { sender })
    const refusal =
      this.peer.count('message') ?? this.#context.refusal(parameters.size, this.#originOf(sender), parameters.release !== undefined)
    const begin = (why: SmtpReply | undefined): Response => {
      if (why !== undefined) return this.#reports.refused('MAIL', why, { sender })
      const facts = { ...this.#originOf(sender), listenerClass: this.#listenerClass }
      const { reply, granted } = answerPriority(parameters.priority, facts, { classes: this.#classes, events: this.#context.events })
      if (reply.code !== 250) return this.#reports.refused('MAIL', reply, { sender })
      const decided = { deliverBy: deliverByOf(parameters, moment.now), ...granted }
      this.#transaction = new Transaction(path, { ...parameters, ...decided }, this.#context.nextInstance())
      return { reply }
    }
    return refusal instanceof Promise ? refusal.then(begin) : begin(refusal)
  }

  get #classes(): PriorityChoice | null {
    return this.#context.classes()
  }

  #originOf(sender: string): Origin {
    return { sender, user: this.#identity.login?.name, address: this.client.address }
  }

  rcpt(argument: string): Answer {
    const transaction = this.#transaction
    if (transaction === null) return { reply: replies.badSequence('need MAIL command') }
    if (this.#chunks.inProgress) return { reply: replies.badSequence('RCPT after BDAT') }
    return this.#recipient(transaction, argument)
  }

  data(argument: string): Response {
    if (this.#chunks.inProgress) return { reply: replies.badSequence('DATA after BDAT') }
    if (this.#transaction === null) return { reply: replies.badSequence('need RCPT command') }
    if (this.#transaction.accepted === 0) return { reply: replies.NO_VALID_RECIPIENTS }
    if (argument !== '') return { reply: replies.syntax('DATA') }
    return { reply: replies.GO_AHEAD, next: 'content' }
  }

  bdat(argument: string, line: string): Answer {
    // The connection is closed, because the octets after the command would be taken for commands.
    if (this.#discards('chunking')) return { reply: replies.CHUNKING_DISABLED, next: 'close' }
    const transaction = this.#transaction
    const facts = { inTransaction: transaction !== null, accepted: transaction?.accepted ?? 0 }
    const chunk = this.#chunks.next(argument, { ...facts, sizeLimit: this.#context.settings.message_size_limit })
    if (chunk === undefined) {
      this.#reports.failure({ what: 'malformed-bdat', command: shown(line) })
      return { reply: replies.BDAT_SYNTAX, next: 'close' }
    }
    if (chunk.refusal === replies.NULL_CHUNK) this.#reports.failure({ what: 'null-bdat' })
    if (chunk.refusal === replies.CHUNK_TOO_BIG) this.#reports.failure({ what: 'bdat-too-big' })
    return { chunk }
  }

  reset(argument: string): Response {
    if (argument !== '') return { reply: replies.syntax('RSET') }
    this.#endTransaction()
    return { reply: replies.OK }
  }

  verify(argument: string): Response {
    const { settings, access } = this.#context
    if (settings.disable_vrfy_command) return { reply: replies.VRFY_DISABLED }
    const split = splitVerify(argument, this.#argumentRules)
    const { text } = split
    if (text === '') return { reply: replies.syntax('VRFY address [SMTPUTF8]') }
    const tooMany = this.peer.count('recipient')
    if (tooMany !== undefined) return { reply: tooMany }
    const parsed = parseVerify(split, settings.myorigin)
    if ('refusal' in parsed) return this.#reports.notParsed('VRFY', parsed)
    const { address, path } = parsed.value
    if (!this.#identity.mayRelay && !access.isOpen(address))
      return this.#reports.refused('VRFY', replies.relayDenied(path), { recipient: address })
    return { reply: replies.notVerified(text) }
  }

  flush(argument: string): Response {
    if (this.#transaction !== null) return { reply: replies.ETRN_IN_TRANSACTION }
    if (!/^\S+$/.test(argument)) return { reply: replies.ETRN_SYNTAX }
    const domain = etrnDomain(argument)
    if (domain === undefined) return { reply: replies.BAD_ETRN_DOMAIN }
    const client = { inMynetworks: this.peer.isTrusted, isAuthenticated: this.#identity.isAuthenticated }
    const refusal = refuseEtrn(domain, client, this.#context.settings)
    if (refusal !== undefined) return this.#reports.refused('ETRN', refusal, {})
    const started = this.#context.flushDomain(domain, `ETRN from ${this.client.name}[${this.client.address}]`)
    return { reply: started ? replies.QUEUING_STARTED : replies.CANNOT_FLUSH }
  }

  xclient(argument: string): Response {
    if (this.#transaction !== null) return { reply: replies.badSequence('MAIL transaction in progress') }
    if (argument === '') return { reply: replies.syntax('XCLIENT attribute=value...') }
    if (!this.peer.mayXclient || this.#discards('xclient')) return { reply: replies.NOT_AUTHORIZED }
    const parsed = parseXclient(argument)
    if ('refusal' in parsed) return { reply: parsed.refusal }
    this.#identity.replace(parsed.value)
    this.#endTransaction()
    return { reply: replies.reply(220, undefined, this.#context.settings.smtpd_banner), next: 'greet' }
  }

  xforward(argument: string): Response {
    if (this.#transaction !== null) return { reply: replies.badSequence('MAIL transaction in progress') }
    if (argument === '') return { reply: replies.syntax('XFORWARD attribute=value...') }
    if (!this.peer.mayXforward || this.#discards('xforward')) return { reply: replies.NOT_AUTHORIZED }
    const parsed = parseXforward(argument)
    if ('refusal' in parsed) return { reply: parsed.refusal }
    this.#forwarded = { ...this.#forwarded, ...parsed.value }
    return { reply: replies.OK }
  }

  /** Finds the command of a line, and records it as the stage. */
  #begin(line: string): Command | undefined {
    const command = commandOf(line)
    // Postfix neither counts nor names an empty line.
    if (command !== undefined || verbOf(line) !== '') this.#stage = command?.name.toUpperCase() ?? 'UNKNOWN'
    return command
  }

  #unknown(line: string): Response {
    const answer = unknownCommand(line)
    if (answer.reply === replies.NOT_SMTP) this.#reports.failure({ what: 'non-smtp-command', command: shown(line) })
    return answer
  }

  /** Refuses a line that is no command. As in Postfix, it counts as an error, and not as a command. */
  #noCommand(reply: SmtpReply): Response {
    this.stats.countError()
    return { reply }
  }

  #run(command: Command, line: string): Answer {
    const isBarred = this.#identity.lacksTls && command.beforeTls !== true
    return isBarred ? { reply: replies.NEEDS_TLS } : command.run(this, argumentOf(line), line)
  }

  #endTransaction(): void {
    this.#transaction = null
    this.#forwarded = undefined
    this.#chunks.reset()
  }

  /** True for an extension in smtpd_discard_ehlo_keywords. */
  #discards(keyword: EhloKeyword): boolean {
    return this.#context.settings.smtpd_discard_ehlo_keywords.includes(keyword)
  }

  get #argumentRules(): ArgumentRules {
    const { settings } = this.#context
    return {
      origin: settings.myorigin,
      withDsn: !this.#discards('dsn'),
      withUtf8: !this.#discards('smtputf8'),
      withHold: settings.smtpd_future_release_limit > 0 && !this.#discards('futurerelease'),
      withDeliverBy: settings.smtpd_deliver_by_enable && !this.#discards('deliverby'),
      withPriority: this.#classes?.hasPriorities === true && !this.#discards('mt-priority'),
    }
  }

  #recipient(transaction: Transaction, argument: string): Answer {
    const { smtpd_recipient_limit: limit, smtpd_recipient_overshoot_limit: overshoot } = this.#context.settings
    const parsed = parseRecipient(argument, this.#argumentRules)
    if ('refusal' in parsed) return this.#reports.notParsed('RCPT', parsed)
    const { address, given, path, parameters } = parsed.value
    if (isInternational(address) && !transaction.isInternational) return { reply: replies.NEEDS_SMTPUTF8 }
    if (transaction.accepted >= limit) return { reply: replies.TOO_MANY_RECIPIENTS, excused: transaction.exceed() <= overshoot }
    const tooMany = this.peer.count('recipient')
    if (tooMany !== undefined) return this.#reports.refused('RCPT', tooMany, { sender: transaction.sender, recipient: address })
    const refusal = refusalOf({ address, given, path }, { transaction, session: this.#facts, rules: this.#context })
    const origin = this.#originOf(transaction.sender)
    const answer = (reply: SmtpReply | undefined): Response => {
      if (reply !== undefined) return this.#reports.refused('RCPT', reply, { sender: transaction.sender, recipient: address })
      transaction.accept({ address, ...parameters })
      return { reply: replies.RECIPIENT_OK }
    }
    const admitted = (why: SmtpReply | undefined): Response | Promise<Response> => {
      const full = why === undefined ? this.#context.recipientRefusal(origin, transaction.countWith(address)) : undefined
      return full === undefined ? answer(why) : full.then(answer)
    }
    return refusal instanceof Promise ? refusal.then(admitted) : admitted(refusal)
  }

  get #facts(): SessionFacts {
    const { client, peer } = this
    const { helo, encryption, user: login } = this.#identity
    return { client, isTrusted: peer.isTrusted, login, helo, protocol: this.#protocol, encryption }
  }

  #note(command: Command | undefined, answer: Response): Response {
    // DATA is counted when the reply to the end of the content is known.
    if (answer.next !== 'content') this.stats.count(command?.name ?? 'unknown', answer.reply.code, answer.excused)
    return answer
  }
}
