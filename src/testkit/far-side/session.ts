/**
 * One session with a client: an SMTP server that speaks raw bytes, so that it can break every rule when the script says
 * so. What it would usually say is decided here; whether it does, by the far side's rules.
 */
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import getTlsOptions from 'smtp-server/lib/tls-options.js'
import type { Clock, Duration } from '../../mail/clock.ts'
import type { Circumstances } from './circumstances.ts'
import { Conversation, isPositive, type Judge, type Said } from './conversation.ts'
import type { ReceivedMail } from './events.ts'
import { factsOf, Incoming, type ContentFacts } from './incoming.ts'
import type { Rule, SpokenStage } from './rule.ts'
import { readCommand, readMail, readRcpt, type Transaction } from './transaction.ts'
import { EXTENSIONS, USUAL } from './usual-replies.ts'
import { WireReader } from './wire-reader.ts'

/** Stages that are about a transaction which is over. */
const AFTERWARDS: ReadonlySet<SpokenStage> = new Set(['rset', 'quit', 'idle'])

/** What a session needs of the far side. */
export interface Host extends Judge {
  readonly clock: Clock
  /** Since the far side began. */
  age(): Duration
  /** The domains that the dialled host takes mail for. */
  domainsOf(mx: string): readonly string[]
  /** A content arrived whole; the number it gets. */
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
  readonly #talk: Conversation
  #helo: string | undefined
  #extensions: readonly string[] = []
  #transaction: Transaction | undefined
  /** The last transaction that came to an end: what RSET, QUIT and silence after it are about. */
  #last: Transaction | undefined
  /** What a rule can know of the recipient that is asked about, or of the message that has just arrived. */
  #asked: string | undefined
  #content: ContentFacts | undefined

