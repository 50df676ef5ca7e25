/** Mail of a queue in memory as one of its owners sees it. The parts of the store share it. */
import { isLive, messageOf, type OwnerId, type RecipientId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { depart } from './operate.ts'
import type { QueueOwner } from './queue-owner.ts'
import { isKept, type HeldMessage, type HeldRecipient, type MemoryQueue } from './queue-state.ts'

export class HeldMail {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner

  constructor(queue: MemoryQueue, owner: QueueOwner) {
    this.#queue = queue
    this.#owner = owner
  }

  find(id: RecipientId): [HeldMessage | undefined, HeldRecipient | undefined] {
    const held = this.#queue.messages.get(messageOf(id))
    return [held, held?.recipients.find((one) => one.id === id)]
  }

  /** Waiting recipients at own destinations that satisfy `wanted`, earliest due first. */
  waiting(wanted: (recipient: HeldRecipient) => boolean): HeldRecipient[] {
    const found: HeldRecipient[] = []
    for (const { recipients } of this.#queue.messages.values()) {
      for (const one of recipients) if (one.state === 'waiting' && wanted(one) && this.#owner.owns(one.destination)) found.push(one)
    }
    return found.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id)
  }

  /** Messages whose sender is warned about the delay, with the times of the warnings. */
  toBeWarned(): { readonly held: HeldMessage; readonly at: QueueTime }[] {
    return [...this.#queue.messages.values()].flatMap((held) =>
      held.placement === 'queued' && held.warnAt !== null && held.recipients.some(isLive) && this.#owner.isHome(held)
        ? [{ held, at: held.warnAt }]
        : [],
    )
  }

  /** Reports a waiting recipient to the owner of its destination. */
  tellDue({ state, destination, dueAt }: HeldRecipient): void {
    if (state === 'waiting') this.#owner.due({ destination, dueAt, revive: false })
  }

  /** Whether a recipient is leased by this owner, which the caller names. */
  isLease(one: HeldRecipient | undefined, owner: OwnerId): one is HeldRecipient {
    return one !== undefined && owner === this.#owner.id && this.#owner.leases(one)
  }

  /** Removes a message that has nothing left to do. Returns true for one that has left. */
  leaves(held: HeldMessage, keepUntil?: QueueTime): boolean {
    if (isKept(held)) return false
    depart(this.#queue, held, keepUntil)
    return true
  }
}
