import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import type { OwnerId } from '../../src/mail/message.ts'
import { SHARDS } from '../../src/store/membership/shards.ts'
import { joinMemoryQueue } from '../../src/store/memory/memory-node-table.ts'
import { MemoryMoves } from '../../src/store/memory/memory-moves.ts'
import { emptyQueue, type MemoryQueue } from '../../src/store/memory/queue-state.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { openInlineStore } from '../../src/store/sqlite/inline-store.ts'
import { openQueueReader } from '../../src/store/sqlite/sqlite-reader.ts'
import { openWorkerStore } from '../../src/store/sqlite/worker-store.ts'
import { T0, type Subject } from './mail.ts'
import { describeQueueStore } from './queue-store.ts'

describeQueueStore('the store in memory', async () => inMemory(), { survivesCrashes: true, moves: true })
describeQueueStore('the store in memory, shared by nodes', () => joined(emptyQueue()), { survivesCrashes: true, shared: true })

describeQueueStore(
  'the SQLite store, inline, in memory',
  async () => {
    const { store, reader } = await openInlineStore({ memory: true })
    return { store, moves: store, reader, ...NOTHING_TO_CLOSE, done: () => store.close() }
  },
  { survivesCrashes: false, moves: true },
)

describe('on disk', () => {
  let empty: string
  beforeAll(async () => {
    empty = newFolder()
    const { store } = await openInlineStore({ directory: empty })
    await store.close()
  })
  afterAll(() => rmSync(empty, { recursive: true }))

  /** A copy of an empty queue opens in half the time of a new one. */
  const copyOfEmpty = (): string => {
    const directory = newFolder()
    cpSync(empty, directory, { recursive: true })
    return directory
  }
  const opened = (open: Opener) => () => onDisk(open, copyOfEmpty())
  describeQueueStore('the SQLite store, inline', opened(openInlineStore), { survivesCrashes: true, moves: true, restartsOnly: true })
  describeQueueStore('the SQLite store, in its own thread', opened(openWorkerStore), { survivesCrashes: true, moves: true })
})

const NOTHING_TO_CLOSE = { quarantined: [], swept: 0, done: async () => undefined, crash: undefined }

/** The maps are what survives the owner. */
function inMemory(queue = emptyQueue()): Subject {
  const { store, reader, recovery } = openMemoryStore(queue)
  const moves = new MemoryMoves(queue)
  return { store, moves, reader, ...recovery, done: async () => undefined, crash: async () => inMemory(queue) }
}

/** A node that owns all shards. */
async function joined(queue: MemoryQueue, before?: OwnerId): Promise<Subject> {
  const another = () => ({ ...joinMemoryQueue(queue, { name: 'test', now: () => T0 }), done: async () => undefined })
  const { store, reader, nodes } = another()
  const staged = queue.staged.size
  const takeover = before === undefined ? null : await nodes.takeOver(before, queue.nodes.get(before)?.beat ?? 0)
  await nodes.takeShards(SHARDS)
  return {
    store,
    reader,
    done: async () => undefined,
    quarantined: (takeover?.corrupt ?? []).map((queueId) => ({ queueId, why: '' })),
    swept: staged - queue.staged.size,
    crash: () => joined(queue, nodes.me),
    shared: { nodes, join: async () => another() },
  }
}

type Opener = (place: { readonly directory: string }) => ReturnType<typeof openWorkerStore>

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'deferd-store-'))

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
