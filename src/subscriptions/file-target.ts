/** Files and standard output as targets: one JSON object per line. */
import { open, rename, stat } from 'node:fs/promises'
import { errorMessage } from '../system/caught-error.ts'
import type { TargetAnswer } from './answer-decision.ts'
import type { SentEvent } from './event-request.ts'
import type { Consignment, SendEvents } from './target.ts'

const WRITTEN: TargetAnswer = { kind: 'response', code: 200, retryAfter: null, text: 'written' }

const linesOf = (events: readonly SentEvent[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join('')

/**
 * Appends to a file and syncs it. Each call opens the file, so that a program such as logrotate may rename it at any time. A file above
 * `size` bytes becomes FILE.1, FILE.1 becomes FILE.2, and `keep` old files are kept.
 */
export const sendToFile: SendEvents = async ({ events, settings }: Consignment) => {
  const path = settings.to.slice('file:'.length).replace(/^\/\/(?=\/)/, '')
  const text = Buffer.from(linesOf(events))
  try {
    if (settings.size > 0 && (await sizeOf(path)) + text.length > settings.size) await rotate(path, settings.keep)
    const file = await open(path, 'a', 0o640)
    try {
      await file.appendFile(text)
      await file.datasync()
    } finally {
      await file.close()
    }
    return WRITTEN
  } catch (error) {
    return { kind: 'failed', text: `cannot write ${path}: ${errorMessage(error)}` }
  }
}

/** Size in bytes; 0 for a file that does not exist. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}

async function rotate(path: string, keep: number): Promise<void> {
  for (let n = keep; n >= 1; n--) {
    try {
      await rename(n === 1 ? path : `${path}.${n - 1}`, `${path}.${n}`)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  if (keep === 0) await (await open(path, 'w', 0o640)).close()
}

/** Writes lines to a stream such as standard output. Resolves when the stream has accepted them. */
export const sendToStream =
  (write: (text: string) => Promise<void>): SendEvents =>
  async ({ events }) => {
    try {
      await write(linesOf(events))
      return WRITTEN
    } catch (error) {
      return { kind: 'failed', text: `cannot write to standard output: ${errorMessage(error)}` }
    }
  }
