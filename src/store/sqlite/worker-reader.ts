/** A reader whose engine runs in a thread of its own. The daemon uses it, so that no database read blocks the event loop. */
import { WorkerClient, threadFile } from '../../system/worker-rpc.ts'
import type { QueueReader } from '../queue-reader.ts'
import { createReader } from '../reader-methods.ts'

/** Memory in MB for new objects of the thread; most calls answer with a screen of rows. */
const YOUNG_GENERATION = 12

/** Creates a reader. Its thread starts with the first call; after a failure of the thread, the next call starts a new one. */
export function openWorkerReader(directory: string): QueueReader {
  let thread: WorkerClient<object, never> | null = null
  let isClosed = false
  return createReader(
    (call) => {
      if (isClosed) return Promise.reject(new Error('the reader is closed'))
      if (thread === null || thread.hasEnded)
        thread = new WorkerClient(threadFile(import.meta.url, 'reader-worker'), {
          workerData: directory,
          resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION },
        })
      return thread.ask(call)
    },
    async () => {
      isClosed = true
      await thread?.end()
    },
  )
}
