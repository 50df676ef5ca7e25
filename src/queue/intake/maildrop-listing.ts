/**
 * Lists the maildrop: messages that `sendmail` submitted and no daemon has queued yet, and entries that could not be queued for a
 * day. A daemon may queue a file while the files are listed; that message may appear here, in the queue's listing, or in both.
 */
import { lstat, open, opendir, rename, unlink } from 'node:fs/promises'
import type { QueueTime } from '../../system/clock.ts'
import { shownSender } from '../../mail/envelope.ts'
import type { WallView } from '../../system/wall-view.ts'
import { matchesPattern } from '../../patterns/filter-pattern.ts'
import { conditionsIn, matchesReply, type QueueFilter } from '../../store/message-conditions.ts'
import { errorCode } from '../../system/caught-error.ts'
import { entryNames, isStale, maildropFolder, openEntry, type Entry, type EntryName } from './maildrop-reader.ts'

/** An entry of the maildrop, as listings show it. */
export interface Submission {
  /** Name of the file. It serves as the queue id until the message has one. */
  readonly name: string
  /** Number of bytes of the content, or of the whole file when the content is unknown. */
  readonly size: number
  readonly arrivedAt: QueueTime
  /** Null when the envelope is unreadable. */
  readonly sender: string | null
  readonly recipients: readonly string[]
  /** Reason why the entry could not be queued for a day; null for mail that waits for the next pass. */
  readonly reason: string | null
}

/** Sender shown in listings; `?` when the envelope is unreadable. */
export const submissionSender = ({ sender }: Submission): string => (sender === null ? '?' : shownSender(sender))

const BATCH = 500
const FILES = { lstat, open, opendir, rename, unlink }

/**
 * Yields the matching entries in batches. Only the entries within a batch are in the order of their file names, which begin with
 * the time of submission. Yields nothing when there is no maildrop.
 */
export async function* submissions(queueDirectory: string, filter: QueueFilter, wall: WallView): AsyncGenerator<readonly Submission[]> {
  const folder = maildropFolder(queueDirectory)
  try {
    for await (const names of entryNames(FILES, folder, BATCH)) {
      const batch: Submission[] = []
      for (const name of names.toSorted((a, b) => Buffer.compare(a, b))) {
        const submission = await submissionOf(folder, name, wall)
        if (submission !== null && matches(filter, submission)) batch.push(submission)
      }
      yield batch
    }
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/** Returns null for an entry that is not mail, and for a file that is not complete yet. */
async function submissionOf(folder: string, name: EntryName, wall: WallView): Promise<Submission | null> {
  const entry = await openEntry(FILES, folder, name)
  switch (entry.kind) {
    case 'message': {
      const { envelope, length: size, facts } = entry.file
      await entry.file.close()
      const recipients = envelope.recipients.map(({ address }) => address)
      const arrivedAt = wall.queueTime(facts.changedAt)
      return { name: name.toString(), size, arrivedAt, sender: envelope.sender, recipients, reason: null }
    }
    case 'left':
    case 'invalid':
      return staleEntry(name, entry, wall)
    case 'gone':
      return null
    case 'exhausted':
      throw new Error(`cannot read the maildrop: ${entry.why}`)
  }
}

function staleEntry(name: EntryName, { facts, why }: Extract<Entry, { readonly why: string; readonly facts: unknown }>, wall: WallView) {
  if (facts === null || !isStale(facts, wall.now())) return null
  const reason = `not taken in for a day: ${why}; owned by uid ${facts.uid}`
  return { name: name.toString(), size: facts.size, arrivedAt: wall.queueTime(facts.changedAt), sender: null, recipients: [], reason }
}

type Conditions = { readonly [Key in keyof QueueFilter]: (value: NonNullable<QueueFilter[Key]>, submission: Submission) => boolean }

const CONDITIONS: Conditions = {
  queueId: (queueId, { name }) => name === queueId,
  sender: (pattern, { sender }) => sender !== null && matchesPattern(pattern, sender),
  recipient: (pattern, { recipients }) => recipients.some((address) => matchesPattern(pattern, address)),
  // Mail in the maildrop has no destination and no attempt yet, so conditions on them do not match.
  destination: () => false,
  queue: () => false,
  // The class is decided when the mail enters the queue.
  class: () => false,
  arrivedAfter: (begin, { arrivedAt }) => arrivedAt >= begin,
  arrivedBefore: (end, { arrivedAt }) => arrivedAt < end,
  olderThan: (limit, { arrivedAt }) => arrivedAt < limit,
  youngerThan: (limit, { arrivedAt }) => arrivedAt > limit,
  expiresWithin: () => false,
  attemptsOver: () => false,
  status: () => false,
  reply: (text, { reason }) => reason !== null && matchesReply(text, { reason }),
}

function holds<Key extends keyof QueueFilter>(key: Key, filter: Pick<QueueFilter, Key>, submission: Submission): boolean {
  const value = filter[key]
  return value === null || CONDITIONS[key](value, submission)
}

const matches = (filter: QueueFilter, submission: Submission): boolean =>
  conditionsIn(filter).every((key) => holds(key, filter, submission))
