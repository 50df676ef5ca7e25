/**
 * One SMTP session of a remote server. It writes raw bytes, so that a script can violate any rule of the protocol. This file
 * implements the default behaviour, which the rules of the remote network change.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import getTlsOptions from 'smtp-server/lib/tls-options.js'
import type { MachineClock, Duration } from '../../system/clock.ts'
import type { RuleFacts } from './rule-facts.ts'
import { FaultInjector, isPositive, type RuleSource, type ReplySent } from './fault-injector.ts'
import type { ReceivedMail } from './remote-events.ts'
import { factsOf, Incoming, type ContentFacts } from './received-content.ts'
import type { Rule, SpokenStage } from './rule.ts'
import { readCommand, readMail, readRcpt, type Transaction } from './server-transaction.ts'
import { EXTENSIONS, DEFAULT_REPLIES } from './default-replies.ts'
import type { HostIdentity } from './policy-host.ts'
import { CommandReader } from './command-reader.ts'
import { LOGIN_MECHANISMS, performLogin, type AcceptedLogins } from './server-login.ts'
import type { SubmissionGuard, SubmissionLogin } from '../oauth/submission-guard.ts'

/** Stages whose facts are those of the previous transaction. */
const AFTERWARDS: ReadonlySet<SpokenStage> = new Set(['rset', 'quit', 'idle'])

/**
 * Begin of a TLS handshake (RFC 8446 §5.1). Where no TLS was offered, it is never answered: a line end among its random octets would
 * otherwise make two runs differ.
 */
const TLS_HANDSHAKE = '\x16\x03'

export interface Host extends RuleSource {
  readonly clock: MachineClock
  /** Milliseconds since the remote network started. */
  age(): Duration
  /** Certificate with which the host offers STARTTLS; undefined without one. */
  identityOf(mx: string): HostIdentity | undefined
  /** Requirements of a host that takes mail only after a login with an access token; undefined for other hosts. */
  guardOf(mx: string): SubmissionGuard | undefined
  /** Logins that the host offers without such requirements. */
  readonly logins: AcceptedLogins | undefined
  /** Domains for which the host accepts mail. */
  domainsOf(mx: string): readonly string[]
  /** Returns the serial number of the next complete message. */
  nextMailNumber(): number
  keep(mail: ReceivedMail): void
}

export interface Caller {
  readonly socket: Socket
  readonly number: number
  readonly mx: string
  readonly client: string
}

export class Session {
  readonly #host: Host
  readonly #caller: Caller
  readonly #output: FaultInjector
  #helo: string | undefined
  #extensions: readonly string[] = []
  #transaction: Transaction | undefined
  /** Last completed transaction. A later RSET, QUIT or `idle` stage has its facts. */
  #last: Transaction | undefined
  /** Recipient of the current RCPT. */
  #asked: string | undefined
  /** Login with an access token. */
  #login: SubmissionLogin | null = null
  /** Facts about the message that was received last. */
  #content: ContentFacts | undefined

