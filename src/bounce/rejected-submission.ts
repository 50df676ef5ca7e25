/**
 * Returns to its sender a message that was submitted through the maildrop and cannot be accepted. `sendmail` has already ended
 * with exit code 0, so only a notice can inform the sender (Postfix pickup(8) and cleanup(8), CLEANUP_FLAG_BOUNCE).
 */
import type { Clock } from '../system/clock.ts'
import type { Envelope } from '../mail/envelope.ts'
import { recipientId, type Message, type Recipient } from '../mail/message.ts'
import { statusOf, type SmtpReply } from '../mail/smtp-reply.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import type { NewMessage } from '../store/new-message.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Events } from '../telemetry/events.ts'
import { noticeDueFor, noticesFor } from './notice.ts'
import { noticeSent, NoticeWriter, type NoticeEntry, type NoticeSettings, type PreparedMessage } from './notice-writer.ts'

export interface RejectedSubmission {
  readonly envelope: Envelope
  /** The reply that an SMTP client would have received. */
  readonly reply: SmtpReply
  /** Size of the content in bytes. */
  readonly size: number
  /** A chunk of the content by its number from 0; undefined after the last one. */
  readonly chunk: (index: number) => Promise<Uint8Array | undefined>
  /** Key of the maildrop file that held the message. */
  readonly maildropFile: string
}

interface SubmissionReturnerDeps {
  readonly store: Pick<QueueStore, 'enqueue'>
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly entry: NoticeEntry
  readonly settings: () => NoticeSettings
}

export class SubmissionReturner {
  readonly #deps: SubmissionReturnerDeps

  constructor(deps: SubmissionReturnerDeps) {
    this.#deps = deps
  }

  /**
   * Queues the notices, which are durable when the promise resolves. Queues none when the rules for notices require none. Rejects
   * with StoreUnavailable.
   */
  async return(rejected: RejectedSubmission): Promise<void> {
    const { entry, settings, clock, events, recorder } = this.#deps
    const { rules } = settings()
    const message = messageOf(rejected, entry.begin())
    const recipients = bouncedRecipients(rejected, message, settings())
    const store = { readChunk: (_content: number, index: number) => rejected.chunk(index) }
    const writer = new NoticeWriter({ store, clock, entry, settings })
    const written = await writer.write(message, noticesFor({ message, recipients, warnings: 0 }, rules))
    // The notice to the sender is committed last, together with the key of the file. A crash before that commit repeats all
    // notices.
    for (const one of written.toReversed()) {
      const { entry: notice } = one.prepared
      const kept = [...(notice.events ?? []), ...(recorder.of(noticeSent(message, one)) ?? [])]
      await this.#enqueue(one.prepared, { ...notice, events: kept, maildropFile: one === written[0] ? rejected.maildropFile : undefined })
    }
    for (const one of written) events.emit(noticeSent(message, one))
  }

  async #enqueue(prepared: PreparedMessage, notice: NewMessage): Promise<void> {
    try {
      await this.#deps.store.enqueue(notice)
    } catch (error) {
      prepared.withdrawn()
      throw error
    }
    prepared.committed()
  }
}

function messageOf({ envelope, size }: RejectedSubmission, { id, arrivedAt }: ReturnType<NoticeEntry['begin']>): Message {
  const { sender, ret, envid, smtputf8 = false, body: bodyType } = envelope
  return { id, createdAt: arrivedAt, arrivedAt, sender, size, contentId: id, ret, envid, smtputf8, bodyType, messageId: undefined }
}

function bouncedRecipients({ envelope, reply }: RejectedSubmission, message: Message, { rules }: NoticeSettings): readonly Recipient[] {
  const last = { status: statusOf(reply), reason: reply.text.replace(/^Error: /, ''), stage: 'queue' } as const
  const { sender, id, arrivedAt: at } = message
  return envelope.recipients.map((recipient, position) => ({
    ...recipient,
    id: recipientId(id, position),
    destination: '',
    state: 'bounced',
    dueAt: at,
    expiresAt: at,
    steps: 0,
    attempts: 0,
    deliveryStarts: 0,
    last,
    settledAt: at,
    noticeDue: noticeDueFor({ outcome: 'bounced', notify: recipient.notify, sender }, rules),
  }))
}
