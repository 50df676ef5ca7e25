/**
 * Reads the maildrop. Any local user may create entries of any kind there, so the reader does not follow links, opens only
 * regular files with a single name, and checks sizes before it reads. An entry that cannot be read now is left in place.
 */
import { constants, type BigIntStats } from 'node:fs'
import type { FileHandle, lstat, open, opendir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Envelope } from '../../mail/envelope.ts'
import { CHUNK_BYTES } from '../../store/chunks.ts'
import { errorCode, errorMessage } from '../../system/caught-error.ts'
import { DAY, type Duration, type WallTime } from '../../system/clock.ts'
import { COMPLETE, ContentCheck, decodeEnvelope, ENVELOPE_LIMIT, InvalidFile } from './maildrop-file.ts'

/** The functions of node:fs/promises that the reader uses. */
export interface MaildropFiles {
  readonly lstat: typeof lstat
  readonly open: typeof open
  readonly opendir: typeof opendir
  readonly rename: typeof rename
  readonly unlink: typeof unlink
}

/** Folder of the maildrop in the queue folder. */
export const maildropFolder = (queueDirectory: string): string => join(queueDirectory, 'maildrop')

/** Folder for entries that were refused, in the queue folder; only the owner of the queue can write there. */
export const refusedFolder = (queueDirectory: string): string => join(queueDirectory, 'refused')

/** Name of an entry, as bytes, because a file name need not be UTF-8. */
export type EntryName = Buffer

export const pathOf = (folder: string, name: EntryName): Buffer => Buffer.concat([Buffer.from(`${folder}/`), name])

/** An entry of the maildrop. */
export type Entry =
  | { readonly kind: 'message'; readonly file: MaildropFile }
  /**
   * Incomplete, unreadable, or with a second name (hard link). A later pass tries again. `facts` is null when stat(2) fails too.
   */
  | { readonly kind: 'left'; readonly why: string; readonly facts: EntryFacts | null }
  /** Not a valid submission, or an entry of a kind that can never be one. */
  | { readonly kind: 'invalid'; readonly why: string; readonly facts: EntryFacts }
  /** Removed since the folder was read. */
  | { readonly kind: 'gone' }
  /** The process has no file descriptor or memory left, so no entry can be opened. */
  | { readonly kind: 'exhausted'; readonly why: string }

export interface EntryFacts {
  readonly uid: number
  readonly size: number
  /** Time of the last change of content, mode, owner or links (ctime). Users cannot set this time. */
  readonly changedAt: WallTime
}

/** Age at which an entry that could not be queued is reported. */
const STALE: Duration = DAY

export const isStale = ({ changedAt }: EntryFacts, now: WallTime): boolean => now - changedAt >= STALE

