/**
 * Recovers the queue that its last owner has left: ends the leases, the running operations and the claims of refresh tokens, quarantines mail that was in delivery during three crashes,
 * deletes contents that belong to no message, and continues ids above the highest used id.
 */
import type { Database } from 'better-sqlite3'
import { messageOf, type ContentId, type MessageId, type RecipientId } from '../../../mail/message.ts'
import { convictionOf } from '../../decisions/conviction.ts'
import { END_ABANDONED } from '../../records/operation-round.ts'
import { endErasureRights } from '../../records/erasure.ts'
import { endClaims } from '../../records/kept-grant.ts'
import { RecordCalls } from '../records/record-calls.ts'
import { Checkpoints } from '../file/checkpoints.ts'
import type { Repair } from '../../repair-report.ts'
import { changeRows, type Corrupt, type Quarantined } from '../writing/quarantine.ts'
import * as sql from '../writing/queries.ts'
import type { StoreCore } from './store-core.ts'

export interface RecoveryReport {
  /** True when the queue was created by this opening. */
  readonly created: boolean
  /** The repair of a damaged file at this opening; null when the file was sound. */
  readonly repair: Repair | null
  /** Messages moved to `corrupt` because the daemon crashed three times while it delivered them. */
  readonly quarantined: readonly Quarantined[]
  /** Number of deleted contents that belonged to no message. */
  readonly swept: number
}

interface LeftLeased {
  readonly id: RecipientId
  readonly deliveryStarts: number
  readonly isSound: 0 | 1
}

export function recover(
  db: Database,
  { corrupt, events, usage }: Pick<StoreCore, 'corrupt' | 'events' | 'usage'>,
): Omit<RecoveryReport, 'repair' | 'created'> {
  db.transaction(() => {
    endLeases(db, corrupt)
    events.write()
    usage.write()
    const records = new RecordCalls(db)
    records.run(END_ABANDONED, null)
    records.run(endClaims)
    records.run(endErasureRights)
    skipUsedIds(db)
  }).immediate()
  usage.committed()
  return { quarantined: corrupt.takeQuarantined(), swept: sweep(db) }
}

/**
 * Raises the reserved id to the highest used id. Ids are reserved before use, but a queue that was repaired by hand may hold
 * higher ids.
 */
function skipUsedIds(db: Database): void {
  const highest = db.prepare<[], MessageId>(sql.highestId).pluck().get() ?? 0
  const reserved = db.prepare<[], MessageId>(sql.lastReservedId).pluck().get() ?? 0
  if (highest > reserved) db.prepare<{ count: number }>(sql.reserveIds).run({ count: highest - reserved })
}

/**
 * Ends all leases, and quarantines messages with an unsound schedule or with three delivery starts. Due times, schedule steps and
 * attempt counts do not change.
 */
function endLeases(db: Database, corrupt: Corrupt): void {
  const unlease = db.prepare<[RecipientId]>(sql.unlease)
  for (const { id, deliveryStarts, isSound } of db.prepare<[], LeftLeased>(sql.leftLeased).all()) {
    if (isSound === 0) corrupt.setAside(messageOf(id), `the schedule of recipient ${id} does not match its checksum`)
    const why = convictionOf(deliveryStarts, 'daemon')
    if (why !== null) corrupt.setAside(messageOf(id), why)
    changeRows(() => unlease.run(id))
  }
}

/** Deletes contents that belong to no message, one per transaction, because a large content fills the write-ahead log. */
function sweep(db: Database): number {
  const deleteChunks = db.prepare<{ content: ContentId }>(sql.deleteChunks)
  const unmark = db.prepare<[ContentId]>(sql.unmarkStaged)
  const contents = db.prepare<[], ContentId>(sql.stagedContents).pluck().all()
  const forget = db.transaction((content: ContentId) => {
    deleteChunks.run({ content })
    unmark.run(content)
  })
  const checkpoints = new Checkpoints(db)
  for (const content of contents) {
    forget.immediate(content)
    checkpoints.runIfDue()
  }
  return contents.length
}