  constructor(host: Host, caller: Caller) {
    this.#host = host
    this.#caller = caller
    this.#output = new FaultInjector({
      socket: caller.socket,
      reader: new CommandReader(caller.socket),
      clock: host.clock,
      rules: host,
      number: caller.number,
      facts: (stage) => this.#facts(stage),
    })
  }

  /** Runs the session from the greeting to the end of the connection. */
  async run(): Promise<void> {
    const { number, mx } = this.#caller
    const greeted = await this.#output.reply('greeting', DEFAULT_REPLIES.greeting(mx))
    // After a 554 greeting only QUIT is allowed (RFC 5321 §3.1).
    const welcome = greeted.code === undefined || isPositive(greeted.code)
    let stage: SpokenStage = 'greeting'
    while (this.#output.open) {
      const line = await this.#output.reader.line()
      this.#output.stopIdling()
      if (line === null || !this.#output.open || line.startsWith(TLS_HANDSHAKE)) break
      stage = welcome || readCommand(line).verb === 'QUIT' ? await this.#perform(line) : this.#refuse(stage)
    }
    const { closedAt } = this.#output
    // A stalled session still waits until the client ends the connection.
    if (closedAt === undefined) await this.#output.reader.gone()
    this.#host.report({ event: 'closed', session: number, by: closedAt === undefined ? 'client' : 'server', stage: closedAt ?? stage })
    this.#output.socket.destroySoon()
  }

  #facts(stage: SpokenStage): RuleFacts {
    const transaction = this.#transaction ?? (AFTERWARDS.has(stage) ? this.#last : undefined)
    const accepted = transaction?.recipients.map(({ address }) => address) ?? []
    return {
      stage,
      age: this.#host.age(),
      connection: this.#caller.number,
      client: this.#caller.client,
      mx: this.#caller.mx,
      domains: this.#host.domainsOf(this.#caller.mx),
      helo: this.#helo,
      sender: transaction?.sender,
      recipients: stage === 'rcpt' && this.#asked !== undefined ? [this.#asked] : accepted,
      accepted: accepted.length,
      size: this.#content?.size ?? transaction?.size,
      header: this.#content?.header,
    }
  }

  /** Replies to one command and returns its stage. */
  async #perform(line: string): Promise<SpokenStage> {
    const { verb, argument } = readCommand(line)
    switch (verb) {
      case 'EHLO':
        return this.#ehlo(argument, line)
      case 'HELO':
        return this.#helloOldWay(argument, line)
      case 'STARTTLS':
        return this.#startTls(line)
      case 'AUTH':
        return this.#authenticate(argument, line)
      case 'MAIL':
        return this.#mail(line)
      case 'RCPT':
        return this.#rcpt(line)
      case 'DATA':
        return this.#data(line)
      case 'RSET':
        return this.#reset(line)
      case 'QUIT':
        return this.#quit(line)
      case 'NOOP':
        this.#output.answer(DEFAULT_REPLIES.noop)
        return 'idle'
      default:
        this.#output.answer(DEFAULT_REPLIES.unknown)
        return 'idle'
    }
  }

  /**
   * Extensions for EHLO: those of the rule, or the default ones, with STARTTLS where the host has a certificate and AUTH inside TLS where
   * it requires access tokens.
   */
  #offered(rule: Rule | undefined): readonly string[] {
    const chosenOnes = chosen(rule)
    if (rule !== undefined) return chosenOnes
    const extensions = this.#host.logins === undefined ? chosenOnes : [...chosenOnes, `AUTH ${LOGIN_MECHANISMS.join(' ')}`]
    if (!(this.#output.socket instanceof TLSSocket)) {
      return this.#host.identityOf(this.#caller.mx) === undefined ? extensions : [...extensions, 'STARTTLS']
    }
    const guard = this.#guard
    return guard === undefined ? extensions : [...extensions, `AUTH ${guard.settings.mechanisms.join(' ')}`]
  }

  #refuse(stage: SpokenStage): SpokenStage {
    this.#output.answer(DEFAULT_REPLIES.badSequence)
    return stage
  }

  async #ehlo(argument: string, line: string): Promise<SpokenStage> {
    this.#helo = argument
    this.#transaction = undefined
    const sent = await this.#output.reply('ehlo', (rule) => DEFAULT_REPLIES.ehlo(this.#caller.mx, this.#offered(rule)), line)
    this.#extensions = this.#offered(sent.rule)
    if (!isPositive(sent.code)) this.#helo = undefined
    return 'ehlo'
  }

  async #helloOldWay(argument: string, line: string): Promise<SpokenStage> {
    this.#helo = argument
    this.#transaction = undefined
    await this.#output.reply('helo', DEFAULT_REPLIES.helo(this.#caller.mx), line)
    return 'helo'
  }

  async #startTls(line: string): Promise<SpokenStage> {
    if (!this.#extensions.some((name) => name.toUpperCase() === 'STARTTLS')) return this.#refuse('starttls')
    const sent = await this.#output.reply('starttls', DEFAULT_REPLIES.starttls, line)
    if (sent.code !== 220 || !this.#output.open) return 'starttls'
    const rule = this.#host.decide(this.#facts('handshake'), false)
    if (rule === undefined) {
      this.#encrypt()
      return 'handshake'
    }
    // The fault begins with the client's first bytes, because a TLS client sends first.
    await this.#output.reader.chunk()
    await this.#output.perform('handshake', rule, [])
    return 'handshake'
  }

  #encrypt(): void {
    const plain = this.#output.socket
    this.#output.reader.detach()
    // smtp-server has a built-in self-signed certificate with a published key, which is sufficient for a simulated server.
    const secure = new TLSSocket(plain, { ...getTlsOptions(), ...this.#host.identityOf(this.#caller.mx), isServer: true })
    plain.on('error', (error) => secure.destroy(error))
    this.#output.socket = secure
    this.#output.reader = new CommandReader(secure)
    this.#helo = undefined
    this.#extensions = []
    this.#login = null
  }

  async #authenticate(argument: string, line: string): Promise<SpokenStage> {
    const [mechanism = '', initial] = argument.split(/\s+/)
    const name = mechanism.toUpperCase()
    const known = this.#extensions.some((one) => /^AUTH /i.test(one) && one.toUpperCase().split(' ').includes(name))
    if (!known || this.#login !== null) return this.#refuse('auth')
    const command = line.split(' ', 2).join(' ')
    const server = { output: this.#output, guard: this.#guard, logins: this.#host.logins, now: this.#host.clock.now() }
    this.#login = await performLogin(server, { name, initial, command })
    return 'auth'
  }

  /** Requirements for logins at this host. */
  get #guard(): SubmissionGuard | undefined {
    return this.#host.guardOf(this.#caller.mx)
  }

  async #mail(line: string): Promise<SpokenStage> {
    const transaction = readMail(line)
    if (this.#helo === undefined || this.#transaction !== undefined) return this.#refuse('mail')
    if (transaction === undefined) this.#output.answer(DEFAULT_REPLIES.badSyntax)
    else {
      this.#transaction = transaction
      this.#content = undefined
      const guard = this.#login === null ? this.#guard : undefined
      const sent = await this.#output.reply('mail', guard?.replies.unauthenticated ?? DEFAULT_REPLIES.mail, line)
      if (!isPositive(sent.code)) this.#transaction = undefined
    }
    return 'mail'
  }

  async #rcpt(line: string): Promise<SpokenStage> {
    if (this.#transaction === undefined) return this.#refuse('rcpt')
    const recipient = readRcpt(line)
    if (recipient === undefined) {
      this.#output.answer(DEFAULT_REPLIES.badSyntax)
      return 'rcpt'
    }
    this.#asked = recipient.address
    const sent = await this.#output.reply('rcpt', DEFAULT_REPLIES.rcpt, line)
    this.#asked = undefined
    if (isPositive(sent.code)) this.#transaction = { ...this.#transaction, recipients: [...this.#transaction.recipients, recipient] }
    return 'rcpt'
  }

  async #data(line: string): Promise<SpokenStage> {
    const transaction = this.#transaction
    if (transaction === undefined) return this.#refuse('data')
    if (transaction.recipients.length === 0) {
      this.#output.answer(['554 5.5.1 Error: no valid recipients'])
      return 'data'
    }
    const sent = await this.#output.reply('data', DEFAULT_REPLIES.data, line)
    if (sent.code !== 354 || !this.#output.open) return 'data'
    return this.#receive(transaction)
  }

  async #receive(transaction: Transaction): Promise<SpokenStage> {
    const incoming = new Incoming(this.#output, this.#host.decide(this.#facts('body'), false))
    const content = await incoming.read()
    if (content === null) return 'body'
    this.#content = factsOf(content)
    const number = this.#host.nextMailNumber()
    const refused = this.#login === null ? null : this.#guard?.contentReply(this.#login, transaction.sender)
    const sent = incoming.sent ?? (await this.#output.reply('end-of-data', refused ?? DEFAULT_REPLIES.endOfData(number)))
    this.#conclude(transaction, content, sent)
    this.#last = transaction
    this.#transaction = undefined
    if (this.#output.open) this.#output.startIdling()
    return 'end-of-data'
  }

  #conclude(transaction: Transaction, content: Buffer, { code, rule }: ReplySent): void {
    const kept = rule?.fault.at === 'end-of-data' ? rule.fault.keep : isPositive(code)
    const recipients = transaction.recipients.map(({ address }) => address)
    const { number, mx } = this.#caller
    this.#host.report({
      event: 'message',
      session: number,
      sender: transaction.sender,
      recipients,
      size: content.length,
      message_id: this.#content?.header('message-id')[0],
      kept,
      reply_code: code ?? null,
    })
    if (!kept) return
    this.#host.keep({
      at: this.#host.age(),
      session: number,
      mx,
      helo: this.#helo ?? '',
      sender: transaction.sender,
      recipients,
      mailParameters: transaction.parameters,
      rcptParameters: transaction.recipients.map(({ parameters }) => parameters),
      tls: this.#output.socket instanceof TLSSocket,
      content,
    })
  }

  async #reset(line: string): Promise<SpokenStage> {
    this.#last = this.#transaction ?? this.#last
    this.#transaction = undefined
    await this.#output.reply('rset', DEFAULT_REPLIES.rset, line)
    return 'rset'
  }

  async #quit(line: string): Promise<SpokenStage> {
    await this.#output.reply('quit', DEFAULT_REPLIES.quit, line)
    if (this.#output.open) this.#output.socket.end()
    return 'quit'
  }
}

const chosen = (rule: Rule | undefined): readonly string[] => (rule?.fault.at === 'ehlo' ? rule.fault.extensions : undefined) ?? EXTENSIONS
