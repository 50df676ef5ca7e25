/** History of one recipient address: attempts, outcomes, and the notices to its senders. */
import type { Attempt, Entry } from './recipient-log.ts'
import type { Mailbox } from './mailbox.ts'
import { timelineOf } from './timeline.ts'

interface RecipientRecord {
  readonly entries: readonly Entry[]
  readonly mailbox: Mailbox
  /** All addresses for which the relay has accepted mail, listed when it has accepted none for this address. */
  readonly known: readonly string[]
  readonly seed: number
}

/** One recipient address as of the call to `world.recipient`. The matchers are applied to it. */
export class Recipient {
  /** Address, its domain in lower case. */
  readonly address: string
  /** Seed of the world, for messages of matchers. @internal */
  readonly seed: number
  readonly #entries: readonly Entry[]
  readonly #mailbox: Mailbox
  /** All addresses for which the relay has accepted mail, to name them when this one has none. @internal */
  readonly known: readonly string[]

  /** @internal Use `world.recipient`. */
  constructor(address: string, { entries, mailbox, known, seed }: RecipientRecord) {
    this.address = address
    this.seed = seed
    this.known = known
    this.#entries = entries
    this.#mailbox = mailbox
  }

  /** Attempts for all messages to the address, oldest first. An expiry between two attempts counts as one. */
  get attempts(): readonly Attempt[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'attempt' ? [entry.attempt] : []))
  }

  /** Times of the attempts that were made, in seconds since the acceptance of their message. */
  get attemptedAt(): readonly number[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'attempt' && entry.tried ? [entry.attempt.at] : []))
  }

  /** Time in seconds from the acceptance to the first attempt, of each message for which one was made. */
  get startedAfter(): readonly number[] {
    const firsts = new Map<string, number>()
    for (const entry of this.#entries)
      if (entry.kind === 'attempt' && entry.tried && !firsts.has(entry.queueId)) firsts.set(entry.queueId, entry.attempt.at)
    return [...firsts.values()]
  }

  /** Kinds of the notices to the senders, oldest first. */
  get notices(): readonly ('failure' | 'delay' | 'success')[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'notice' && entry.to === 'sender' ? [entry.notice] : []))
  }

  /** Number of messages for which the relay refused the address, because it is on the suppression list. */
  get suppressed(): number {
    return this.#entries.filter(({ kind }) => kind === 'suppressed').length
  }

  /** Number of accepted messages for the address. */
  get accepted(): number {
    return this.#entries.filter(({ kind }) => kind === 'accepted').length
  }

  /** Number of copies of each message in the mailbox. Messages are distinguished by Message-ID. */
  get copies(): readonly number[] {
    const copies = new Map<string, number>()
    for (const mail of this.#mailbox.mails()) {
      const id = mail.header('message-id') ?? mail.content
      copies.set(id, (copies.get(id) ?? 0) + 1)
    }
    return [...copies.values()]
  }

  /** Timeline as text, one line per event, oldest first. */
  get story(): readonly string[] {
    return timelineOf(this.#entries)
  }
}
