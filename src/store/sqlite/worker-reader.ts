/** A reader whose engine runs in a thread of its own. The daemon uses it, so that no database read blocks the event loop. */
import { MINUTE, type Clock, type Duration, type Timer } from '../../system/clock.ts'
import { systemClock } from '../../system/system-clock.ts'
import { WorkerClient, threadFile } from '../../system/worker-rpc.ts'
import type { QueueReader } from '../queue-reader.ts'
import { createReader } from '../reader-methods.ts'

/** Time without a call after which the thread ends. It takes 25 to 40 MB, and 0.1 s to start. */
const IDLE: Duration = MINUTE
/** Memory in MB for new objects of the thread, which outlive no call. */
const YOUNG_GENERATION = 12

/** Creates a reader. Its thread starts with the first call, and again with the first call after a failure or a rest. */
export function openWorkerReader(directory: string, clock: Pick<Clock, 'after'> = systemClock): QueueReader {
  let thread: WorkerClient<object, never> | null = null
  let timer: Timer | null = null
  let rested: Promise<unknown> = Promise.resolve()
  let isClosed = false

  /** Ends the thread after the calls that it has. */
  const rest = (): void => {
    rested = Promise.all([rested, thread?.end()])
    thread = null
  }
  const started = (): WorkerClient<object, never> => {
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION }
    return new WorkerClient(threadFile(import.meta.url, 'reader-worker'), { workerData: directory, resourceLimits })
  }
  return createReader(
    (call) => {
      if (isClosed) return Promise.reject(new Error('the reader is closed'))
      timer?.cancel()
      timer = clock.after(IDLE, rest)
      if (thread === null || thread.hasEnded) thread = started()
      return thread.ask(call)
    },
    async () => {
      isClosed = true
      timer?.cancel()
      rest()
      await rested
    },
  )
}
