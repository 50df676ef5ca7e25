/**
 * Leases of recipients: claims of due mail for the scheduler, and the return of recipients that were not attempted. A message
 * that cannot be decoded moves to `corrupt`, and the claim continues without it.
 */
import type { Band } from '../../../config/values/mail-classes.ts'
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import {
  messageOf,
  packRequests,
  type DeliveryRequest,
  type DestinationName,
  type LeasedMail,
  type LeaseTerms,
  type Message,
  type MessageId,
  type OwnerId,
  type RecipientId,
} from '../../../mail/message.ts'
import type { BandClaim, Claim, Claimed, WaitingRecipient, WaitingSlice } from '../../queue-store.ts'
import type { Corrupt } from './quarantine.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { Undecodable } from '../../stored-values.ts'
import { toLeased, toMessage, type MessageRow, type RecipientRow } from './rows.ts'

type Known = { readonly message: Message; readonly row: MessageRow }

export class Leases {
  readonly #due
  readonly #dueRecipient
  readonly #waitingAt
  readonly #nextDue
  readonly #suspect
  readonly #expired
  readonly #message
  readonly #lease
  readonly #giveBack
  readonly #corrupt: Corrupt
  readonly #events: EventRows
  readonly #terms: LeaseTerms

  constructor(
    db: Database,
    { corrupt, events, terms }: { readonly corrupt: Corrupt; readonly events: EventRows; readonly terms: LeaseTerms },
  ) {
    this.#corrupt = corrupt
    this.#events = events
    this.#terms = terms
    this.#due = db.prepare<Pick<Claim, 'destination' | 'now'> & Pick<BandClaim, 'band' | 'limit'>, RecipientRow>(sql.dueAt)
    this.#dueRecipient = db.prepare<Pick<Claim, 'destination' | 'now'> & { band: Band; id: RecipientId }, RecipientRow>(sql.dueRecipient)
    this.#waitingAt = db.prepare<
      Pick<WaitingSlice, 'destination' | 'band' | 'limit'> & { dueAt: QueueTime; after: RecipientId },
      WaitingRecipient
    >(sql.waitingAt)
    this.#nextDue = db.prepare<{ destination: string; band: Band }, QueueTime>(sql.nextDueAt).pluck()
    this.#suspect = db.prepare<{ now: QueueTime }, RecipientRow>(sql.dueSuspect)
    this.#expired = db.prepare<{ now: QueueTime; limit: number; except: string }, RecipientRow>(sql.expired)
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#lease = db.prepare<[RecipientId]>(sql.lease)
    this.#giveBack = db.prepare<[RecipientId]>(sql.giveBack)
  }

  claimDue({ destination, now, bands, recipientLimit }: Claim): Claimed {
    this.#events.passed(now)
    const leases = bands.flatMap(({ band, limit, recipients }) => {
      const listed = recipients?.flatMap((id) => this.#dueRecipient.get({ destination, band, now, id }) ?? [])
      return this.#take(listed ?? this.#due.all({ destination, band, now, limit }))
    })
    const next = bands.flatMap(({ band, recipients }) => {
      const dueAt = recipients === undefined ? this.#nextDue.get({ destination, band }) : undefined
      return dueAt === undefined ? [] : [{ band, dueAt }]
    })
    return { requests: packRequests(leases, this.#terms, recipientLimit), next }
  }

  waitingAt({ destination, band, after, limit }: WaitingSlice): readonly WaitingRecipient[] {
    return this.#waitingAt.all({ destination, band, dueAt: after.dueAt, after: after.id, limit })
  }

  claimSuspect(now: QueueTime): DeliveryRequest | undefined {
    this.#events.passed(now)
    for (let row = this.#suspect.get({ now }); row !== undefined; row = this.#suspect.get({ now })) {
      const [request] = packRequests(this.#take([row]), this.#terms, 1)
      if (request !== undefined) return request
    }
    return undefined
  }

  claimExpired(now: QueueTime, limit: number, except: readonly DestinationName[] = []): DeliveryRequest[] {
    this.#events.passed(now)
    for (;;) {
      const rows = this.#expired.all({ now, limit, except: JSON.stringify(except) })
      const leases = this.#take(rows)
      // An empty result would mean that no expired mail is left, so a page of unreadable rows only is skipped.
      if (leases.length > 0 || rows.length === 0) return packRequests(leases, this.#terms, 0)
    }
  }

  giveBack(recipients: readonly RecipientId[], owner: OwnerId): void {
    if (owner !== this.#terms.owner) return
    for (const id of recipients) this.#giveBack.run(id)
  }

  #take(rows: readonly RecipientRow[]): LeasedMail[] {
    const messages = new Map<MessageId, Known | undefined>()
    const leases: LeasedMail[] = []
    for (const row of rows) {
      const id = messageOf(row.id)
      if (!messages.has(id)) messages.set(id, this.#read(id))
      const known = messages.get(id)
      const lease = known === undefined ? undefined : this.#decode(row, known)
      if (lease !== undefined) {
        this.#lease.run(row.id)
        leases.push(lease)
      } else if (known === undefined) this.#corrupt.park(row.id)
      else messages.set(id, undefined)
    }
    // A message that proves corrupt after some of its recipients were leased keeps those leases, because these recipients were
    // readable.
    return leases
  }

  #read(id: MessageId): Known | undefined {
    const row = this.#message.get(id)
    return row === undefined ? undefined : this.#corrupt.unless(id, () => ({ message: toMessage(row), row }))
  }

  #decode(row: RecipientRow, { message, row: { warnings, forced_expire } }: Known): LeasedMail | undefined {
    return this.#corrupt.unless(message.id, () => {
      if (typeof row.destination !== 'string') throw new Undecodable('destination is not text')
      return {
        message,
        destination: row.destination,
        recipient: toLeased(row, warnings),
        fresh: row.attempts === 0,
        forcedExpire: forced_expire === 1,
      }
    })
  }
}
