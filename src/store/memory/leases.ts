/** Leases of recipients in memory: claims of due mail, and the return of recipients that were not attempted. */
import { NO_CLASS, type Band } from '../../config/values/mail-classes.ts'
import {
  messageOf,
  packRequests,
  STARTS_UNTIL_SUSPECT,
  type DestinationName,
  type LeasedMail,
  type LeaseTerms,
  type OwnerId,
  type RecipientId,
} from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { stateAt } from '../decisions/settlement.ts'
import type { Claim, WaitingRecipient, WaitingSlice } from '../queue-store.ts'
import type { HeldMail } from './held-mail.ts'
import type { QueueOwner } from './queue-owner.ts'
import type { HeldRecipient, MemoryQueue } from './queue-state.ts'
import { lease } from './recipient-states.ts'

export class Leases {
  readonly terms: LeaseTerms
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail

  constructor(queue: MemoryQueue, owner: QueueOwner, mail: HeldMail) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
    this.terms = { owner: owner.id, until: Infinity }
  }

  async claimDue({ destination, now, bands, recipientLimit }: Claim) {
    this.#queue.outbox.passed(now)
    const there = this.#mail.waiting((one) => one.destination === destination && one.deliveryStarts < STARTS_UNTIL_SUSPECT)
    const next: { band: Band; dueAt: QueueTime }[] = []
    const due = bands.flatMap(({ band, limit, from = 0, recipients }) => {
      if (recipients !== undefined)
        return there.filter((one) => this.#bandOf(one) === band && one.dueAt <= now && recipients.includes(one.id))
      const ofBand = there.filter((one) => this.#bandOf(one) === band && one.dueAt >= from)
      const claimed = ofBand.filter((one) => one.dueAt <= now).slice(0, limit)
      const left = ofBand[claimed.length]
      if (left !== undefined) next.push({ band, dueAt: left.dueAt })
      return claimed
    })
    const leases = due.map((one) => this.#lease(one))
    return { requests: packRequests(leases, this.terms, recipientLimit), next }
  }

  async waitingAt({ destination, band, after, limit }: WaitingSlice): Promise<readonly WaitingRecipient[]> {
    const isBehind = ({ dueAt, id }: HeldRecipient): boolean => dueAt > after.dueAt || (dueAt === after.dueAt && id > after.id)
    const there = this.#mail.waiting((one) => one.destination === destination && one.deliveryStarts < STARTS_UNTIL_SUSPECT && isBehind(one))
    const ofBand = there.filter((one) => this.#bandOf(one) === band).slice(0, limit)
    return ofBand.map(({ id, dueAt }) => ({ id, dueAt, share: this.#queue.messages.get(messageOf(id))?.message.share ?? null }))
  }

  #bandOf({ id }: { readonly id: RecipientId }): Band {
    return this.#queue.messages.get(messageOf(id))?.band ?? NO_CLASS
  }

  async claimSuspect(now: QueueTime) {
    this.#queue.outbox.passed(now)
    const [suspect] = this.#mail.waiting((one) => one.deliveryStarts >= STARTS_UNTIL_SUSPECT && one.dueAt <= now)
    return suspect === undefined ? undefined : packRequests([this.#lease(suspect)], this.terms, 1)[0]
  }

  async claimExpired(now: QueueTime, limit: number, except: readonly DestinationName[] = []) {
    this.#queue.outbox.passed(now)
    const over = this.#mail
      .waiting((one) => one.expiresAt <= now && !except.includes(one.destination))
      .toSorted((a, b) => a.expiresAt - b.expiresAt || a.id - b.id)
    return packRequests(
      over.slice(0, limit).map((one) => this.#lease(one)),
      this.terms,
      0,
    )
  }

  async giveBack(recipients: readonly RecipientId[], owner: OwnerId): Promise<void> {
    for (const id of recipients) {
      const [held, one] = this.#mail.find(id)
      if (held === undefined || !this.#mail.isLease(one, owner)) continue
      one.leasedBy = null
      one.state = stateAt(held.placement)
      one.deliveryStarts = 0
      this.#mail.tellDue(one)
    }
  }

  #lease(one: HeldRecipient): LeasedMail {
    const held = this.#queue.messages.get(messageOf(one.id))
    if (held === undefined) throw new Error(`recipient ${one.id} belongs to no message`)
    return lease(one, held, this.#owner.id)
  }
}
