/** The contract of the SQLite store on a disk. */
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { openWorkerStore } from '../../src/store/sqlite/clients/worker-store.ts'
import { describeQueueStore } from './queue-store.ts'
import { copiesOfEmptyQueue } from './sqlite-on-disk.ts'

const disk = copiesOfEmptyQueue()
describeQueueStore('the SQLite store, inline, on disk', disk.opened(openInlineStore), { survivesCrashes: true, moves: true })
// test/long runs all of it in the thread.
describeQueueStore('the SQLite store, in its own thread, on disk', disk.opened(openWorkerStore), {
  survivesCrashes: true,
  moves: true,
  restartsOnly: true,
})
