/**
 * Accepts submissions: prepends the Received field, completes the header of local mail, and refuses messages that are too big or
 * that loop. It reports a message as queued when the message is on disk.
 */
import { fieldOfKey } from '../../config/values/limit-terms.ts'
import type { Config } from '../../config/options.ts'
import { SECOND, type Clock, type QueueTime } from '../../system/clock.ts'
import type { Completion } from '../../mail/header-addresses.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { acceptedTimes, timeProblem } from '../../mail/message-times.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { mailDate } from '../../mail/mail-date.ts'
import type { MessageSigning } from '../../dkim/message-signing.ts'
import type { ContentRules } from '../../checks/checked-content.ts'
import { NamedShares } from './share-key.ts'
import type { ClassChoice } from './class-choice.ts'
import type { Rewriting } from '../../rewriting/rewriting.ts'
import type { Events } from '../../telemetry/events.ts'
import { receivedLine, type LocalUser, type SmtpClient } from './received-header.ts'
import { MessageLookups } from './message-lookups.ts'
import type { Additions } from './missing-fields.ts'
import { StoreUnavailable } from '../../store/queue-store.ts'
import { WRITE_ERROR, type NewIdentity } from './intake.ts'
import type { ContentChecks, Handling } from './arriving-content.ts'
import {
  MessageReceiver,
  type Acceptance,
  type KeepRequest,
  type IntakePort,
  type ReceiverFacts,
  type MessageReceiverDeps,
} from './message-receiver.ts'

export type { Acceptance } from './message-receiver.ts'
export type { Handling } from './arriving-content.ts'
export type { LocalUser, SmtpClient } from './received-header.ts'

/** A submission: the envelope of a message, and the client or user who submitted it. */
export interface Submission {
  readonly envelope: Envelope
  readonly client: SmtpClient | LocalUser
  /** Maximum size in bytes, 0 for no limit; message_size_limit when absent. */
  readonly sizeLimit?: number | undefined
  /** Size that the client declared, in bytes; 0 or absent for none. */
  readonly declaredSize?: number | undefined
  /** Absent for ordinary treatment. */
  readonly handling?: Handling | undefined
  /** Absent for a submission that may be queued each time it is sent. */
  readonly keep?: KeepRequest | undefined
  /** Class of the listener; empty or absent for none. */
  readonly listenerClass?: string | undefined
}

/** Takes the content of one message. */
export type ContentTaker = Pick<MessageReceiver, 'write' | 'end' | 'abandon' | 'refuse' | 'refusal' | 'staging' | 'octets' | 'queueId'>

/** Takes messages of an SMTP session. */
export interface MessageTaker {
  /** Begins a message. The caller writes the content with CRLF line ends, then calls `end` or `abandon`. */
  open(submission: Submission): ContentTaker
}

type AcceptSettings = Pick<
  Config,
  | 'myhostname'
  | 'mydomain'
  | 'myorigin'
  | 'mail_name'
  | 'message_size_limit'
  | 'header_size_limit'
  | 'hopcount_limit'
  | 'message_drop_headers'
  | 'append_at_myorigin'
  | 'append_dot_mydomain'
  | 'smtpd_future_release_limit'
  | 'queue_index_headers'
  | 'quota'
  | 'share_key'
  | 'class'
>

const HELD_TOO_LONG: SmtpReply = { code: 501, status: '5.5.4', text: 'Error: the message is held longer than smtpd_future_release_limit' }

interface AcceptorDeps {
  readonly intake: IntakePort
  readonly config: AcceptSettings
  readonly clock: Clock
  readonly events: Events
  /** Rewrites addresses; null or absent when no parameter asks for it. */
  readonly rewriting?: Rewriting | null | undefined
  /** Signs the mail of own clients; null or absent without DKIM tables. */
  readonly signing?: MessageSigning | null | undefined
  /** Checks of the content; null or absent without any. */
  readonly checks?: ContentRules<'body'> | null | undefined
  /** Decides about classes; null or absent without any. */
  readonly classes?: ClassChoice | null | undefined
}

export class Acceptor implements MessageTaker {
  readonly #deps: AcceptorDeps
  readonly #receiverDeps: MessageReceiverDeps
  readonly #mailerDaemon: string
  readonly #completion: Completion
  /** The last formatted date. A busy relay receives many messages within one second. */
  #date: { readonly second: number; readonly text: string } = { second: Number.NaN, text: '' }

