/** One address as a test asks about it: what was tried, how it ended, what its sender heard. */
import type { Attempt, Entry } from './ledger.ts'
import type { Mailbox } from './mailbox.ts'
import { tell } from './story.ts'

export class Recipient {
  readonly address: string
  readonly #entries: readonly Entry[]
  readonly #mailbox: Mailbox

  constructor(address: string, entries: readonly Entry[], mailbox: Mailbox) {
    this.address = address
    this.#entries = entries
    this.#mailbox = mailbox
  }

  /** Oldest first; of all messages to the address. */
  get attempts(): readonly Attempt[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'attempt' ? [entry.attempt] : []))
  }

  /** Those that were really made: seconds since the message was accepted. */
  get attemptedAt(): readonly number[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'attempt' && entry.tried ? [entry.attempt.at] : []))
  }

  /** The kinds of notices that its senders were sent. */
  get notices(): readonly ('failure' | 'delay' | 'success')[] {
    return this.#entries.flatMap((entry) => (entry.kind === 'notice' && entry.to === 'sender' ? [entry.notice] : []))
  }

  /** How many messages for it were accepted. */
  get accepted(): number {
    return this.#entries.filter(({ kind }) => kind === 'accepted').length
  }

  /** How many copies of each message lie in its mailbox, by Message-ID. */
  get copies(): readonly number[] {
    const copies = new Map<string, number>()
    for (const mail of this.#mailbox.mails()) {
      const id = mail.header('message-id') ?? mail.content
      copies.set(id, (copies.get(id) ?? 0) + 1)
    }
    return [...copies.values()]
  }

  /** One line for each event. */
  get story(): readonly string[] {
    return tell(this.#entries)
  }
}
