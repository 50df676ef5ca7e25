/**
 * Rows of share_usage. Temporary triggers note each message that begins or ceases to be live mail, whichever call changes it; the transaction writes
 * one row per share before its commit. The triggers exist only while the counts do, so that other queues pay nothing.
 */
import type { Database } from 'better-sqlite3'
import type { MessageId, Placement } from '../../../mail/message.ts'
import { countsAs, NO_SHARE, type ShareChanges, type ShareCount } from '../../share-counts.ts'

/** Number of messages that are counted in one transaction. */
const SLICE = 5_000
/** The cursor when all mail is counted. */
const COUNTED = Number.MAX_SAFE_INTEGER

const LIVE = (row: 'new' | 'old') => `(${row}.placement = 'queued' or ${row}.placement = 'hold')`

const TRIGGERS = `
  create temp trigger share_enters after insert on main.message when ${LIVE('new')} begin
    select note_share(new.id, new.share, 1, new.size);
  end;
  create temp trigger share_leaves after delete on main.message when ${LIVE('old')} begin
    select note_share(old.id, old.share, -1, -old.size);
  end;
  create temp trigger share_placed after update of placement on main.message when ${LIVE('old')} <> ${LIVE('new')} begin
    select note_share(new.id, new.share, case when ${LIVE('new')} then 1 else -1 end, case when ${LIVE('new')} then new.size else -new.size end);
  end`
const NO_TRIGGERS = ['share_enters', 'share_leaves', 'share_placed'].map((name) => `drop trigger temp.${name}`).join(';')

export const savedCursor = `select value from meta where name = 'shares_counted'`
export const saveCursor = `
  insert into meta (name, value) values ('shares_counted', ?) on conflict (name) do update set value = excluded.value`
export const forgetCursor = `delete from meta where name = 'shares_counted'`
export const addUsage = `
  insert into share_usage (node, share, messages, bytes) values (0, ?, ?, ?)
  on conflict (node, share) do update set messages = messages + excluded.messages, bytes = bytes + excluded.bytes`
export const forgetUsage = 'delete from share_usage where node = 0 and share = ?'
export const usage = 'select share, messages, bytes from share_usage where node = 0'
export const clearUsage = 'delete from share_usage'
export const sliceOfMail = 'select id, share, size, placement from message where id > ? order by id limit ?'

interface SliceRow {
  readonly id: MessageId
  readonly share: string | null
  readonly size: number
  readonly placement: Placement
}

interface Sum {
  messages: number
  bytes: number
}

export class ShareRows {
  readonly #db: Database
  readonly #savedCursor
  readonly #saveCursor
  readonly #forgetCursor
  readonly #add
  readonly #forget
  readonly #usage
  readonly #clear
  readonly #slice
  /** The last message that is counted; null without counts. */
  #cursor: MessageId | null = null
  /** The cursor, and the counts, as of the last commit. */
  #committed: MessageId | null = null
  readonly #counts = new Map<string, ShareCount>()
  /** Counts of the running transaction that are not written yet. */
  readonly #noted: ShareCount[] = []
  /** Sums of the running transaction that are written. */
  #written = new Map<string, Sum>()
  readonly #changed = new Set<string>()
  /** True until the first changes: a repair may have opened the queue anew. */
  #isAll = true

