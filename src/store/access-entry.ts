/** Access entries that operators add by command (`deferd access`), as the queue keeps them for all nodes. */
import type { QueueTime } from '../system/clock.ts'

/** Property of the session that an entry is about. */
export type AccessSubject = 'client' | 'sender' | 'recipient'

export const ACCESS_SUBJECTS = ['client', 'sender', 'recipient'] as const satisfies readonly AccessSubject[]

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

/** Methods of QueueStore for access entries. */
export interface AccessEntryStore {
  /** Adds an entry in place of the one with the same subject and key, and removes those that expired before `addedAt`. */
  setAccess(entry: AccessEntry): Promise<void>
  /** Removes an entry. Returns false when there is none. */
  removeAccess(subject: AccessSubject, key: string): Promise<boolean>
}

/** Methods of QueueReader for access entries. */
export interface AccessEntryReader {
  /** All entries, expired ones too, ordered by subject and key. */
  accessEntries(): Promise<readonly AccessEntry[]>
}
