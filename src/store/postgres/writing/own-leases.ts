/**
 * The leases of this node, as it knows them. They begin and end only by its own calls, or all at once by a takeover, so that a call
 * about another recipient needs no statement.
 */
import { messageOf, type Message, type MessageId, type Recipient, type RecipientId } from '../../../mail/message.ts'
import type { AttemptRecord } from '../../recorded-outcomes.ts'
import type { MailPath } from '../../decisions/series-notes.ts'

/** A message without a delay warning, all of whose recipients were leased by one call, with what its history record needs. */
export interface WholeMessage {
  readonly message: Message
  readonly recipients: readonly Recipient[]
  readonly attempts: readonly AttemptRecord[]
}

/** A leased recipient. */
export interface OwnLease extends MailPath {
  readonly id: RecipientId
}

/** Maximum size of the contents that wait for their deliveries, in bytes. */
const CONTENTS_AT_MOST = 16 * 1024 * 1024

export class OwnLeases {
  readonly #leased = new Map<RecipientId, MailPath>()
  readonly #whole = new Map<MessageId, WholeMessage>()
  /** Contents that came with their leases. */
  readonly #contents = new Map<MessageId, Uint8Array>()
  #bytes = 0

  add(leases: readonly OwnLease[]): void {
    for (const { id, sender, destination } of leases) this.#leased.set(id, { sender, destination })
  }

  addWhole(one: WholeMessage): void {
    this.#whole.set(one.message.id, one)
  }

  has(recipient: RecipientId): boolean {
    return this.#leased.has(recipient)
  }

  get all(): readonly RecipientId[] {
    return [...this.#leased.keys()]
  }

  /** Sender and destination of a leased recipient. */
  pathOf(recipient: RecipientId): MailPath | undefined {
    return this.#leased.get(recipient)
  }

  /** The message, when `settled` are all its recipients. */
  wholeOf(message: MessageId, settled: readonly RecipientId[]): WholeMessage | undefined {
    const one = this.#whole.get(message)
    return one?.recipients.length === settled.length ? one : undefined
  }

  /** Keeps the content of a leased message for its first read, if there is room. */
  keepContent(message: MessageId, content: Uint8Array): void {
    if (this.#bytes + content.byteLength > CONTENTS_AT_MOST || this.#contents.has(message)) return
    this.#contents.set(message, content)
    this.#bytes += content.byteLength
  }

  /** Returns the content that is kept, once. */
  takeContent(message: MessageId): Uint8Array | undefined {
    const content = this.#contents.get(message)
    if (content === undefined) return undefined
    this.#contents.delete(message)
    this.#bytes -= content.byteLength
    return content
  }

  end(recipients: Iterable<RecipientId>): void {
    for (const id of recipients) {
      this.#leased.delete(id)
      this.#whole.delete(messageOf(id))
      this.takeContent(messageOf(id))
    }
  }
}
