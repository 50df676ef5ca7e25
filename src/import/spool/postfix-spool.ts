/** Finds and reads the queue files of a Postfix spool, without a change to it. */
import { closeSync, constants, existsSync, fstatSync, openSync, readdirSync, readFileSync, statSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import type { Instant } from '../../system/clock.ts'
import { readDeliveryLog, readTraceLog, type DeliveryLog, type ReplacedAlias } from './delivery-log.ts'
import type { PostfixMessage } from './postfix-message.ts'
import { readQueueFile } from './queue-file.ts'
import { UnusableQueueFile } from './queue-records.ts'

/** Queues whose mail is taken over, in the order of the take-over: mail in delivery and new mail first. */
export const POSTFIX_QUEUES = ['active', 'incoming', 'maildrop', 'deferred', 'hold'] as const
export type PostfixQueue = (typeof POSTFIX_QUEUES)[number]

/** A file in a queue. */
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
    filesBelow(join(spool, queue))
      .map(({ name, parentPath }) => ({ queue, id: name, path: join(parentPath, name) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  )
}

/** Number of files in the queue `corrupt`, which Postfix itself no longer delivers. */
export const corruptFiles = (spool: string): number => filesBelow(join(spool, 'corrupt')).length

function filesBelow(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory())
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return []
    throw new SpoolUnusable(NOT_PERMITTED, `cannot read ${folder}: ${errorMessage(cause)}; run the command as root`, { cause })
  }
}

/** A queue file that was read. */
export interface ReadFile {
  readonly message: PostfixMessage
  /** Time of the next delivery, on the wall clock: Postfix keeps it as the file's modification time. */
  readonly nextAt: Instant
  /** User who submitted a file of the maildrop. */
  readonly uid: number
  /** True when `postsuper -e` has marked the message. */
  readonly isForcedToExpire: boolean
}

export type Reading =
  | { readonly kind: 'read'; readonly file: ReadFile }
  /** The file was being written when its author ended; its mail was never accepted. */
  | { readonly kind: 'incomplete' }
  /** The file is no longer there. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'unusable'; readonly why: string }

/** Permissions by which Postfix marks a complete file, and one that is to expire (mail_queue.h). */
const COMPLETE = 0o700
const EXPIRE = 0o010

const QUEUE_ID = /^[0-9A-Za-z]{6,40}$/

export function readSpoolFile({ queue, id, path }: SpoolFile): Reading {
  if (!QUEUE_ID.test(id)) return { kind: 'unusable', why: 'its name is no queue id' }
  let fd: number | null = null
  try {
    // Without O_NONBLOCK the opening of a FIFO, which any user may create in the maildrop, would wait for a writer.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const { mode, mtimeMs, uid } = fstatSync(fd)
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) return { kind: 'unusable', why: 'it is no regular file' }
    if ((mode & COMPLETE) !== COMPLETE) return { kind: 'incomplete' }
    const message = readQueueFile(readFileSync(fd), queue === 'maildrop' ? 'submission' : 'queued')
    return { kind: 'read', file: { message, nextAt: Math.floor(mtimeMs), uid, isForcedToExpire: (mode & EXPIRE) !== 0 } }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { kind: 'gone' }
    if (error instanceof UnusableQueueFile) return { kind: 'unusable', why: error.message }
    return { kind: 'unusable', why: `it cannot be read: ${errorMessage(error)}` }
  } finally {
    if (fd !== null) closeSync(fd)
  }
}

/** A logfile of a message and the time of its last entry, on the wall clock; null without one. */
export interface SpoolLog {
  readonly outcomes: DeliveryLog
  readonly writtenAt: Instant
}

/** Reads the logfile of deliveries of a message. Null also for one that cannot be read, since the mail does not need it. */
export function readSpoolLog(spool: string, kind: 'defer' | 'bounce', id: string): SpoolLog | null {
  const file = readLogFile(spool, kind, id)
  return file === null ? null : { outcomes: readDeliveryLog(file.text), writtenAt: file.writtenAt }
}

/** The aliases of a message of which no success notice was sent yet. */
export const owedAliases = (spool: string, id: string): readonly ReplacedAlias[] =>
  readTraceLog(readLogFile(spool, 'trace', id)?.text ?? '')

/** Reads a logfile, in its hashed folder or not. */
function readLogFile(spool: string, kind: string, id: string): { readonly text: string; readonly writtenAt: Instant } | null {
  for (let depth = 0; depth <= DEEPEST_HASH; depth++) {
    const path = join(spool, kind, ...Array.from({ length: depth }, (_, i) => id.charAt(i)), id)
    try {
      return { text: readFileSync(path, 'utf8'), writtenAt: Math.floor(statSync(path).mtimeMs) }
    } catch {
      // The file has another depth, or does not exist.
    }
  }
  return null
}

/** Maximum depth of folders by the first letters of queue ids (hash_queue_depth) that is searched. */
const DEEPEST_HASH = 3
