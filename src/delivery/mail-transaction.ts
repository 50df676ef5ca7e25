/**
 * One mail transaction: MAIL, RCPT for each recipient, DATA, the content, the dot. With PIPELINING the envelope goes out
 * in one write (RFC 2920); a kept connection is reset first, in the same write. Success needs the whole content sent and
 * then a reply to the dot.
 */
import type { LeasedRecipient, Message } from '../queue/message.ts'
import type { Instant } from '../mail/clock.ts'
import { DotStuffing } from './dot-stuffing.ts'
import { isSendable, mailCommand, needsUtf8, rcptCommand, type Extensions } from './envelope-commands.ts'
import type { MessageSource, Piece } from './message-source.ts'
import type { ServerReply } from './reply-reader.ts'
import type { Transcript, Trouble } from './transcript.ts'

/** A command that waits for its reply; what it is, for deadlines and reasons. */
export type Step = 'rset' | 'mail' | 'rcpt' | 'data' | 'end-of-data'

export interface Command {
  readonly text: string
  readonly step: Step
}

/** The connection as a transaction sees it. Promises resolve with undefined when it broke; `trouble` then says how. */
export interface Line {
  readonly extensions: Extensions
  readonly trouble: Trouble | undefined
  now(): Instant
  /** Sends commands in one write; their replies are awaited in this order. */
  request(commands: readonly Command[]): Promise<ServerReply | undefined>[]
  /** Content follows: a reply from now on comes too early. */
  beginContent(): void
  /** Writes content; resolves when more may be written, false when the connection broke. */
  write(bytes: Uint8Array): Promise<boolean>
  /** Writes the end of the content and awaits `count` replies, which count only when everything has left this process. */
  finish(bytes: Uint8Array, count: number): Promise<ServerReply | undefined>[]
  /** Drops the connection without another word. */
  drop(): void
}

export interface Mail {
  readonly message: Message
  readonly recipients: readonly LeasedRecipient[]
  readonly source: MessageSource
  /** A reply for each recipient after the dot (RFC 2033). */
  readonly lmtp: boolean
  /** Octets that a line may have on the wire; 0 for no limit. */
  readonly lineLimit: number
  /** The connection has been used: RSET first. */
  readonly reset: boolean
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }
type FirstPiece = Extract<Piece, { kind: 'piece' }>

export const isKind = (kind: 2 | 3 | 4 | 5, reply: ServerReply | undefined): boolean => Math.trunc((reply?.code ?? 0) / 100) === kind

/** Replies after which a connection is not kept: syntax errors hint at a conversation out of step (postfix smtp_chat). */
export const isSuspicious = (reply: ServerReply | undefined): boolean =>
  reply !== undefined && ((reply.code >= 500 && reply.code <= 509) || reply.code === 555 || reply.code === 421)

export async function transact(line: Line, mail: Mail): Promise<Transcript> {
  const { message, recipients, source } = mail
  const story = blank(recipients, line.extensions)
  const first = await source.next()
  if (first.kind === 'unreadable') return { ...story, unreadable: first }
  if (!isSendable(message.sender)) return { ...story, unreadable: { why: 'its sender address cannot be sent', lasting: true } }
  const utf8 = needsUtf8(message, recipients, first.bytes)
  const trouble = unfit(message, utf8, line.extensions)
  if (trouble !== undefined) return { ...story, trouble }
  return new Transaction(line, mail, story).run(first, mailCommand(message, utf8, line.extensions))
}

const blank = (recipients: readonly LeasedRecipient[], extensions: Extensions): Writable<Transcript> => ({
  recipients,
  rcpt: [],
  end: [],
  possiblySent: false,
  stale: false,
  dsn: extensions.has('DSN'),
})

/** Why this host cannot take the message at all. */
function unfit(message: Message, utf8: boolean, extensions: Extensions): Trouble | undefined {
  if (utf8 && !extensions.has('SMTPUTF8')) return { kind: 'no-smtputf8' }
  const limit = Number(extensions.get('SIZE') ?? 0)
  return limit > 0 && message.size > limit ? { kind: 'too-big', size: message.size, limit } : undefined
}

class Transaction {
  readonly #line: Line
  readonly #mail: Mail
  readonly #story: Writable<Transcript>

