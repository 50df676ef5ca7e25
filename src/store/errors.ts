/**
 * Errors of opening and reading a queue, each with a message for the operator and an exit code of sysexits.h.
 */
import { errorCode } from '../system/caught-error.ts'
import { versionOfNumber } from '../system/version.ts'

/**
 * Another process owns the queue (EX_TEMPFAIL). A second daemon, or a command that changes the queue, must wait until the owner
 * ends.
 */
export class QueueInUse extends Error {
  override readonly name = 'QueueInUse'
  readonly exitCode = 75
  /** Process id of the owner; undefined until the owner has written its owner file. */
  readonly pid: number | undefined

  constructor(directory: string, pid: number | undefined, since: string | undefined, isStarting = false) {
    const holder = pid === undefined ? 'another process' : `process ${pid}${since === undefined ? '' : ` (since ${since})`}`
    const starting = isStarting ? ', a daemon that is starting: repeat the command when deferd check --running ends with 0' : ''
    super(`the queue in ${directory} is in use by ${holder}${starting}`)
    this.pid = pid
  }
}

/** The queue was written by a newer deferd (EX_CONFIG). */
export class QueueTooNew extends Error {
  override readonly name = 'QueueTooNew'
  readonly exitCode = 78

  /** `writtenBy` is the number of the deferd that wrote it (src/system/version.ts), when the queue has it. */
  constructor(path: string, version: number, known: number, writtenBy?: number | null) {
    const program =
      writtenBy == null ? 'the newer deferd that wrote it' : `deferd ${versionOfNumber(writtenBy)}, which wrote it, or a newer one`
    super(
      `the queue ${path} has version ${version}, but this deferd supports versions up to ${known}: use ${program}, or restore a backup from before the upgrade`,
    )
  }
}

/** An unreleased deferd created the queue, and there is no migration from its schema (EX_CONFIG). */
export class QueueIncompatible extends Error {
  override readonly name = 'QueueIncompatible'
  readonly exitCode = 78

  constructor(path: string) {
    super(
      `the queue ${path} was made by an unreleased deferd with another schema: deliver its mail with that deferd, here or where its deferd queue move --to DIRECTORY has moved it, then move the file away to start with an empty queue`,
    )
  }
}

/** The database has other tables, indexes, views or triggers than deferd made (EX_CONFIG). */
export class SchemaChanged extends Error {
  override readonly name = 'SchemaChanged'
  readonly exitCode = 78

  constructor(path: string, differences: string, place: 'queue' | 'backup' = 'queue') {
    super(
      place === 'queue'
        ? `the queue ${path} has another schema than deferd made (${differences}): stop the daemon and run deferd check --repair, which rebuilds the queue from its rows and keeps this file, or restore a backup`
        : `cannot restore ${path}: it has another schema than deferd made (${differences}); nothing was changed: restore another backup, or recover the mail of this one with deferd salvage`,
    )
  }
}

/** The write-ahead log beside the database belongs to another database (EX_CONFIG). */
export class ForeignLog extends Error {
  override readonly name = 'ForeignLog'
  readonly exitCode = 78

  constructor(path: string) {
    super(
      `${path}-wal does not belong to ${path}, which was copied over the database of this queue: restore a backup with deferd restore FILE, or put the former queue.db back`,
    )
  }
}

/** The database is empty or missing beside traces of an earlier queue: its mail would be lost silently (EX_CONFIG). */
export class QueueEmptied extends Error {
  override readonly name = 'QueueEmptied'
  readonly exitCode = 78

  constructor(path: string, trace: string) {
    super(
      `${path} is empty or missing, but ${trace} shows that there was a queue: restore a backup with deferd restore FILE, or put the former queue.db back; to start with an empty queue, move both files away`,
    )
  }
}

/** The folder or file cannot be used as a queue (EX_CONFIG). */
export class QueueFolderUnusable extends Error {
  override readonly name = 'QueueFolderUnusable'
  readonly exitCode = 78
}

/** The disk has no room for the files of an open queue (EX_TEMPFAIL: a supervisor starts the daemon again). */
export class DiskFull extends Error {
  override readonly name = 'DiskFull'
  readonly exitCode = 75

  constructor(directory: string, cause: Error, what: 'open' | 'restore' = 'open') {
    super(
      `cannot ${what} the queue in ${directory}: ${cause.message}; free some space on this disk, then ${what === 'open' ? 'start' : what} again`,
      {
        cause,
      },
    )
  }
}

/** Whether an error of SQLite or of the system means that the disk is full. */
export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'SQLITE_FULL' || error.code === 'ENOSPC')

/** Whether an error reports a damaged database of SQLite, itself or as the cause of another error. */
export const isDamage = (error: unknown): boolean =>
  error instanceof Error && (/^SQLITE_(?:CORRUPT|NOTADB)/.test(errorCode(error)) || isDamage(error.cause))

/** The queue was moved to another place as a whole (EX_CONFIG). */
export class QueueMoved extends Error {
  override readonly name = 'QueueMoved'
  readonly exitCode = 78

  constructor(directory: string, to: string) {
    super(
      `the queue in ${directory} was moved to ${to}: configure that queue, or move it back with deferd queue move --from ${to} --to ${directory}`,
    )
  }
}

/** There is no queue at the path (EX_UNAVAILABLE). */
export class NoSuchQueue extends Error {
  override readonly name = 'NoSuchQueue'
  readonly exitCode = 69

  constructor(directory: string) {
    super(`there is no queue in ${directory}`)
  }
}

/** A stored content differs from what was written: the message must be quarantined. */
export class ContentUnreadable extends Error {
  override readonly name = 'ContentUnreadable'
  /** EX_DATAERR, for commands that print contents. */
  readonly exitCode = 65
}
