/** Access entries that operators add by command (`deferd access`), as the queue keeps them for all nodes. */
import type { QueueTime } from '../../system/clock.ts'
import { after, RecordTable, silent } from './record-table.ts'

export const ACCESS_SUBJECTS = ['client', 'sender', 'recipient'] as const

/** Property of the session that an entry is about. */
export type AccessSubject = (typeof ACCESS_SUBJECTS)[number]

export interface AccessEntry {
  readonly subject: AccessSubject
  /** Key of an access table (access(5)), in lower case. An entry is identified by subject and key. */
  readonly key: string
  /** Action of access(5), such as `REJECT no`. */
  readonly action: string
  readonly addedAt: QueueTime
  readonly addedBy: string
  /** Time from which the entry has no effect; null for never. */
  readonly expiresAt: QueueTime | null
}

const table = new RecordTable<AccessEntry, 'subject' | 'key'>(
  'access_entry',
  { subject: 'text', key: 'text', action: 'text', addedAt: 'number', addedBy: 'text', expiresAt: 'number' },
  { key: ['subject', 'key'] },
)

const expired = table.prune<AccessEntry>({
  sql: 'expires_at < :addedAt',
  held: ({ expiresAt }, { addedAt }) => expiresAt !== null && expiresAt < addedAt,
})

export const ACCESS_ENTRIES = {
  /** Adds an entry in place of the one with the same subject and key, and removes those that expired before `addedAt`. */
  set: after(expired, silent(table.put())),
  /** Removes the entry with a subject and a key. Returns false when there is none. */
  remove: table.remove<[subject: AccessSubject, key: string]>(),
  /** All entries, expired ones too, ordered by subject and key. */
  all: table.all(),
}

/** Adds an entry of another queue, unless there is one with its subject and key. */
export const takeAccess = table.add()
