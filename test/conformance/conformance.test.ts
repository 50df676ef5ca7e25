import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { openInlineStore } from '../../src/store/sqlite/inline-store.ts'
import { openQueueReader } from '../../src/store/sqlite/sqlite-reader.ts'
import { openWorkerStore } from '../../src/store/sqlite/worker-store.ts'
import type { Subject } from './mail.ts'
import { describeQueueStore } from './queue-store.ts'

describeQueueStore('the store in memory', async () => inMemory(), { survivesCrashes: true })

describeQueueStore(
  'the SQLite store, inline, in memory',
  async () => {
    const { store, reader } = await openInlineStore({ memory: true })
    return { store, reader, ...NOTHING_TO_CLOSE, done: () => store.close() }
  },
  { survivesCrashes: false },
)

describeQueueStore('the SQLite store, inline', () => onDisk(openInlineStore), { survivesCrashes: true })
describeQueueStore('the SQLite store, in its own thread', () => onDisk(openWorkerStore), { survivesCrashes: true })

const NOTHING_TO_CLOSE = { quarantined: [], swept: 0, done: async () => undefined, crash: undefined }

/** The maps are what survives the owner. */
function inMemory(queue = emptyQueue()): Subject {
  const { store, reader, recovery } = openMemoryStore(queue)
  return { store, reader, ...recovery, done: async () => undefined, crash: async () => inMemory(queue) }
}

type Opener = (place: { readonly directory: string }) => ReturnType<typeof openWorkerStore>

async function onDisk(open: Opener, directory = mkdtempSync(join(tmpdir(), 'deferd-store-'))): Promise<Subject> {
  const { store, recovery } = await open({ directory })
  const reader = openQueueReader(directory)
  const done = async () => {
    await reader.close()
    await store.close()
    rmSync(directory, { recursive: true })
  }
  // A dead owner leaves the files as they are now, without the shared memory beside them.
  const crash = async () => {
    const copy = mkdtempSync(join(tmpdir(), 'deferd-store-'))
    for (const file of ['queue.db', 'queue.db-wal']) cpSync(join(directory, file), join(copy, file))
    await done()
    return onDisk(open, copy)
  }
  return { store, reader, ...recovery, done, crash }
}
