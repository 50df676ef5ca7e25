/**
 * A process with the store of a daemon whose syncs are slow (io-faults): it stores 3,200 pages of content, and prints the frames in the file of the
 * write-ahead log. Argument: the folder of the queue.
 */
import { statSync } from 'node:fs'
import { CHUNK_BYTES } from '../../src/store/chunks.ts'
import { queueFile } from '../../src/store/folder/queue-folder.ts'
import { openWorkerStore } from '../../src/store/sqlite/clients/worker-store.ts'
import { PAGE } from '../../src/store/sqlite/file/room.ts'

const FRAME = PAGE + 24
/** Number of times that five contents of four chunks are stored together; a chunk takes eight pages. */
const GROUPS = 20

const directory = process.argv[2] ?? ''
const { store } = await openWorkerStore({ directory }, {})
const content = () =>
  store.stage(
    store.nextId(),
    0,
    Array.from({ length: 4 }, () => Buffer.alloc(CHUNK_BYTES)),
  )
for (let n = 0; n < GROUPS; n++) await Promise.all(Array.from({ length: 5 }, content))
process.stdout.write(String(Math.floor(statSync(`${queueFile(directory)}-wal`).size / FRAME)))
await store.close()
