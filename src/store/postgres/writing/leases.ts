/** Leases of recipients: claims of due mail for the scheduler, and the return of recipients that were not attempted. */
import { packRequests, type DeliveryRequest, type LeasedMail, type LeaseTerms, type Recipient } from '../../../mail/message.ts'
import type { Instant } from '../../../system/clock.ts'
import type { Shard } from '../../membership/shards.ts'
import type { Claim, Claimed } from '../../queue-store.ts'
import { int8s, texts } from '../session/arrays.ts'
import type { OwnLeases, WholeMessage } from './own-leases.ts'
import * as sql from './queries.ts'
import { toAttempt, toLeased, toMessage, type LeasedRow, type MessageRow } from './rows.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

export class Leases {
  readonly #terms: LeaseTerms
  readonly #own: OwnLeases

  constructor(terms: LeaseTerms, own: OwnLeases) {
    this.#terms = terms
    this.#own = own
  }

  claimDue: Send<'claimDue'> = (tx, calls) => sent(Promise.all(calls.map(([claim]) => this.#claimDue(tx, claim))))

  claimSuspect: Send<'claimSuspect'> = (tx, calls) => sent(Promise.all(calls.map(([now]) => this.#claimSuspect(tx, now))))

  claimExpired: Send<'claimExpired'> = (tx, calls) =>
    sent(
      Promise.all(
        calls.map(async ([now, limit, except = []]) => {
          const rows = await tx.query<LeasedRow>(sql.claimExpired, [this.#terms.owner, now, limit, texts(except)])
          return packRequests(this.#leased(tx, rows), this.#terms, 0)
        }),
      ),
    )

  giveBack: Send<'giveBack'> = (tx, calls) => {
    const ids = calls.flatMap(([recipients, owner]) => (owner === this.#terms.owner ? recipients.filter((id) => this.#own.has(id)) : []))
    tx.onCommit(() => this.#own.end(ids))
    const ended = ids.length === 0 ? [] : tx.query<{ shard: Shard }>(sql.giveBack, [this.#terms.owner, int8s(ids)])
    return sent(Promise.resolve(ended).then((told) => (tx.told(told), calls.map(() => undefined))))
  }

  async #claimDue(tx: Transaction, { destination, now, limit, recipientLimit }: Claim): Promise<Claimed> {
    const place = [this.#terms.owner, tx.shardOf(destination), destination]
    const [rows, [next]] = await Promise.all([
      tx.query<LeasedRow>(sql.claimDue, [...place, now, limit]),
      tx.query<{ dueAt: Instant }>(sql.nextDueAt, place),
    ])
    return { requests: packRequests(this.#leased(tx, rows), this.#terms, recipientLimit), nextDueAt: next?.dueAt ?? null }
  }

  async #claimSuspect(tx: Transaction, now: Instant): Promise<DeliveryRequest | undefined> {
    const rows = await tx.query<LeasedRow>(sql.claimSuspect, [this.#terms.owner, now])
    return packRequests(this.#leased(tx, rows), this.#terms, 1)[0]
  }

  #leased(tx: Transaction, rows: readonly LeasedRow[]): LeasedMail[] {
    tx.onCommit(() => this.#remember(rows))
    return rows.map((row) => ({
      message: toMessage(row),
      destination: row.destination,
      recipient: toLeased(row),
      fresh: row.attempts === 0,
      forcedExpire: row.forced_expire,
    }))
  }

  #remember(rows: readonly LeasedRow[]): void {
    this.#own.add(rows.map(({ id }) => id))
    for (const those of Map.groupBy(rows, ({ message }) => message).values()) {
      const [row] = those
      if (row !== undefined && row.recipients === those.length && row.is_inline && !row.forced_expire && row.warnings === 0)
        this.#own.addWhole(wholeOf(row, those))
    }
  }
}

function wholeOf(message: MessageRow, rows: readonly LeasedRow[]): WholeMessage {
  const recipients = rows
    .toSorted((a, b) => a.id - b.id)
    .map((row): Recipient => ({ ...toLeased(row), destination: row.destination, state: 'leased', deliveryStarts: 1 }))
  const attempts = rows.flatMap(({ id, tried }) =>
    (tried ?? []).map(([at, relay, outcome, status, delays]) => toAttempt({ recipient: id, at, relay, outcome, status, delays })),
  )
  return { message: toMessage(message), recipients, attempts }
}