  constructor(host: Host, caller: Caller) {
    this.#host = host
    this.#caller = caller
    this.#talk = new Conversation({
      socket: caller.socket,
      reader: new WireReader(caller.socket),
      clock: host.clock,
      judge: host,
      number: caller.number,
      facts: (stage) => this.#facts(stage),
    })
  }

  /** From the greeting until somebody leaves. */
  async run(): Promise<void> {
    const { number, mx } = this.#caller
    const greeted = await this.#talk.say('greeting', USUAL.greeting(mx))
    // Who was turned away may only leave (RFC 5321 §3.1).
    const welcome = greeted.code === undefined || isPositive(greeted.code)
    let stage: SpokenStage = 'greeting'
    while (this.#talk.open) {
      const line = await this.#talk.reader.line()
      this.#talk.stopIdling()
      if (line === null || !this.#talk.open) break
      stage = welcome || readCommand(line).verb === 'QUIT' ? await this.#obey(line) : this.#refuse(stage)
    }
    const { closedAt } = this.#talk
    // Whoever keeps silent for ever still notices that the client has gone.
    if (closedAt === undefined) await this.#talk.reader.gone()
    this.#host.tell({ event: 'closed', session: number, by: closedAt === undefined ? 'client' : 'far side', stage: closedAt ?? stage })
    this.#talk.socket.destroySoon()
  }

  #facts(stage: SpokenStage): Circumstances {
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

  /** Answers one command; the stage it belongs to. */
  async #obey(line: string): Promise<SpokenStage> {
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
        this.#talk.answer(USUAL.noop)
        return 'idle'
      default:
        this.#talk.answer(USUAL.unknown)
        return 'idle'
    }
  }

  #refuse(stage: SpokenStage): SpokenStage {
    this.#talk.answer(USUAL.badSequence)
    return stage
  }

  async #ehlo(argument: string, line: string): Promise<SpokenStage> {
    this.#helo = argument
    this.#transaction = undefined
    const said = await this.#talk.say('ehlo', (rule) => USUAL.ehlo(this.#caller.mx, offered(rule)), line)
    this.#extensions = offered(said.rule)
    if (!isPositive(said.code)) this.#helo = undefined
    return 'ehlo'
  }

  async #helloOldWay(argument: string, line: string): Promise<SpokenStage> {
    this.#helo = argument
    this.#transaction = undefined
    await this.#talk.say('helo', USUAL.helo(this.#caller.mx), line)
    return 'helo'
  }

  async #startTls(line: string): Promise<SpokenStage> {
    if (!this.#extensions.some((name) => name.toUpperCase() === 'STARTTLS')) return this.#refuse('starttls')
    const said = await this.#talk.say('starttls', USUAL.starttls, line)
    if (said.code !== 220 || !this.#talk.open) return 'starttls'
    const rule = this.#host.decide(this.#facts('handshake'), false)
    if (rule === undefined) {
      this.#encrypt()
      return 'handshake'
    }
    // The client speaks first in a handshake; before that, nothing could go wrong in it.
    await this.#talk.reader.chunk()
    await this.#talk.perform('handshake', rule, [])
    return 'handshake'
  }

  #encrypt(): void {
    const plain = this.#talk.socket
    this.#talk.reader.detach()
    // smtp-server brings a key that everybody knows: right for a far side that is only played.
    const secure = new TLSSocket(plain, { ...getTlsOptions(), isServer: true })
    plain.on('error', (error) => secure.destroy(error))
    this.#talk.socket = secure
    this.#talk.reader = new WireReader(secure)
    this.#helo = undefined
    this.#extensions = []
  }

  async #authenticate(argument: string, line: string): Promise<SpokenStage> {
    const [mechanism = '', initial] = argument.split(/\s+/)
    const known = this.#extensions.some((name) => /^AUTH /i.test(name) && name.toUpperCase().split(' ').includes(mechanism.toUpperCase()))
    if (!known) return this.#refuse('auth')
    const challenges = mechanism.toUpperCase() === 'LOGIN' ? ['334 VXNlcm5hbWU6', '334 UGFzc3dvcmQ6'] : ['334 ']
    for (const challenge of initial === undefined ? challenges : challenges.slice(1)) {
      this.#talk.answer([challenge])
      if ((await this.#talk.reader.line()) === null) return 'auth'
    }
    await this.#talk.say('auth', USUAL.auth, line.split(' ', 2).join(' '))
    return 'auth'
  }

  async #mail(line: string): Promise<SpokenStage> {
    const transaction = readMail(line)
    if (this.#helo === undefined || this.#transaction !== undefined) return this.#refuse('mail')
    if (transaction === undefined) this.#talk.answer(USUAL.badSyntax)
    else {
      this.#transaction = transaction
      this.#content = undefined
      const said = await this.#talk.say('mail', USUAL.mail, line)
      if (!isPositive(said.code)) this.#transaction = undefined
    }
    return 'mail'
  }

  async #rcpt(line: string): Promise<SpokenStage> {
    if (this.#transaction === undefined) return this.#refuse('rcpt')
    const recipient = readRcpt(line)
    if (recipient === undefined) {
      this.#talk.answer(USUAL.badSyntax)
      return 'rcpt'
    }
    this.#asked = recipient.address
    const said = await this.#talk.say('rcpt', USUAL.rcpt, line)
    this.#asked = undefined
    if (isPositive(said.code)) this.#transaction = { ...this.#transaction, recipients: [...this.#transaction.recipients, recipient] }
    return 'rcpt'
  }

  async #data(line: string): Promise<SpokenStage> {
    const transaction = this.#transaction
    if (transaction === undefined) return this.#refuse('data')
    if (transaction.recipients.length === 0) {
      this.#talk.answer(['554 5.5.1 Error: no valid recipients'])
      return 'data'
    }
    const said = await this.#talk.say('data', USUAL.data, line)
    if (said.code !== 354 || !this.#talk.open) return 'data'
    return this.#receive(transaction)
  }

  async #receive(transaction: Transaction): Promise<SpokenStage> {
    const incoming = new Incoming(this.#talk, this.#host.decide(this.#facts('body'), false))
    const content = await incoming.read()
    if (content === null) return 'body'
    this.#content = factsOf(content)
    const number = this.#host.nextMailNumber()
    const said = incoming.said ?? (await this.#talk.say('end-of-data', USUAL.endOfData(number)))
    this.#conclude(transaction, content, said)
    this.#last = transaction
    this.#transaction = undefined
    if (this.#talk.open) this.#talk.startIdling()
    return 'end-of-data'
  }

  #conclude(transaction: Transaction, content: Buffer, { code, rule }: Said): void {
    const kept = rule?.fault.at === 'end-of-data' ? rule.fault.keep : isPositive(code)
    const recipients = transaction.recipients.map(({ address }) => address)
    const { number, mx } = this.#caller
    this.#host.tell({
      event: 'message',
      session: number,
      sender: transaction.sender,
      recipients,
      size: content.length,
      message_id: this.#content?.header('message-id')[0],
      kept,
      told: code ?? null,
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
      content,
    })
  }

  async #reset(line: string): Promise<SpokenStage> {
    this.#last = this.#transaction ?? this.#last
    this.#transaction = undefined
    await this.#talk.say('rset', USUAL.rset, line)
    return 'rset'
  }

  async #quit(line: string): Promise<SpokenStage> {
    await this.#talk.say('quit', USUAL.quit, line)
    if (this.#talk.open) this.#talk.socket.end()
    return 'quit'
  }
}

const offered = (rule: Rule | undefined): readonly string[] => (rule?.fault.at === 'ehlo' ? rule.fault.extensions : undefined) ?? EXTENSIONS
