/** Queues of SQLite on disk for the conformance suite, in folders of their own. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import type { OpenedStore } from '../../src/store/sqlite/clients/inline-store.ts'
import type { Subject } from './mail.ts'

type Opener = (place: { readonly directory: string }) => Promise<OpenedStore>

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'deferd-store-'))

/** Opens a copy of an empty queue for each test, which takes half the time of a new one. */
export function copiesOfEmptyQueue() {
  let empty: string
  beforeAll(async () => {
    empty = newFolder()
    const { store } = await openInlineStore({ directory: empty })
    await store.close()
  })
  afterAll(() => rmSync(empty, { recursive: true }))
  return {
    opened: (open: Opener) => (): Promise<Subject> => {
      const directory = newFolder()
      cpSync(empty, directory, { recursive: true })
      return onDisk(open, directory)
    },
  }
}

async function onDisk(open: Opener, directory: string): Promise<Subject> {
  const { store, recovery } = await open({ directory })
  const reader = openQueueReader(directory)
  const done = async () => {
    await reader.close()
    await store.close()
    rmSync(directory, { recursive: true })
  }
  // A dead owner leaves the files as they are now, without the shared memory beside them.
  const crash = async () => {
    const copy = newFolder()
    for (const file of ['queue.db', 'queue.db-wal']) cpSync(join(directory, file), join(copy, file))
    await done()
    return onDisk(open, copy)
  }
  return { store, moves: store, reader, ...recovery, done, crash }
}
