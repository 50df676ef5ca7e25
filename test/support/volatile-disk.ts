/**
 * A disk with a volatile cache: files are written to the real folder, and the state that a power cut would leave is recorded. Content and mode of a file become durable by a sync of the file, its name by a sync of the folder after that.
 */
import type { PathLike, Stats } from 'node:fs'
import { open, readFile, rm, stat, type FileHandle } from 'node:fs/promises'
import { basename } from 'node:path'
import type { SubmissionFiles } from '../../src/queue/intake/maildrop-writer.ts'

export interface Durable {
  readonly mode: number
  readonly bytes: string
}

/** Duration of a sync in ms: long enough to show a caller that does not wait for it. */
const SYNC = 20

export class VolatileDisk implements SubmissionFiles {
  /** Files that remain after a power cut now. */
  readonly durable = new Map<string, Durable>()
  readonly #synced = new Map<string, Durable>()
  /** Calls that fail, by name, with the errno code. */
  readonly #failing: Readonly<Record<string, string>>

  constructor(failing: Readonly<Record<string, string>> = {}) {
    this.#failing = failing
  }

  readonly open: SubmissionFiles['open'] = async (path, flags, mode) => {
    const handle = await open(path, flags, mode)
    const isFolder = (await handle.stat()).isDirectory()
    if (isFolder && this.#failing['open folder'] !== undefined) {
      await handle.close()
      this.#fail('open folder')
    }
    handle.sync = () => (isFolder ? this.#syncFolder() : this.#syncFile(path, handle))
    return handle
  }

  readonly rm: SubmissionFiles['rm'] = async (path, options) => {
    await rm(path, options)
    this.#synced.delete(nameOf(path))
  }

  async #syncFile(path: PathLike, handle: FileHandle): Promise<void> {
    const { mode }: Stats = await handle.stat()
    const bytes = await readFile(path, 'latin1')
    await new Promise((resolve) => setTimeout(resolve, SYNC))
    this.#fail('sync file')
    this.#synced.set(nameOf(path), { mode: mode & 0o777, bytes })
    // A later sync of a file whose name is durable needs none of the folder.
    if (this.durable.has(nameOf(path))) this.durable.set(nameOf(path), { mode: mode & 0o777, bytes })
  }

  async #syncFolder(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, SYNC))
    this.#fail('sync folder')
    this.durable.clear()
    for (const [name, file] of this.#synced) this.durable.set(name, file)
  }

  #fail(call: string): void {
    const code = this.#failing[call]
    if (code !== undefined) throw Object.assign(new Error(`${code}: ${call}`), { code })
  }
}

const nameOf = (path: PathLike): string => basename(String(path))

/** A file as it is in the folder now. */
export async function fileNow(path: string): Promise<Durable> {
  const { mode } = await stat(path)
  return { mode: mode & 0o777, bytes: await readFile(path, 'latin1') }
}
