/**
 * One mail transaction: MAIL, RCPT for each recipient, DATA, the content, and the final dot; BDAT in place of DATA and dot when the
 * host supports CHUNKING (RFC 3030). With PIPELINING, the envelope is sent in one write (RFC 2920). On a cached connection, that
 * write begins with RSET. The transaction succeeds with a 2xx reply to the dot, or to BDAT with LAST, after the whole content was
 * sent.
 */
import type { LeasedRecipient, Message } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { ContentEncoding } from '../../mail/content-encoding.ts'
import { isSendable, mailCommand, needsUtf8, rcptCommand, type Extensions } from './envelope-commands.ts'
import { byParameter, deliverByEnds, deliverByFailure, notifyOfDelay } from './onward-deliver-by.ts'
import type { ContentRead, ContentSource } from './message-content.ts'
import type { ServerReply } from '../reply-reader.ts'
import type { Transcript, SessionFailure } from '../transcript.ts'

/** A command of the transaction. Time limits and reasons differ by step. */
export type Step = 'rset' | 'mail' | 'rcpt' | 'data' | 'bdat' | 'end-of-data'

export interface Command {
  readonly text: string
  readonly step: Step
}

/** A connection as the transaction uses it. After a failure, promises resolve with undefined and `failure` has the reason. */
export interface CommandChannel {
  readonly extensions: Extensions
  readonly failure: SessionFailure | undefined
  now(): QueueTime
  /** Sends commands in one write. Returns their replies in the same order. */
  request(commands: readonly Command[]): Promise<ServerReply | undefined>[]
  /** Announces content. Until its end, a 2xx or 3xx reply is a protocol error. */
  beginContent(): void
  /** Writes content. Resolves with true when more may be written, and with false when the connection failed. */
  write(bytes: Uint8Array): Promise<boolean>
  /** Writes the end of the content, with BDAT behind its command, and returns `count` replies. A 2xx reply is accepted only after this process has sent all bytes. */
  finish(bytes: Uint8Array, count: number, command?: string): Promise<ServerReply | undefined>[]
  /** Writes a BDAT command with its chunk, not the last one, and returns the reply. A 2xx reply is accepted as for `finish`. */
  chunk(bytes: Uint8Array, command: string): Promise<ServerReply | undefined>
  /** Closes the connection without QUIT. */
  drop(): void
}

export interface Mail {
  readonly message: Message
  readonly recipients: readonly LeasedRecipient[]
  readonly content: ContentSource
  /** True to expect one reply per accepted recipient after the dot (RFC 2033). */
  readonly lmtp: boolean
  /** smtp_line_length_limit: maximum octets of a line; 0 for no limit. */
  readonly lineLimit: number
  /** True to send RSET first, because the connection was used before. */
  readonly reset: boolean
  /** Priority of its class for hosts with MT-PRIORITY; null for none. */
  readonly priority: number | null
  /** smtp_deliver_by_required */
  readonly deliverByRequired: boolean
  /** True while MAIL may be sent; see Membership.holds. */
  readonly holds: () => boolean
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }
type FirstChunk = Extract<ContentRead, { kind: 'chunk' }>

export const isKind = (kind: 2 | 3 | 4 | 5, reply: ServerReply | undefined): boolean => Math.trunc((reply?.code ?? 0) / 100) === kind

/**
 * True for a reply after which a connection is not reused: a syntax error may mean that both ends are out of step (Postfix smtp_chat.c).
 */
export const isSuspicious = (reply: ServerReply | undefined): boolean =>
  reply !== undefined && ((reply.code >= 500 && reply.code <= 509) || reply.code === 555 || reply.code === 421)

export async function transact(channel: CommandChannel, mail: Mail): Promise<Transcript> {
  const { message, recipients, content } = mail
  const transcript = blank(mail, channel.extensions)
  const first = await content.next()
  if (first.kind === 'unreadable') return { ...transcript, unreadable: first }
  if (!isSendable(message.sender)) return { ...transcript, unreadable: { why: 'its sender address cannot be sent', lasting: true } }
  const utf8 = needsUtf8(message, recipients, first.bytes)
  const failure = unfit(mail, utf8, channel)
  if (failure !== undefined) return { ...transcript, failure }
  return new Transaction(channel, mail, transcript).run(first, utf8)
}

