/** Leases of recipients: claims of due mail for the scheduler, and the return of recipients that were not attempted. */
import type { Band } from '../../../config/values/mail-classes.ts'
import { crc32 } from '../../../system/crc32.ts'
import {
  packRequests,
  type DeliveryRequest,
  type DestinationName,
  type LeasedMail,
  type LeaseTerms,
  type Recipient,
} from '../../../mail/message.ts'
import { seconds, type Clock, type Duration, type QueueTime } from '../../../system/clock.ts'
import type { ShardKeys } from '../../membership/shard-keys.ts'
import type { Shard } from '../../membership/shards.ts'
import type { BandClaim, Claim, Claimed, WaitingRecipient, WaitingSlice } from '../../queue-store.ts'
import type { Statements } from '../session/database-connection.ts'
import { int2s, int4s, int8s, texts } from '../session/arrays.ts'
import type { OwnLeases, WholeMessage } from './own-leases.ts'
import * as sql from './queries.ts'
import { toAttempt } from '../../sql/stored-rows.ts'
import { toLeased, toMessage, type LeasedRow, type MessageRow } from './rows.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

/** Time after which a claim covers all due mail of its destination again, whatever its caller was told. */
const WHOLE_EVERY: Duration = seconds(60)
/**
 * Such claims take one in a hundred parts of the time, and come every 10 minutes at least: while somebody holds an old snapshot, they read
 * all mail that was claimed since.
 */
const REST = 100
const WHOLE_AT_LEAST_EVERY: Duration = seconds(600)
/** Maximum number of destinations whose last such claim is remembered. */
const REMEMBERED = 10_000

interface LastClaim {
  /** Time from which a claim covers all due mail. */
  readonly wholeFrom: Duration
  /** Due time from which its caller expected mail. */
  readonly from: QueueTime
}

/** A band of a claim. */
interface AskedBand extends BandClaim, Pick<Claim, 'destination' | 'now'> {}

interface NextDue {
  readonly destination: DestinationName
  readonly band: Band
  readonly dueAt: QueueTime
}

interface ClaimedRows {
  readonly rows: readonly LeasedRow[]
  readonly next: readonly NextDue[]
}

const keyOf = (destination: DestinationName, band: Band): string => `${band} ${destination}`

/** Due times from which claims cover the mail of their destinations. */
class ClaimStarts {
  readonly #clock: Clock
  /** By destination and band. */
  readonly #last = new Map<string, LastClaim>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Due time from which a claim covers the mail of its destination: that which its caller expects, or that of the claim before. The entries
   * of the mail which that one has leased are read once more, because the server removes those from the index that were read dead.
   */
  startOf({ destination, band, from, now }: AskedBand): QueueTime {
    const key = keyOf(destination, band)
    const time = this.#clock.monotonic()
    const last = this.#last.get(key)
    const isWhole = from === undefined || last === undefined || time >= last.wholeFrom
    if (this.#last.size >= REMEMBERED) this.#last.clear()
    this.#last.set(key, { wholeFrom: isWhole ? time + WHOLE_EVERY : last.wholeFrom, from: from ?? now })
    return isWhole ? 0 : Math.min(from, last.from)
  }

  /** Notes the time that claims of all due mail took together. */
  took(claims: readonly AskedBand[], took: Duration): void {
    const wholeFrom = this.#clock.monotonic() + Math.min(Math.max(WHOLE_EVERY, REST * took), WHOLE_AT_LEAST_EVERY)
    for (const { destination, band } of claims) {
      const key = keyOf(destination, band)
      const last = this.#last.get(key)
      if (last !== undefined) this.#last.set(key, { ...last, wholeFrom })
    }
  }
}

interface LeasesDeps {
  readonly terms: LeaseTerms
  readonly own: OwnLeases
  readonly clock: Clock
  readonly reading: Statements
  readonly keys: Pick<ShardKeys, 'shardOf'>
}

export class Leases {
  readonly #deps: LeasesDeps
  readonly #terms: LeaseTerms
  readonly #own: OwnLeases
  readonly #starts: ClaimStarts

