/** The whole contract of a QueueStore, with the store in its own thread as in the daemon. */
import { copiesOfEmptyQueue } from '../conformance/sqlite-on-disk.ts'
import { describeQueueStore } from '../conformance/queue-store.ts'
import { openWorkerStore } from '../../src/store/sqlite/clients/worker-store.ts'

const disk = copiesOfEmptyQueue()
describeQueueStore('the SQLite store, in its own thread, on disk', disk.opened(openWorkerStore), { survivesCrashes: true, moves: true })
