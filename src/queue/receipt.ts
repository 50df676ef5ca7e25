/**
 * One message while it is being received: the header is completed, the content is cut into parts, and what is too long
 * to be held is staged as it comes. Nothing of it becomes mail before `end` has committed it.
 */
import { HeaderScan, type HeaderEnd } from '../mail/headers.ts'
import type { Envelope } from '../mail/envelope.ts'
import { harmless, type SmtpReply } from '../mail/reply.ts'
import type { Intake } from './intake.ts'
import type { Message } from './message.ts'
import { Parts } from './parts.ts'
import { StoreUnavailable } from './store.ts'

/** What became of a submission. */
export type Acceptance = { readonly kind: 'queued'; readonly queueId: string } | { readonly kind: 'refused'; readonly reply: SmtpReply }

/** The way into the queue, as far as receiving needs it. */
export type IntakePort = Pick<Intake, 'begin' | 'stage' | 'unstage' | 'take'>

export interface ReceiptLimits {
  /** Bytes of content; 0 for no limit. */
  readonly message: number
  readonly header: number
  readonly hops: number
  /** Names of the fields that are removed, in lower case. */
  readonly dropped: ReadonlySet<string>
}

export interface ReceiptFacts {
  readonly identity: ReturnType<Intake['begin']>
  readonly envelope: Envelope
  /** Our Received line. */
  readonly trace: string
  /** Fields to add where they are missing; null for mail that is none of ours to change. */
  readonly additions: Additions | null
  readonly submitter: Pick<Parameters<Intake['take']>[0], 'client' | 'uid' | 'saslUsername' | 'saslMethod'>
}

/** Values of fields that a message of ours must have (postfix cleanup). */
export interface Additions {
  readonly 'Message-Id': string
  readonly Date: string
  readonly From: string
}

export interface ReceiptParts {
  readonly intake: IntakePort
  readonly limits: ReceiptLimits
  /** Told of errors that are no news of the network: bugs and a store that gave up a staged content. */
  readonly report: (what: string, error: unknown) => void
}

/** Longer contents are staged while they arrive, shorter ones are committed with their message. */
const HELD_PARTS = 4

const TOO_BIG: SmtpReply = { code: 552, status: '5.3.4', text: 'Error: message file too big' }
const HEADER_TOO_BIG: SmtpReply = { code: 552, status: '5.3.4', text: 'Error: message header too big' }
const TOO_MANY_HOPS: SmtpReply = { code: 554, status: '5.4.0', text: 'Error: too many hops' }
export const WRITE_ERROR: SmtpReply = { code: 451, status: '4.3.0', text: 'Error: queue file write error' }

/** Message-Ids are for the log and for threading; a line of mail is no longer. */
const MESSAGE_ID_LIMIT = 998

const CRLF = Buffer.from('\r\n')
const MAILBOX_LINE = Buffer.from('X-Mailbox-Line: ')

export class Receipt {
  readonly #facts: ReceiptFacts
  readonly #port: ReceiptParts
  readonly #scan = new HeaderScan()
  readonly #parts = new Parts()
  /** The header while it grows; null when it has ended. */
  #header: Buffer | null = Buffer.alloc(0)
  #messageId: string | undefined
  #received = 0
  #staged = 0
  #refusal: SmtpReply | undefined

  constructor(facts: ReceiptFacts, port: ReceiptParts) {
    this.#facts = facts
    this.#port = port
    this.#parts.add(Buffer.from(facts.trace))
  }

  get queueId(): string {
    return this.#facts.identity.queueId
  }

  /** Takes the next bytes, with CRLF line ends. While a promise is returned, no more should be read. */
  write(pieces: readonly Uint8Array[]): Promise<void> | undefined {
    for (const piece of pieces) this.#take(piece)
    return this.#refusal === undefined && this.#parts.full > HELD_PARTS ? this.#stage() : undefined
  }

  /** Whatever comes, this message will be answered so. The first refusal stands. */
  refuse(reply: SmtpReply): void {
    this.#refusal ??= reply
    this.#header = null
    this.#parts.clear()
  }