  constructor(deps: AcceptorDeps) {
    const { intake, config, events } = deps
    const shares = new NamedShares(config)
    this.#deps = deps
    this.#mailerDaemon = `mailer-daemon@${config.myorigin}`.toLowerCase()
    this.#completion = {
      origin: config.append_at_myorigin ? config.myorigin : null,
      parent: config.append_dot_mydomain ? config.mydomain : null,
    }
    this.#receiverDeps = {
      intake,
      limits: {
        headerField: config.header_size_limit,
        hops: config.hopcount_limit,
        dropped: new Set([...config.message_drop_headers.map((name) => name.toLowerCase()), ...shares.fields]),
        keepsTexts: config.queue_index_headers,
        read: new Set([...[...config.quota.values()].flatMap(({ key }) => fieldOfKey(key) ?? []), ...shares.fields]),
      },
      shares,
      discarded: ({ identity: { queueId }, envelope: { sender }, submitter: { client, uid } }, messageId) =>
        events.emit({ kind: 'discarded', queueId, sender, messageId, client, uid }),
      lookupFailed: (queueId, reason) => this.#lookupFailed(queueId, reason),
      report: (what, error) =>
        events.emit({ kind: 'note', level: 'error', text: `${what}: ${error instanceof Error ? error.message : String(error)}` }),
    }
  }

  /** Begins a message. The caller writes the content with CRLF line ends, then calls `end` or `abandon`. */
  open({ envelope: given, client, sizeLimit, declaredSize = 0, handling, keep, listenerClass = '' }: Submission): MessageReceiver {
    const { config } = this.#deps
    // MAILER-DAEMON as a sender becomes the null sender, as in Postfix cleanup, because that address has no mailbox.
    const received = given.sender.toLowerCase() === this.#mailerDaemon ? { ...given, sender: '' } : given
    const begun = this.#begin()
    const identity = begun ?? { id: 0, queueId: 'NOQUEUE', arrivedAt: this.#deps.clock.now() }
    const date = this.#dateOf(identity.arrivedAt)
    const trace = receivedLine({
      client,
      myhostname: config.myhostname,
      mailName: config.mail_name,
      queueId: identity.queueId,
      recipients: received.recipients,
      date,
      priority: given.priority,
    })
    const lookups = this.#lookups(identity.queueId)
    const envelope = lookups?.envelope(received) ?? received
    const isLocal = 'uid' in client || client.local
    const additions = isLocal ? this.#additions(identity.queueId, envelope.sender, date) : null
    const completion = isLocal ? (lookups?.completion(this.#completion) ?? this.#completion) : null
    const isOwn = 'uid' in client || client.own
    const moment = { now: identity.arrivedAt, wall: this.#deps.clock.wall }
    const times = acceptedTimes(envelope, moment)
    const facts = {
      identity,
      envelope,
      given: { sender: received.sender, recipients: received.recipients.length },
      times,
      trace,
      sizeLimit: sizeLimit ?? config.message_size_limit,
      declaredSize,
      additions,
      completion,
      signing: isOwn ? (this.#deps.signing?.begin(identity.queueId) ?? null) : null,
      submitter: submitterOf(client),
      checks: this.#checks(identity.queueId, envelope, client),
      handling: handling ?? null,
      keep: keep ?? null,
      classes: this.#deps.classes ?? null,
      listenerClass,
    }
    const receiver = new MessageReceiver(facts, this.#receiverDeps)
    if (begun === null) receiver.refuse(WRITE_ERROR)
    // The other ways in have looked before. A file in the maildrop may be any user's.
    if (envelope.release !== undefined && timeProblem(envelope.release, moment, config.smtpd_future_release_limit) === 'too-far')
      receiver.refuse(HELD_TOO_LONG)
    lookups?.onFailure((reply) => receiver.refuse(reply))
    return receiver
  }

  #checks(queueId: string, { sender, recipients }: Envelope, client: SmtpClient | LocalUser): ContentChecks | null {
    const { checks: rules, events } = this.#deps
    if (rules === null || rules === undefined) return null
    const { client: name } = submitterOf(client)
    const session = 'uid' in client ? { protocol: undefined, helo: undefined } : { protocol: client.protocol, helo: client.helo }
    const from = { client: name, sender, recipient: recipients.at(-1)?.address ?? '', ...session }
    return {
      rules,
      report: {
        took: (action, part, octets, text) =>
          events.emit({ kind: 'content-checked', during: 'arrival', queueId, action, part, octets, text, from }),
        warn: (text) => events.emit({ kind: 'note', level: 'warning', text: `${queueId}: ${text}` }),
      },
    }
  }

  #lookups(queueId: string): MessageLookups | null {
    const { rewriting } = this.#deps
    if (rewriting === null || rewriting === undefined) return null
    return new MessageLookups(rewriting, (reason) => this.#lookupFailed(queueId, reason))
  }

  #lookupFailed(queueId: string, reason: string): void {
    this.#deps.events.emit({ kind: 'note', level: 'error', text: `${queueId}: message not accepted, try again later: ${reason}` })
  }

  /** Accepts a whole message. When reading `content` fails, rejects with that error and queues nothing. */
  async accept(submission: Submission & { readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }): Promise<Acceptance> {
    const receiver = this.open(submission)
    try {
      for await (const piece of submission.content) await receiver.write([piece])
    } catch (error) {
      await receiver.abandon()
      throw error
    }
    return receiver.end()
  }

  /** Returns null when the store has no ids. The message is then refused with 451 at the end of its content. */
  #begin(): NewIdentity | null {
    try {
      return this.#deps.intake.begin()
    } catch (error) {
      if (error instanceof StoreUnavailable) return null
      throw error
    }
  }

  #additions(queueId: string, sender: string, date: string): Additions {
    const { myhostname } = this.#deps.config
    return { 'Message-Id': `<${queueId}@${myhostname}>`, Date: date, From: sender === '' ? 'MAILER-DAEMON' : sender }
  }

  #dateOf(at: QueueTime): string {
    const second = Math.floor(at / SECOND)
    if (second !== this.#date.second) this.#date = { second, text: mailDate(at, this.#deps.clock) }
    return this.#date.text
  }
}

function submitterOf(client: SmtpClient | LocalUser): ReceiverFacts['submitter'] {
  if ('uid' in client) return { client: null, uid: client.uid, maildropFile: client.maildropFile }
  const { name, address, saslUsername, saslMethod, upstream } = client
  return { client: { name, address }, saslUsername, saslMethod, upstream }
}