/** Names of the entries, in batches of at most `size`. */
export async function* entryNames(files: MaildropFiles, folder: string, size: number): AsyncGenerator<readonly EntryName[]> {
  const listing = await files.opendir(folder, { encoding: 'buffer' as BufferEncoding, bufferSize: size })
  let batch: EntryName[] = []
  for await (const entry of listing) {
    batch.push(Buffer.from(entry.name))
    if (batch.length < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

/** Opens an entry. The caller closes the file of a message. */
export async function openEntry(files: MaildropFiles, folder: string, name: EntryName): Promise<Entry> {
  const path = pathOf(folder, name)
  let facts: EntryFacts | null = null
  try {
    const stats = await files.lstat(path, { bigint: true })
    facts = factsOf(stats)
    if (!stats.isFile()) return { kind: 'invalid', why: 'not a regular file', facts }
    const why = whyNotYet(stats)
    if (why !== null) return { kind: 'left', why, facts }
    const handle = await files.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    return await readMessage(handle, name, facts)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { kind: 'gone' }
    if (EXHAUSTED.has(errorCode(error))) return { kind: 'exhausted', why: errorMessage(error) }
    return { kind: 'left', why: errorMessage(error), facts }
  }
}

const EXHAUSTED: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOMEM'])

const factsOf = ({ uid, size, ctimeMs }: BigIntStats): EntryFacts => ({ uid: Number(uid), size: Number(size), changedAt: Number(ctimeMs) })

/** The reason to read a regular file later; null when it can be read now. */
function whyNotYet({ mode, nlink }: BigIntStats): string | null {
  if ((Number(mode) & 0o777) !== COMPLETE) return 'it is not complete'
  return nlink === 1n ? null : 'it has a second name (hard link)'
}

async function readMessage(handle: FileHandle, name: EntryName, facts: EntryFacts): Promise<Entry> {
  try {
    const stats = await handle.stat({ bigint: true })
    // The entry may have been replaced by another file since the first check.
    if (!stats.isFile() || whyNotYet(stats) !== null) {
      await handle.close()
      return { kind: 'left', why: 'it has changed', facts }
    }
    return { kind: 'message', file: new MaildropFile(handle, stats, await readEnvelope(handle), name) }
  } catch (error) {
    await handle.close()
    if (error instanceof InvalidFile) return { kind: 'invalid', why: error.message, facts }
    throw error
  }
}

interface Head {
  readonly envelope: Envelope
  /** Number of content bytes, as stated in the envelope. */
  readonly length: number
  /** Offset of the content in the file. */
  readonly start: number
}

async function readEnvelope(handle: FileHandle): Promise<Head> {
  const chunks: Buffer[] = []
  for (let read = 0; read < ENVELOPE_LIMIT;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(CHUNK_BYTES), 0, CHUNK_BYTES, read)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    const end = chunk.indexOf('\n')
    chunks.push(end < 0 ? chunk : chunk.subarray(0, end))
    if (end >= 0) return { ...decodeEnvelope(Buffer.concat(chunks).toString()), start: read + end + 1 }
    read += bytesRead
  }
  throw new InvalidFile('it has no envelope')
}

/** The file changed while it was read. */
class FileChanged extends Error {
  override readonly name = 'FileChanged'
}

/** True for the key of a maildrop file. Keys of files of other mail systems begin with a slash, which no file name has. */
export const isMaildropKey = (key: string): boolean => !key.startsWith('/')

/** An open, complete file with a valid envelope. */
export class MaildropFile {
  readonly envelope: Envelope
  /** Bytes of content. */
  readonly length: number
  readonly facts: EntryFacts
  /** Identifies the file, also after a restart, by its name, its size and the time of its last write. */
  readonly key: string
  readonly #handle: FileHandle
  readonly #start: number
  readonly #stats: BigIntStats

  /** Throws InvalidFile when the file's length differs from the length in the envelope. */
  constructor(handle: FileHandle, stats: BigIntStats, head: Head, name: EntryName) {
    if (stats.size !== BigInt(head.start) + BigInt(head.length)) throw new InvalidFile('its length is not what its envelope states')
    this.envelope = head.envelope
    this.length = head.length
    this.facts = factsOf(stats)
    this.key = `${name.toString('latin1')} ${stats.size} ${stats.mtimeNs}`
    this.#handle = handle
    this.#start = head.start
    this.#stats = stats
  }

  /** Yields the content. Throws InvalidFile, FileChanged when the file was changed while it was read, and system errors. */
  async *content(): AsyncGenerator<Uint8Array> {
    const check = new ContentCheck()
    for (let index = 0, left = this.length; left > 0; index++) {
      const chunk = await this.chunk(index)
      if (chunk === undefined) throw new FileChanged('it was cut while it was read')
      check.take(chunk)
      left -= chunk.length
      yield chunk
    }
    check.end()
    const { size, mtimeNs } = await this.#handle.stat({ bigint: true })
    if (size !== this.#stats.size || mtimeNs !== this.#stats.mtimeNs) throw new FileChanged('it changed while it was read')
  }

  /** A chunk of the content by its number from 0; undefined after the last one. */
  async chunk(index: number): Promise<Uint8Array | undefined> {
    const wanted = Math.min(CHUNK_BYTES, this.length - index * CHUNK_BYTES)
    if (wanted <= 0) return undefined
    const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafeSlow(wanted), 0, wanted, this.#start + index * CHUNK_BYTES)
    return bytesRead === wanted ? buffer : undefined
  }

  /** Whether a path with these stats still refers to this file. */
  isAt({ dev, ino }: BigIntStats): boolean {
    return dev === this.#stats.dev && ino === this.#stats.ino
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}
