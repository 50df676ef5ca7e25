/**
 * Capacity of the active queue. Counts the messages and recipients in memory, waiting or in delivery, against Postfix's limits.
 * Room is reserved before a claim or a commit, so that the limits are never exceeded.
 */
import type { MessageId } from '../../mail/message.ts'
import type { Duration } from '../../system/clock.ts'
import type { SlotPolicy } from './preemption.ts'

export interface ActiveLimits {
  /** `default_process_limit`: maximum number of concurrent deliveries. */
  readonly deliveries: number
  /** `qmgr_message_active_limit`. */
  readonly messages: number
  /** `qmgr_message_recipient_limit`. */
  readonly recipients: number
  readonly slots: SlotPolicy
  /** `default_transport_rate_delay` in ms. With a delay, a transport makes one delivery at a time. */
  readonly transportDelay: Duration
}

export class ActiveQueue {
  readonly #limits: () => ActiveLimits
  /** Number of requests in memory, by message. */
  readonly #requestsOf = new Map<MessageId, number>()
  /** Number of requests in transfer, by message. */
  readonly #inTransfer = new Map<MessageId, number>()
  /** Messages in memory that an operation has taken back. */
  readonly #recalled = new Set<MessageId>()
  #recipients = 0
  /** Number of recipients reserved for running claims. */
  #promised = 0

  constructor(limits: () => ActiveLimits) {
    this.#limits = limits
  }

  /** True while a recipient of the message waits for a slot or is in delivery. */
  holds(message: MessageId): boolean {
    return this.#requestsOf.has(message)
  }

  /** True from the time at which a recipient of the message gets a slot until its outcome is committed. */
  isInTransfer(message: MessageId): boolean {
    return this.#inTransfer.has(message)
  }

  /** Messages in transfer. */
  get transfers(): readonly MessageId[] {
    return [...this.#inTransfer.keys()]
  }

  /** Number of messages for which the active queue has room. */
  get roomForMessages(): number {
    return Math.max(0, this.#limits().messages - this.#requestsOf.size - this.#promised)
  }

  /**
   * Number of recipients for which the active queue has room, at a destination that has `waiting` recipients in memory already.
   * While other destinations wait, one destination gets at most a fifth of the queue. With `leavesRoom`, a fifth of the queue is left to
   * other mail.
   */
  room(waiting: number, { othersWait, leavesRoom }: { readonly othersWait: boolean; readonly leavesRoom: boolean }): number {
    const limits = this.#limits()
    const left = leavesRoom ? Math.ceil(limits.messages / 5) : 0
    if (this.roomForMessages <= left) return 0
    const free = Math.min(limits.recipients - this.#recipients - this.#promised, ...(leavesRoom ? [this.roomForMessages - left] : []))
    if (!othersWait) return Math.max(0, free)
    const share = Math.max(1, Math.floor(Math.min(limits.recipients, limits.messages) / 5))
    return Math.max(0, Math.min(free, share - waiting))
  }

  /**
   * Reserves room for a claim. Each claimed recipient is counted as a message too, because it may belong to a message of its own.
   */
  promise(recipients: number): void {
    this.#promised += recipients
  }

  /** Releases the room reserved for a claim that has ended. */
  redeem(recipients: number): void {
    this.#promised -= recipients
  }

  /** Adds a request to the counts. */
  reserve(message: MessageId, recipients: number): void {
    this.#requestsOf.set(message, (this.#requestsOf.get(message) ?? 0) + 1)
    this.#recipients += recipients
  }

  /** Removes a request from the counts, because it was settled, given back, or not committed. */
  release(message: MessageId, recipients: number): void {
    this.#recipients -= recipients
    countDown(this.#requestsOf, message)
    if (!this.holds(message)) this.#recalled.delete(message)
  }

  /** Notes that an operation takes mail of the message back. */
  recall(message: MessageId): void {
    if (this.holds(message)) this.#recalled.add(message)
  }

  /** True when an operation may have given the message another class since its mail entered memory. */
  wasRecalled(message: MessageId): boolean {
    return this.#recalled.has(message)
  }

  /** Counts a request that has got a slot. */
  begin(message: MessageId): void {
    this.#inTransfer.set(message, (this.#inTransfer.get(message) ?? 0) + 1)
  }

  /** Counts the end of a transfer. */
  end(message: MessageId): void {
    countDown(this.#inTransfer, message)
  }
}

function countDown(counts: Map<MessageId, number>, message: MessageId): void {
  const left = (counts.get(message) ?? 1) - 1
  if (left === 0) counts.delete(message)
  else counts.set(message, left)
}
