/**
 * Queue folders for the tests of the SQLite store, removed when the test ends.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-queue-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** The files of a queue as they are on disk now, in a folder of their own: what a crash would leave. */
export function asAfterACrash(directory: string): string {
  const copy = folder()
  for (const file of ['queue.db', 'queue.db-wal']) cpSync(join(directory, file), join(copy, file))
  return copy
}