  constructor(deps: LeasesDeps) {
    this.#deps = deps
    this.#terms = deps.terms
    this.#own = deps.own
    this.#starts = new ClaimStarts(deps.clock)
  }

  /** The claims of a transaction are for different destinations. */
  claimDue: Send<'claimDue'> = (tx, calls) =>
    sent(
      this.#claimDue(
        tx,
        calls.map(([claim]) => claim),
      ),
    )

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

  async #claimDue(tx: Transaction, claims: readonly Claim[]): Promise<readonly Claimed[]> {
    const all = claims.flatMap(({ destination, now, bands }) => bands.map((one): AskedBand => ({ destination, now, ...one })))
    const [{ rows, next }, listed] = await Promise.all([
      this.#claimAny(
        tx,
        all.filter(({ recipients }) => recipients === undefined),
      ),
      this.#claimListed(
        tx,
        all.filter(({ recipients }) => recipients !== undefined),
      ),
    ])
    const leased = Map.groupBy(this.#leased(tx, [...rows, ...listed]), ({ destination }) => destination)
    const due = Map.groupBy(next, ({ destination }) => destination)
    return claims.map(({ destination, recipientLimit }) => ({
      requests: packRequests(leased.get(destination) ?? [], this.#terms, recipientLimit),
      next: (due.get(destination) ?? []).map(({ band, dueAt }) => ({ band, dueAt })),
    }))
  }

  async #claimAny(tx: Transaction, all: readonly AskedBand[]): Promise<ClaimedRows> {
    if (all.length === 0) return { rows: [], next: [] }
    const begun = this.#deps.clock.monotonic()
    const starts = all.map((one) => this.#starts.startOf(one))
    const asked = [
      this.#terms.owner,
      int2s(all.map(({ destination }) => tx.shardOf(destination))),
      texts(all.map(({ destination }) => destination)),
      int2s(all.map(({ band }) => band)),
      int8s(starts),
    ]
    const [limits, times] = [int4s(all.map(({ limit }) => limit)), int8s(all.map(({ now }) => now))]
    const [rows, next] = await Promise.all([
      tx.query<LeasedRow>(sql.claimDue, [...asked, times, limits]),
      tx.query<NextDue>(sql.nextDueAt, asked),
    ])
    const whole = all.filter((_, n) => starts[n] === 0)
    this.#starts.took(whole, this.#deps.clock.monotonic() - begun)
    return { rows, next }
  }

  async #claimListed(tx: Transaction, all: readonly AskedBand[]): Promise<readonly LeasedRow[]> {
    const asked = all.flatMap(({ recipients = [], ...one }) => recipients.map((id) => ({ id, ...one })))
    if (asked.length === 0) return []
    return tx.query<LeasedRow>(sql.claimListed, [
      this.#terms.owner,
      int8s(asked.map(({ id }) => id)),
      texts(asked.map(({ destination }) => destination)),
      int2s(asked.map(({ band }) => band)),
      int8s(asked.map(({ now }) => now)),
    ])
  }

  waitingAt({ destination, band, after, limit }: WaitingSlice): Promise<readonly WaitingRecipient[]> {
    const { reading, keys } = this.#deps
    const place = [this.#terms.owner, keys.shardOf(destination), destination, band]
    return reading.query<WaitingRecipient>(sql.waitingAt, [...place, after.dueAt, after.id, limit])
  }

  async #claimSuspect(tx: Transaction, now: QueueTime): Promise<DeliveryRequest | undefined> {
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
    this.#own.add(rows)
    // A damaged content is read again, which tells of the damage.
    for (const { message, content, content_crc: crc } of rows)
      if (content && crc32(content) === crc) this.#own.keepContent(message, content)
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
    (tried ?? []).map(([at, relay, outcome, status, delays, session_id]) =>
      toAttempt({ recipient: id, at, relay, outcome, status, delays, session_id }),
    ),
  )
  return { message: toMessage(message), recipients, attempts }
}