  constructor(db: Database) {
    this.#db = db
    this.#savedCursor = db.prepare<[], MessageId>(savedCursor).pluck()
    this.#saveCursor = db.prepare<[MessageId]>(saveCursor)
    this.#forgetCursor = db.prepare(forgetCursor)
    this.#add = db.prepare<[string, number, number]>(addUsage)
    this.#forget = db.prepare<[string]>(forgetUsage)
    this.#usage = db.prepare<[], ShareCount>(usage)
    this.#clear = db.prepare(clearUsage)
    this.#slice = db.prepare<[MessageId, number], SliceRow>(sliceOfMail)
    db.function('note_share', (id, share, messages, bytes) => {
      if (Number(id) <= (this.#cursor ?? 0)) this.#note(share as string | null, Number(messages), Number(bytes))
      return null
    })
    this.#load()
  }

  /** Goes on with the counts of an earlier opening. A count that a crash has interrupted begins anew. */
  #load(): void {
    if (this.#savedCursor.get() !== COUNTED) return
    this.#cursor = this.#committed = COUNTED
    for (const one of this.#usage.all()) this.#counts.set(one.share, one)
    this.#db.exec(TRIGGERS)
  }

  countShares(counts: boolean): boolean {
    if (!counts) return this.#end()
    if (this.#cursor === null) this.#begin()
    if (this.#cursor === COUNTED) return true
    const rows = this.#slice.all(this.#cursor ?? 0, SLICE)
    for (const { share, size, placement } of rows) if (countsAs(placement)) this.#note(share, 1, size)
    this.#cursor = rows.length < SLICE ? COUNTED : (rows.at(-1)?.id ?? COUNTED)
    this.#saveCursor.run(this.#cursor)
    return this.#cursor === COUNTED
  }

  sharesElsewhere(): readonly ShareCount[] {
    return []
  }

  #begin(): void {
    this.#clear.run()
    this.#cursor = 0
    this.#db.exec(TRIGGERS)
  }

  #end(): true {
    if (this.#savedCursor.get() === undefined) return true
    this.#clear.run()
    this.#forgetCursor.run()
    if (this.#cursor !== null) this.#db.exec(NO_TRIGGERS)
    this.#cursor = null
    return true
  }

  #note(share: string | null, messages: number, bytes: number): void {
    this.#noted.push({ share: share ?? NO_SHARE, messages, bytes })
  }

  /** Position to which `rewind` returns when a call fails. */
  get mark(): number {
    return this.#noted.length
  }

  /** Drops what was noted after a mark. */
  rewind(mark: number): void {
    this.#noted.length = mark
  }

  /** Writes the noted counts. Runs in the transaction of the calls. */
  write(): void {
    if (this.#noted.length === 0) return
    const sums = new Map<string, Sum>()
    for (const { share, messages, bytes } of this.#noted) {
      const sum = sums.get(share)
      if (sum === undefined) sums.set(share, { messages, bytes })
      else {
        sum.messages += messages
        sum.bytes += bytes
      }
    }
    this.#noted.length = 0
    this.#written = sums
    for (const [share, { messages, bytes }] of sums) {
      if (messages === 0 && bytes === 0) continue
      if ((this.#counts.get(share)?.messages ?? 0) + messages === 0) this.#forget.run(share)
      else this.#add.run(share, messages, bytes)
    }
  }

  committed(): void {
    if (this.#cursor !== this.#committed) {
      if (this.#cursor === null || this.#committed === null) this.#reset()
      this.#committed = this.#cursor
    }
    for (const [share, { messages, bytes }] of this.#written) {
      const now = this.#counts.get(share)
      const sum = { share, messages: (now?.messages ?? 0) + messages, bytes: (now?.bytes ?? 0) + bytes }
      if (sum.messages === 0) this.#counts.delete(share)
      else this.#counts.set(share, sum)
      this.#changed.add(share)
    }
    this.#written.clear()
  }

  #reset(): void {
    this.#counts.clear()
    this.#changed.clear()
    this.#isAll = true
  }

  /** Drops the changes of a transaction that failed. The rollback has undone those of the triggers. */
  rolledBack(): void {
    this.#cursor = this.#committed
    this.#noted.length = 0
    this.#written.clear()
  }

  /** Returns the counts that have changed since the last call; null without a change. */
  takeChanges(): ShareChanges | null {
    if (!this.#isAll && this.#changed.size === 0) return null
    const shares = this.#isAll ? [...this.#counts.keys()] : [...this.#changed]
    const changes = { all: this.#isAll, counts: shares.map((share) => this.#counts.get(share) ?? { share, messages: 0, bytes: 0 }) }
    this.#isAll = false
    this.#changed.clear()
    return changes
  }
}
