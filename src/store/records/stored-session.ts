/** Dialogues with hosts, to which attempts refer. They are written in the transaction of a settlement, at most one for a destination, cause and minute. */
import type { QueueTime } from '../../system/clock.ts'
import { compare, RecordTable, silent } from './record-table.ts'

export interface StoredSession {
  readonly id: string
  /** Time when the connection began. */
  readonly at: QueueTime
  readonly destination: string
  /** Local address; null where no connection was made. */
  readonly source: string | null
  /** `mx.example[192.0.2.1]:25`. */
  readonly host: string
  /** The text (sessions/session-lines) by deflate (RFC 1951). */
  readonly bytes: Uint8Array
}

export interface SessionLimits {
  readonly before: QueueTime
  /** Octets of all dialogues. */
  readonly limit: number
}

/** Dialogues that one call deletes at most. */
const SLICE = 500

const table = new RecordTable<StoredSession, 'id'>(
  'session',
  { id: 'text', at: 'number', destination: 'text', source: 'text', host: 'text', bytes: 'bytes' },
  { key: ['id'] },
)

/** The sums are those of an index. The running sum over the oldest ones tells which are beyond the limit. */
const prune = `
  delete from session where id in (
    select id from (
      select id, at, sum(size) over (order by at, id) - size as older
      from (select id, at, length(bytes) as size from session order by at, id limit ${SLICE}) as oldest) as summed
    where at < :before or older < (select coalesce(sum(length(bytes)), 0) from session) - :limit)
  returning id`

/** Adds a dialogue unless it is there. */
export const KEEP_SESSION = silent(table.add())

export const SESSIONS = {
  /** The dialogue with an id; undefined when it was not kept, or is deleted. */
  of: table.find('id'),
  /** Deletes those that are too old, and the oldest ones beyond the limit, at most SLICE. Returns false when there was none. */
  prune: table.once<[limits: SessionLimits]>({
    statements: ({ before, limit }) => [{ text: prune, values: { before, limit } }],
    held: (rows, { before, limit }) => {
      const held = table.heldIn(rows)
      const byAge = [...held.values()].toSorted((a, b) => a.at - b.at || compare(a.id, b.id))
      let size = byAge.reduce((sum, { bytes }) => sum + bytes.length, 0)
      let deleted = 0
      for (const { id, at, bytes } of byAge.slice(0, SLICE)) {
        if (at >= before && size <= limit) break
        size -= bytes.length
        deleted++
        held.delete(id)
      }
      return deleted > 0
    },
  }),
  /** Number of dialogues, and their octets. */
  use: table.read<[], { readonly count: number; readonly bytes: number }>({
    statements: () => [
      { text: 'select count(*) as count, cast(coalesce(sum(length(bytes)), 0) as bigint) as bytes from session', values: {} },
    ],
    answer: ([row]) => row as { readonly count: number; readonly bytes: number },
    held: (rows) => {
      const all = [...table.heldIn(rows).values()]
      return { count: all.length, bytes: all.reduce((sum, { bytes }) => sum + bytes.length, 0) }
    },
  }),
}