  constructor(line: Line, mail: Mail, story: Writable<Transcript>) {
    this.#line = line
    this.#mail = mail
    this.#story = story
  }

  async run(first: FirstPiece, mailFrom: string): Promise<Transcript> {
    const story = this.#story
    const mail = { text: mailFrom, step: 'mail' } as const
    const rcpts = this.#mail.recipients.map((recipient) => ({ text: rcptCommand(recipient, this.#line.extensions), step: 'rcpt' }) as const)
    const accepted = await (this.#line.extensions.has('PIPELINING') ? this.#atOnce(mail, rcpts) : this.#inTurn(mail, rcpts))
    if (accepted > 0 && isKind(3, story.data)) await this.#content(first, accepted)
    story.trouble = this.#line.trouble
    return story
  }

  /** The envelope in one write. Returns how many recipients were accepted; 0 when it is no use to go on. */
  async #atOnce(mail: Command, rcpts: readonly Command[]): Promise<number> {
    const story = this.#story
    const reset: readonly Command[] = this.#mail.reset ? [{ text: 'RSET', step: 'rset' }] : []
    story.mailAt = this.#line.now()
    const replies = this.#line.request([...reset, mail, ...rcpts, { text: 'DATA', step: 'data' }])
    if (this.#mail.reset && !(await this.#isFresh(replies.shift()))) return 0
    story.mail = await replies.shift()
    const rcpt: (ServerReply | undefined)[] = []
    story.rcpt = rcpt
    for (let i = 0; i < rcpts.length; i++) rcpt.push(await replies[i])
    story.data = await replies.at(-1)
    if (!isKind(2, story.mail)) {
      // It took DATA without a sender: nobody knows what it would do with a dot.
      if (isKind(3, story.data)) this.#line.drop()
      return 0
    }
    const accepted = rcpt.filter((reply) => isKind(2, reply)).length
    // It took DATA without a recipient: an empty message ends the transaction (RFC 2920 §3.1).
    if (accepted === 0 && isKind(3, story.data)) await Promise.all(this.#line.finish(Buffer.from('.\r\n'), 1))
    return accepted
  }

  /** One command at a time, for hosts without PIPELINING. */
  async #inTurn(mail: Command, rcpts: readonly Command[]): Promise<number> {
    const story = this.#story
    if (this.#mail.reset && !(await this.#isFresh(this.#line.request([{ text: 'RSET', step: 'rset' }])[0]))) return 0
    story.mailAt = this.#line.now()
    story.mail = await this.#line.request([mail])[0]
    if (!isKind(2, story.mail)) return 0
    const rcpt: (ServerReply | undefined)[] = []
    story.rcpt = rcpt
    for (const command of rcpts) rcpt.push(await this.#line.request([command])[0])
    const accepted = rcpt.filter((reply) => isKind(2, reply)).length
    if (accepted > 0) story.data = await this.#line.request([{ text: 'DATA', step: 'data' }])[0]
    return accepted
  }

  /** A kept connection that does not answer RSET well was dead all along: that says nothing about the host. */
  async #isFresh(reset: Promise<ServerReply | undefined> | undefined): Promise<boolean> {
    if (isKind(2, await reset)) return true
    this.#story.stale = true
    this.#story.mailAt = undefined
    this.#line.drop()
    return false
  }

  async #content(first: FirstPiece, accepted: number): Promise<void> {
    const line = this.#line
    const stuffing = new DotStuffing(this.#mail.lineLimit)
    let piece: Piece = first
    line.beginContent()
    while (piece.kind === 'piece' && !piece.last) {
      if (!(await line.write(stuffing.encode(piece.bytes)))) return
      piece = await this.#mail.source.next()
    }
    if (piece.kind === 'unreadable') {
      // Without the dot the far side forgets the message (RFC 5321 §4.1.1.4).
      this.#story.unreadable = piece
      line.drop()
      return
    }
    if (line.trouble !== undefined) return
    const replies = line.finish(Buffer.concat([stuffing.encode(piece.bytes), Buffer.from(stuffing.end())]), this.#mail.lmtp ? accepted : 1)
    this.#story.end = await Promise.all(replies)
    this.#story.possiblySent = this.#story.end.includes(undefined)
  }
}