const blank = ({ message, recipients, lmtp }: Mail, extensions: Extensions): Writable<Transcript> => ({
  recipients,
  rcpt: [],
  end: [],
  possiblySent: false,
  stale: false,
  dsn: extensions.has('DSN'),
  deliverByEnds: !lmtp && deliverByEnds(message, extensions),
  eightBit: extensions.has('8BITMIME'),
  // LMTP does not define the number of replies to BDAT (RFC 2033, RFC 3030).
  chunking: extensions.has('CHUNKING') && !lmtp,
})

/** Reason why this host cannot accept the message at all; undefined when it can. */
function unfit({ message, lmtp, deliverByRequired }: Mail, utf8: boolean, channel: CommandChannel): SessionFailure | undefined {
  const { extensions } = channel
  if (utf8 && !extensions.has('SMTPUTF8')) return { kind: 'no-smtputf8' }
  const limit = Number(extensions.get('SIZE') ?? 0)
  if (limit > 0 && message.size > limit) return { kind: 'too-big', size: message.size, limit }
  return deliverByRequired && !lmtp ? deliverByFailure(message, extensions, channel.now()) : undefined
}

const DATA: Command = { text: 'DATA', step: 'data' }

class Transaction {
  readonly #channel: CommandChannel
  readonly #mail: Mail
  readonly #transcript: Writable<Transcript>

  constructor(channel: CommandChannel, mail: Mail, transcript: Writable<Transcript>) {
    this.#channel = channel
    this.#mail = mail
    this.#transcript = transcript
  }

