/**
 * Takes the queue up as the last owner left it: its leases end, mail that was in delivery at three crashes is set
 * aside, contents that never became mail are swept, and ids go on above the highest that was ever used.
 */
import type { Database } from 'better-sqlite3'
import { messageOf, type BodyId, type MessageId, type RecipientId } from '../message.ts'
import type { Corrupt, Quarantined } from './corrupt.ts'
import * as sql from './queries.ts'

/** Starts without an end after which a message is held responsible for the crashes. */
const CONVICTED = 3

export interface TakenUp {
  readonly quarantined: readonly Quarantined[]
  /** Contents that never became mail. */
  readonly swept: number
  readonly lastId: MessageId
}

export function takeUp(db: Database, corrupt: Corrupt): TakenUp {
  const lastId = db.prepare<[], number>(sql.highestId).pluck().get() ?? 0
  db.transaction(() => endLeases(db, corrupt)).immediate()
  return { quarantined: corrupt.takeNews(), swept: sweep(db), lastId }
}

/** Due times, steps and attempts stay as they were. */
function endLeases(db: Database, corrupt: Corrupt): void {
  const unlease = db.prepare<[RecipientId]>(sql.unlease)
  for (const { id, starts } of db.prepare<[], { id: RecipientId; starts: number }>(sql.leftLeased).all()) {
    if (starts >= CONVICTED) corrupt.setAside(messageOf(id), `in delivery when the daemon died, ${starts} times`)
    unlease.run(id)
  }
}

/** One content per transaction: a swept giant must not fill the write-ahead log. */
function sweep(db: Database): number {
  const deleteChunks = db.prepare<{ body: BodyId }>(sql.deleteChunks)
  const unmark = db.prepare<[BodyId]>(sql.unmarkStaged)
  const bodies = db.prepare<[], BodyId>(sql.stagedBodies).pluck().all()
  const forget = db.transaction((body: BodyId) => {
    deleteChunks.run({ body })
    unmark.run(body)
  })
  for (const body of bodies) forget.immediate(body)
  return bodies.length
}
