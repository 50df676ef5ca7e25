/** Finds and reads the queue files of a Postfix spool, without a change to it. */
import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, readFileSync, type Dirent, type Stats } from 'node:fs'
import { basename, join } from 'node:path'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import type { WallTime } from '../../system/clock.ts'
import { readDeliveryLog, readTraceLog, type DeliveryLog, type ReplacedAlias } from './delivery-log.ts'
import type { PostfixMessage } from './postfix-message.ts'
import { readQueueFile } from './queue-file.ts'
import { UnusableQueueFile } from './queue-records.ts'

/** Queues whose mail is taken over, in the order of the take-over: mail in delivery and new mail first. */
const POSTFIX_QUEUES = ['active', 'incoming', 'maildrop', 'deferred', 'hold'] as const
export type PostfixQueue = (typeof POSTFIX_QUEUES)[number]

export interface SpoolFile {
  readonly queue: PostfixQueue
  /** Queue id, the name of the file. */
  readonly id: string
  readonly path: string
}

/** The spool cannot be read; `exitCode` is that of sysexits(3). */
export class SpoolUnusable extends Error {
  override readonly name = 'SpoolUnusable'
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

const UNAVAILABLE = 69
const NOT_PERMITTED = 77

/** The files of all queues, ordered by queue and queue id. Throws SpoolUnusable. */
export function spoolFiles(spool: string): readonly SpoolFile[] {
  if (!existsSync(join(spool, 'deferred'))) {
    throw new SpoolUnusable(UNAVAILABLE, `${spool} is no spool of Postfix: name its queue_directory with --spool DIR`)
  }
  return POSTFIX_QUEUES.flatMap((queue) =>
    entriesBelow(join(spool, queue))
      .map((path) => ({ queue, id: basename(path), path }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  )
}

/** Number of files in the queue `corrupt`, which Postfix itself no longer delivers. */
export const corruptFiles = (spool: string): number => entriesBelow(join(spool, 'corrupt')).length

/** Maximum depth of folders by the first letters of queue ids (hash_queue_depth). */
const DEEPEST_HASH = 3

/** Paths of all entries below a folder that are no folders, and of folders below the maximum depth. Links are not followed. */
function entriesBelow(folder: string, depth = 0): readonly string[] {
  return listed(folder).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() && depth < DEEPEST_HASH ? entriesBelow(path, depth + 1) : [path]
  })
}

function listed(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return []
    throw new SpoolUnusable(NOT_PERMITTED, `cannot read ${folder}: ${errorMessage(cause)}; run the command as root`, { cause })
  }
}

export interface ReadFile {
  readonly message: PostfixMessage
  /** Time of the next delivery, on the wall clock: Postfix keeps it as the file's modification time. */
  readonly nextAt: WallTime
  /** User who submitted the file to the maildrop. */
  readonly uid: number
  /** True when `postsuper -e` has marked the message. */
  readonly isForcedToExpire: boolean
}

export type Reading =
  | { readonly kind: 'read'; readonly file: ReadFile }
  /** The file was never completed, so its mail was never accepted. */
  | { readonly kind: 'incomplete' }
  /** The file has gone. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'unusable'; readonly why: string }

/** Permissions by which Postfix marks a complete file, and a file forced to expire (mail_queue.h). */
const COMPLETE = 0o700
const EXPIRE = 0o010

const QUEUE_ID = /^[0-9A-Za-z]{6,40}$/

export function readSpoolFile({ queue, id, path }: SpoolFile): Reading {
  if (!QUEUE_ID.test(id)) return { kind: 'unusable', why: 'its name is no queue id' }
  try {
    return withRegularFile(path, (fd, { mode, mtimeMs, uid }): Reading => {
      if ((mode & COMPLETE) !== COMPLETE) return { kind: 'incomplete' }
      const message = readQueueFile(readFileSync(fd), queue === 'maildrop' ? 'submission' : 'queued')
      return { kind: 'read', file: { message, nextAt: Math.floor(mtimeMs), uid, isForcedToExpire: (mode & EXPIRE) !== 0 } }
    })
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? { kind: 'gone' } : { kind: 'unusable', why: whyUnusable(error) }
  }
}

/**
 * Opens a regular file. Postfix's user, and any user in the maildrop, may have created something else, so links are not followed and a FIFO
 * does not block. Throws UnusableQueueFile for anything but a regular file, and system errors.
 */
function withRegularFile<T>(path: string, read: (fd: number, stats: Stats) => T): T {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw new UnusableQueueFile('it is no regular file')
    return read(fd, stats)
  } finally {
    closeSync(fd)
  }
}

function whyUnusable(error: unknown): string {
  if (error instanceof UnusableQueueFile) return error.message
  return errorCode(error) === 'ELOOP' ? 'it is a link' : `it cannot be read: ${errorMessage(error)}`
}

/** A logfile of a message and the time of its last entry, on the wall clock; null without one. */
export interface SpoolLog {
  readonly outcomes: DeliveryLog
  readonly writtenAt: WallTime
}

/** A logfile that was not read, and why. The mail does not need it. */
export interface SkippedLog {
  readonly path: string
  readonly why: string
}

/** In bytes: 64 kB for each of 1,000 recipients. */
const LARGEST_LOG = 64 * 1024 * 1024

export class SpoolLogs {
  readonly #spool: string
  readonly skipped: SkippedLog[] = []

  constructor(spool: string) {
    this.#spool = spool
  }

  /** The logfile of deliveries of a message; null without a readable one. */
  deliveries(kind: 'defer' | 'bounce', id: string): SpoolLog | null {
    const file = this.#read(kind, id)
    return file === null ? null : { outcomes: readDeliveryLog(file.text), writtenAt: file.writtenAt }
  }

  /** Aliases of the message for which no success notice has been sent. */
  owedAliases(id: string): readonly ReplacedAlias[] {
    return readTraceLog(this.#read('trace', id)?.text ?? '')
  }

  /** Reads a logfile, from a hashed folder or directly. */
  #read(kind: string, id: string): { readonly text: string; readonly writtenAt: WallTime } | null {
    for (let depth = 0; depth <= DEEPEST_HASH; depth++) {
      const path = join(this.#spool, kind, ...Array.from({ length: depth }, (_, i) => id.charAt(i)), id)
      try {
        return withRegularFile(path, (fd, { size, mtimeMs }) => {
          if (size > LARGEST_LOG) throw new UnusableQueueFile(`it has more than ${LARGEST_LOG} bytes`)
          return { text: readFileSync(fd, 'utf8'), writtenAt: Math.floor(mtimeMs) }
        })
      } catch (error) {
        // A missing file, also one at another hash depth, is not reported.
        if (!/^(?:ENOENT|ENOTDIR)$/.test(errorCode(error))) this.skipped.push({ path, why: whyUnusable(error) })
      }
    }
    return null
  }
}
