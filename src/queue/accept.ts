/**
 * Where a submission becomes mail: puts our trace on top, completes the header of local mail, refuses what is too big
 * or runs in circles, and hands the message to the queue. "Queued" is said when it is on disk, never before.
 */
import type { Config } from '../config/options.ts'
import { SECOND, type Clock, type Instant } from '../mail/clock.ts'
import type { Envelope } from '../mail/envelope.ts'
import { formatMailDate } from '../mail/mail-date.ts'
import type { Events } from '../telemetry/events.ts'
import { receivedLine, type LocalUser, type SmtpClient } from './received.ts'
import { Receipt, type Acceptance, type Additions, type IntakePort, type ReceiptFacts, type ReceiptParts } from './receipt.ts'

export type { Acceptance } from './receipt.ts'
export type { LocalUser, SmtpClient } from './received.ts'

/** Who hands in what. */
export interface Submission {
  readonly envelope: Envelope
  readonly client: SmtpClient | LocalUser
}

type AcceptSettings = Pick<
  Config,
  'myhostname' | 'myorigin' | 'mail_name' | 'message_size_limit' | 'header_size_limit' | 'hopcount_limit' | 'message_drop_headers'
>

export interface AcceptorParts {
  readonly intake: IntakePort
  readonly config: AcceptSettings
  readonly clock: Clock
  readonly events: Events
}

export class Acceptor {
  readonly #parts: AcceptorParts
  readonly #receiptParts: ReceiptParts
  readonly #mailerDaemon: string
  /** The date of the last message: most messages arrive within the second of another. */
  #date: { readonly second: number; readonly text: string } = { second: Number.NaN, text: '' }

  constructor(parts: AcceptorParts) {
    const { intake, config, events } = parts
    this.#parts = parts
    this.#mailerDaemon = `mailer-daemon@${config.myorigin}`.toLowerCase()
    this.#receiptParts = {
      intake,
      limits: {
        message: config.message_size_limit,
        header: config.header_size_limit,
        hops: config.hopcount_limit,
        dropped: new Set(config.message_drop_headers.map((name) => name.toLowerCase())),
      },
      report: (what, error) =>
        events.emit({ kind: 'note', level: 'error', text: `${what}: ${error instanceof Error ? error.message : String(error)}` }),
    }
  }

  /** Begins a message whose content the caller will push, with CRLF line ends; `end` or `abandon` it. */
  open({ envelope: asked, client }: Submission): Receipt {
    const { intake, config } = this.#parts
    // Nobody answers there: it is another way to write the null sender (postfix cleanup).
    const envelope = asked.sender.toLowerCase() === this.#mailerDaemon ? { ...asked, sender: '' } : asked
    const identity = intake.begin()
    const date = this.#dateOf(identity.arrivedAt)
    const trace = receivedLine({
      client,
      myhostname: config.myhostname,
      mailName: config.mail_name,
      queueId: identity.queueId,
      recipients: envelope.recipients,
      date,
    })
    const ours = 'uid' in client || client.local
    const additions = ours ? this.#additions(identity.queueId, envelope.sender, date) : null
    return new Receipt({ identity, envelope, trace, additions, submitter: submitterOf(client) }, this.#receiptParts)
  }

  /** Takes a whole message. A content that fails while it is read is no mail, and its error is the caller's. */
  async accept(submission: Submission & { readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }): Promise<Acceptance> {
    const receipt = this.open(submission)
    try {
      for await (const piece of submission.content) await receipt.write([piece])
    } catch (error) {
      await receipt.abandon()
      throw error
    }
    return receipt.end()
  }

  #additions(queueId: string, sender: string, date: string): Additions {
    const { myhostname, myorigin } = this.#parts.config
    return { 'Message-Id': `<${queueId}@${myhostname}>`, Date: date, From: sender === '' ? `MAILER-DAEMON@${myorigin}` : sender }
  }

  #dateOf(at: Instant): string {
    const second = Math.floor(at / SECOND)
    if (second !== this.#date.second) this.#date = { second, text: formatMailDate(at, this.#parts.clock.zone(at)) }
    return this.#date.text
  }
}

function submitterOf(client: SmtpClient | LocalUser): ReceiptFacts['submitter'] {
  if ('uid' in client) return { client: null, uid: client.uid }
  const { name, address, saslUsername, saslMethod } = client
  return { client: { name, address }, saslUsername, saslMethod }
}