  /** The content is whole. Durable when `queued` is returned. */
  async end(): Promise<Acceptance> {
    if (this.#header !== null) this.#scanHeader(this.#header, true)
    if (this.#refusal === undefined) await this.#commit()
    if (this.#refusal === undefined) return { kind: 'queued', queueId: this.queueId }
    await this.abandon()
    return { kind: 'refused', reply: this.#refusal }
  }

  /** The client went away, or its message is refused: what was staged is forgotten. */
  async abandon(): Promise<void> {
    this.#parts.clear()
    if (this.#staged === 0) return
    this.#staged = 0
    try {
      await this.#port.intake.unstage(this.#facts.identity.id)
    } catch (error) {
      // Nothing is lost by it: contents that no message names are swept when the queue is opened.
      this.#port.report(`${this.queueId}: cannot remove a staged content`, error)
    }
  }

  #take(piece: Uint8Array): void {
    if (this.#refusal !== undefined) return
    this.#received += piece.byteLength
    const { message } = this.#port.limits
    if (message > 0 && this.#received > message) return this.refuse(TOO_BIG)
    if (this.#header === null) return this.#parts.add(piece)
    this.#scanHeader(this.#header.length === 0 ? asBuffer(piece) : Buffer.concat([this.#header, piece]), false)
  }

  #scanHeader(bytes: Buffer, complete: boolean): void {
    this.#header = bytes
    let end = this.#scan.scan(bytes, complete)
    if (end === undefined && bytes.length > this.#port.limits.header) end = this.#scan.endsAtGrowingLine(bytes)
    if ((end?.at ?? bytes.length) > this.#port.limits.header) return this.refuse(HEADER_TOO_BIG)
    if (end !== undefined) this.#endHeader(bytes, end)
  }

  #endHeader(bytes: Buffer, end: HeaderEnd): void {
    const { fields } = this.#scan
    const hops = 1 + fields.filter((field) => field.name === 'received').length
    if (hops >= this.#port.limits.hops) return this.refuse(TOO_MANY_HOPS)
    this.#header = null
    this.#keepFields(bytes)
    this.#addMissing()
    const given = this.#scan.value(bytes, 'message-id')
    if (given !== undefined) this.#messageId = harmless(given).slice(0, MESSAGE_ID_LIMIT)
    if (!end.separated && end.at < bytes.length) this.#parts.add(CRLF)
    this.#parts.add(bytes.subarray(end.at))
  }

  /** The header as it came, without the fields that are dropped; neighbours go on in one piece. */
  #keepFields(bytes: Buffer): void {
    let from = 0
    let to = 0
    for (const field of this.#scan.fields) {
      const dropped = this.#port.limits.dropped.has(field.name)
      if (dropped || field.mailboxLine) {
        this.#parts.add(bytes.subarray(from, to))
        if (field.mailboxLine) this.#parts.add(MAILBOX_LINE)
        from = dropped ? field.end : field.start
      }
      to = field.end
    }
    this.#parts.add(bytes.subarray(from, Math.max(from, to)))
  }

  /** Adds what a message of ours lacks; to a message that is sent again, the Resent- fields (RFC 5322 §3.6.6). */
  #addMissing(): void {
    const { additions } = this.#facts
    if (additions === null) return
    const names = new Set(this.#scan.fields.map((field) => field.name))
    const prefix = [...names].some((name) => name.startsWith('resent-')) ? 'Resent-' : ''
    for (const [name, value] of Object.entries(additions)) {
      if (names.has((prefix + name).toLowerCase())) continue
      this.#parts.add(Buffer.from(`${prefix}${name}: ${value}\r\n`))
      if (prefix + name === 'Message-Id') this.#messageId = value
    }
  }

  async #stage(): Promise<void> {
    const chunks = this.#parts.takeFull()
    const from = this.#staged
    this.#staged += chunks.length
    try {
      await this.#port.intake.stage(this.#facts.identity.id, from, chunks)
    } catch (error) {
      this.#failed(error)
    }
  }

  async #commit(): Promise<void> {
    const { identity, envelope, submitter } = this.#facts
    const size = this.#parts.bytes
    const message: Message = {
      id: identity.id,
      createdAt: identity.arrivedAt,
      arrivedAt: identity.arrivedAt,
      sender: envelope.sender,
      size,
      body: identity.id,
      ret: envelope.ret,
      envid: envelope.envid,
      smtputf8: envelope.smtputf8 ?? false,
      bodyType: envelope.body,
      messageId: this.#messageId,
    }
    try {
      await this.#port.intake.take({ message, recipients: envelope.recipients, content: this.#parts.takeAll(), ...submitter })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Our own trouble refuses the message for now; it never loses it. */
  #failed(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) this.#port.report(`${this.queueId}: cannot take a message`, error)
    this.refuse(WRITE_ERROR)
  }
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