  async run(first: FirstChunk, utf8: boolean): Promise<Transcript> {
    const transcript = this.#transcript
    const { extensions } = this.#channel
    const rcpts = this.#mail.recipients.map((recipient) => {
      const asked = transcript.deliverByEnds ? { ...recipient, notify: notifyOfDelay(recipient.notify) } : recipient
      return { text: rcptCommand(asked, extensions), step: 'rcpt' } as const
    })
    const accepted = await (extensions.has('PIPELINING') ? this.#pipelined(utf8, rcpts) : this.#inTurn(utf8, rcpts))
    if (accepted > 0 && transcript.chunking) await this.#sendChunks(first)
    else if (accepted > 0 && isKind(3, transcript.data)) await this.#sendContent(first, accepted)
    transcript.failure = this.#channel.failure
    return transcript
  }

  /** Sends the envelope in one write. Returns the number of accepted recipients, or 0 when no content must be sent. */
  async #pipelined(utf8: boolean, rcpts: readonly Command[]): Promise<number> {
    const transcript = this.#transcript
    if (this.#isLeaseOver()) return 0
    const reset: readonly Command[] = this.#mail.reset ? [{ text: 'RSET', step: 'rset' }] : []
    transcript.mailAt = this.#channel.now()
    const data: readonly Command[] = transcript.chunking ? [] : [DATA]
    const replies = this.#channel.request([...reset, this.#mailFrom(utf8, transcript.mailAt), ...rcpts, ...data])
    if (this.#mail.reset && !(await this.#isFresh(replies.shift()))) return 0
    transcript.mail = await replies.shift()
    const rcpt: (ServerReply | undefined)[] = []
    transcript.rcpt = rcpt
    for (let i = 0; i < rcpts.length; i++) rcpt.push(await replies[i])
    if (!transcript.chunking) transcript.data = await replies.at(-1)
    if (!isKind(2, transcript.mail)) {
      // The host accepted DATA after it had refused MAIL, so its reaction to a dot is unpredictable.
      if (isKind(3, transcript.data)) this.#channel.drop()
      return 0
    }
    const accepted = rcpt.filter((reply) => isKind(2, reply)).length
    // The host accepted DATA after it had refused all recipients. An empty message ends the transaction (RFC 2920 §3.1).
    if (accepted === 0 && isKind(3, transcript.data)) await Promise.all(this.#channel.finish(Buffer.from('.\r\n'), 1))
    return accepted
  }

  /** Sends one command at a time, to hosts without PIPELINING. */
  async #inTurn(utf8: boolean, rcpts: readonly Command[]): Promise<number> {
    const transcript = this.#transcript
    if (this.#mail.reset && !(await this.#isFresh(this.#channel.request([{ text: 'RSET', step: 'rset' }])[0]))) return 0
    if (this.#isLeaseOver()) return 0
    transcript.mailAt = this.#channel.now()
    transcript.mail = await this.#channel.request([this.#mailFrom(utf8, transcript.mailAt)])[0]
    if (!isKind(2, transcript.mail)) return 0
    const rcpt: (ServerReply | undefined)[] = []
    transcript.rcpt = rcpt
    for (const command of rcpts) rcpt.push(await this.#channel.request([command])[0])
    const accepted = rcpt.filter((reply) => isKind(2, reply)).length
    if (accepted > 0 && !transcript.chunking) transcript.data = await this.#channel.request([DATA])[0]
    return accepted
  }

  /** MAIL at this time, from which the seconds of BY are counted. */
  #mailFrom(utf8: boolean, now: QueueTime): Command {
    const { message, priority } = this.#mail
    const { extensions } = this.#channel
    return { text: mailCommand(message, { utf8, by: byParameter(message, extensions, now), priority }, extensions), step: 'mail' }
  }

  /** True when MAIL must not be sent. Asked immediately before, because the process may have been stopped since the last command. */
  #isLeaseOver(): boolean {
    if (this.#mail.holds()) return false
    this.#transcript.leaseEnded = true
    return true
  }

  /** False for a cached connection without a 2xx reply to RSET. The connection was closed before, which is not a failure of the host. */
  async #isFresh(reset: Promise<ServerReply | undefined> | undefined): Promise<boolean> {
    if (isKind(2, await reset)) return true
    this.#transcript.stale = true
    this.#transcript.mailAt = undefined
    this.#channel.drop()
    return false
  }

  async #sendContent(first: FirstChunk, accepted: number): Promise<void> {
    const channel = this.#channel
    const encoding = new ContentEncoding(this.#mail.lineLimit)
    let chunk: ContentRead = first
    channel.beginContent()
    while (chunk.kind === 'chunk' && !chunk.last) {
      if (!(await channel.write(encoding.encode(chunk.bytes)))) return
      chunk = await this.#mail.content.next()
    }
    // A host that gets no dot discards the message (RFC 5321 §4.1.1.4).
    if (chunk.kind === 'unreadable') return this.#abort(chunk)
    if (channel.failure !== undefined) return
    const replies = channel.finish(
      Buffer.concat([encoding.encode(chunk.bytes), Buffer.from(encoding.end())]),
      this.#mail.lmtp ? accepted : 1,
    )
    this.#transcript.end = await Promise.all(replies)
    this.#transcript.possiblySent = this.#transcript.end.includes(undefined)
  }

  /**
   * Sends the content with BDAT, each chunk after the 2xx reply to the previous one. The lines are those that DATA transfers,
   * without doubled dots. A refused chunk ends the transaction; RSET or QUIT follows.
   */
  async #sendChunks(first: FirstChunk): Promise<void> {
    const channel = this.#channel
    const encoding = new ContentEncoding(this.#mail.lineLimit, 'BDAT')
    let chunk: ContentRead = first
    channel.beginContent()
    while (chunk.kind === 'chunk' && !chunk.last) {
      const bytes = encoding.encode(chunk.bytes)
      const reply = await channel.chunk(bytes, bdat(bytes))
      if (reply === undefined) return
      if (!isKind(2, reply)) {
        this.#transcript.end = [reply]
        return
      }
      channel.beginContent()
      chunk = await this.#mail.content.next()
    }
    // A host that gets no LAST discards the message (RFC 3030 §2).
    if (chunk.kind === 'unreadable') return this.#abort(chunk)
    if (channel.failure !== undefined) return
    const last = Buffer.concat([encoding.encode(chunk.bytes), Buffer.from(encoding.lineEnd())])
    this.#transcript.end = await Promise.all(channel.finish(last, 1, bdat(last, ' LAST')))
    this.#transcript.possiblySent = this.#transcript.end.includes(undefined)
  }

  /** Closes the connection before the end of a content that could not be read. */
  #abort(content: Extract<ContentRead, { kind: 'unreadable' }>): void {
    this.#transcript.unreadable = content
    this.#channel.drop()
  }
}

const bdat = (chunk: Uint8Array, last = ''): string => `BDAT ${chunk.length}${last}`
