/**
 * The maildrop: where `sendmail` leaves mail while no daemon takes it, one file per message. Any local user may leave a
 * file and nobody but the owner of the queue can see which there are, so a file is believed in nothing but what it
 * says about itself; who left it is told by its owner.
 *
 * Format: one line of JSON (the envelope and the length of the content), then the content with CRLF line ends. A file
 * is complete when it is readable by others, which it becomes last; it is on disk before `leave` returns.
 */
import { constants } from 'node:fs'
import { chmod, mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Envelope } from '../mail/envelope.ts'
import type { Events } from '../telemetry/events.ts'
import type { Acceptor } from './accept.ts'
import { StoreUnavailable } from './store.ts'

const FOLDER = 'maildrop'
/** Everybody may leave a file, nobody else may list or remove them. */
const FOLDER_MODE = 0o1733
/** Others may pass through the folder of the queue to the maildrop; its files stay unreadable. */
const QUEUE_MODE = 0o711
const COMPLETE = 0o644
const INCOMPLETE = 0o600
/** The longest first line: room for a thousand recipients and more. */
const LONGEST_ENVELOPE = 4 * 1024 * 1024
const CHUNK = 64 * 1024

const shape = z.strictObject({
  version: z.literal(1),
  sender: z.string(),
  recipients: z
    .array(
      z.strictObject({
        address: z.string().min(1),
        notify: z.union([z.literal('never'), z.array(z.enum(['success', 'failure', 'delay']))]).optional(),
        orcpt: z.string().optional(),
      }),
    )
    .min(1),
  ret: z.enum(['full', 'hdrs']).optional(),
  envid: z.string().optional(),
  smtputf8: z.boolean().optional(),
  body: z.enum(['7bit', '8bitmime']).optional(),
  length: z.int().nonnegative(),
})

/** Makes the folder, as the owner of the queue. */
export async function prepareMaildrop(queueDirectory: string): Promise<void> {
  const path = join(queueDirectory, FOLDER)
  await mkdir(path, { recursive: true })
  // Not by mkdir's mode, from which the umask takes away.
  await chmod(path, FOLDER_MODE)
  const { mode } = await stat(queueDirectory)
  if ((mode & QUEUE_MODE) !== QUEUE_MODE) await chmod(queueDirectory, (mode & 0o777) | QUEUE_MODE)
}

/** Leaves a message; on disk when it resolves. `name` must be unguessable. */
export async function leaveMail(queueDirectory: string, name: string, envelope: Envelope, content: Uint8Array): Promise<void> {
  const path = join(queueDirectory, FOLDER, name)
  const head = Buffer.from(`${JSON.stringify({ version: 1, ...envelope, length: content.length })}\n`)
  const file = await open(path, 'wx', INCOMPLETE)
  try {
    await file.writeFile(Buffer.concat([head, content]))
    await file.chmod(COMPLETE)
    await file.sync()
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
  await syncFolder(join(queueDirectory, FOLDER))
}

/** Syncs the folder where we may open it; for others the sync of a new file covers its name too (ext4, XFS, Btrfs). */
async function syncFolder(path: string): Promise<void> {
  let folder: FileHandle
  try {
    folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return
    throw error
  }
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** What is wrong with a file that was left; it is put aside and never read again. */
class BadFile extends Error {
  override readonly name = 'BadFile'
}

interface Left {
  readonly uid: number
  readonly envelope: Envelope
  readonly content: AsyncIterable<Uint8Array>
}

export interface MaildropParts {
  readonly queueDirectory: string
  readonly acceptor: Pick<Acceptor, 'accept'>
  readonly events: Events
}

export class Maildrop {
  readonly #parts: MaildropParts
  readonly #folder: string
  #running: Promise<number> | null = null

  constructor(parts: MaildropParts) {
    this.#parts = parts
    this.#folder = join(parts.queueDirectory, FOLDER)
  }

  /** Takes in what was left, oldest name first, and says how many messages that were. One run at a time. */
  takeIn(): Promise<number> {
    this.#running ??= this.#takeAll().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #takeAll(): Promise<number> {
    let taken = 0
    for (const name of (await readdir(this.#folder)).toSorted()) {
      if (name.endsWith('.refused')) continue
      const outcome = await this.#takeOne(name)
      if (outcome === 'taken') taken++
      if (outcome === 'later') break
    }
    return taken
  }

  async #takeOne(name: string): Promise<'taken' | 'refused' | 'incomplete' | 'later'> {
    const path = join(this.#folder, name)
    // Whoever left the file chose its kind: a link must not be followed, a pipe must not be waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
      (error: unknown) => error as Error,
    )
    if (file instanceof Error) return this.#refuse(name, file.message)
    try {
      const left = await readLeft(file)
      if (left === null) return 'incomplete'
      const { envelope, content, uid } = left
      const accepted = await this.#parts.acceptor.accept({ envelope, content, client: { uid } })
      if (accepted.kind === 'refused') {
        const { code, text } = accepted.reply
        return code < 500 ? 'later' : await this.#refuse(name, `${code} ${text}`)
      }
      await rm(path)
      return 'taken'
    } catch (error) {
      if (error instanceof BadFile) return this.#refuse(name, error.message)
      if (error instanceof StoreUnavailable) return 'later'
      throw error
    } finally {
      await file.close()
    }
  }

  /** What cannot be taken is kept for inspection under another name. */
  async #refuse(name: string, why: string): Promise<'refused'> {
    await rename(join(this.#folder, name), join(this.#folder, `${name}.refused`))
    this.#parts.events.emit({ kind: 'note', level: 'warning', text: `maildrop/${name}: refused: ${why}` })
    return 'refused'
  }
}

/** A file that was left, checked; null while it is being written. */
async function readLeft(file: FileHandle): Promise<Left | null> {
  const facts = await file.stat()
  const { mode, size, uid } = facts
  if (!facts.isFile() || facts.nlink !== 1) throw new BadFile('not a file of its own')
  if ((mode & 0o777) !== COMPLETE) return null
  const head = await readEnvelope(file)
  if (head.end + head.length !== size) throw new BadFile('its length is not what it says')
  return { uid, envelope: head.envelope, content: contentFrom(file, head.end) }
}

async function readEnvelope(file: FileHandle): Promise<{ readonly envelope: Envelope; readonly length: number; readonly end: number }> {
  const chunks: Buffer[] = []
  for (let read = 0; read < LONGEST_ENVELOPE;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, read)
    if (bytesRead === 0) break
    const chunk = buffer.subarray(0, bytesRead)
    const end = chunk.indexOf(10)
    chunks.push(end < 0 ? chunk : chunk.subarray(0, end))
    if (end >= 0) return { ...parseEnvelope(Buffer.concat(chunks).toString()), end: read + end + 1 }
    read += bytesRead
  }
  throw new BadFile('it has no envelope')
}

function parseEnvelope(text: string): { readonly envelope: Envelope; readonly length: number } {
  try {
    const { version: _version, length, ...envelope } = shape.parse(JSON.parse(text))
    return { envelope, length }
  } catch (cause) {
    throw new BadFile('its envelope cannot be understood', { cause })
  }
}

async function* contentFrom(file: FileHandle, start: number): AsyncGenerator<Uint8Array> {
  for (let at = start; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}
