/** A reader whose engine runs in a thread of its own. The daemon uses it, so that no database read blocks the event loop. */
import { MINUTE, type Clock, type Duration, type Timer } from '../../../system/clock.ts'
import { systemClock } from '../../../system/system-clock.ts'
import { thread } from '../../../system/packaged-files.ts'
import { WorkerClient } from '../../../system/worker-rpc.ts'
import type { QueueReader } from '../../queue-reader.ts'
import { StoreUnavailable } from '../../queue-store.ts'
import { storeErrorOf } from './worker-protocol.ts'
import { createReader, type ReaderCall, type ReaderMethod } from '../../reader-methods.ts'
import type { StoreSide } from '../../store-health.ts'

/** Time without a call after which the thread ends. It takes 25 to 40 MB, and 0.1 s to start. */
const IDLE: Duration = MINUTE
/** Memory in MB for new objects of the thread, which outlive no call. */
const YOUNG_GENERATION = 12

/** A reader in a thread. */
interface ThreadReader extends QueueReader {
  readonly side: StoreSide
}

/** Creates a reader. Its thread starts with the first call, and again with the first call after a failure or a rest. */
export function openWorkerReader(directory: string, clock: Pick<Clock, 'after'> = systemClock): ThreadReader {
  const side = new ReaderThread(directory, clock)
  const reader = createReader(
    (call) => side.ask(call),
    () => side.close(),
  )
  return { ...reader, side }
}

class ReaderThread implements StoreSide {
  readonly #directory: string
  readonly #clock: Pick<Clock, 'after'>
  #thread: WorkerClient<object, never> | null = null
  #timer: Timer | null = null
  /** Resolves when the threads that rest have ended. */
  #rested: Promise<unknown> = Promise.resolve()
  /** True when the thread rests after the calls that it has. */
  #restsNext = false
  /** Answers of the threads before this one. */
  #before = 0
  #isClosed = false

  constructor(directory: string, clock: Pick<Clock, 'after'>) {
    this.#directory = directory
    this.#clock = clock
  }

  get answered(): number {
    return this.#before + (this.#thread?.answered ?? 0)
  }

  get isWaiting(): boolean {
    return this.#thread?.isWaiting ?? false
  }

  ask<M extends ReaderMethod>(call: ReaderCall<M>): Promise<never> {
    if (this.#isClosed) return Promise.reject(new Error('the reader is closed'))
    this.#restsNext = false
    this.#timer?.cancel()
    this.#timer = this.#clock.after(IDLE, () => this.#rest())
    const answer = this.#running().ask(call)
    const rested = (): void => (this.#restsNext ? this.#rest() : undefined)
    answer.then(rested, rested)
    return answer
  }

  /** Ends the thread after the calls that it has. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await Promise.all([this.#rested, this.#thread?.end()])
  }

  async abandon(): Promise<boolean> {
    return (await this.#thread?.abandon(new StoreUnavailable('the reader of the store did not answer, and was ended'))) ?? true
  }

  /** The thread, which is started when there is none. */
  #running(): WorkerClient<object, never> {
    if (this.#thread !== null && !this.#thread.hasEnded) return this.#thread
    this.#before = this.answered
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION }
    const worker = thread('store/sqlite/clients/reader-worker', { workerData: this.#directory, resourceLimits })
    return (this.#thread = new WorkerClient(worker, storeErrorOf))
  }

  /** Ends the thread, or has it end after the calls that it has. */
  #rest(): void {
    this.#restsNext = this.isWaiting
    if (this.#restsNext || this.#isClosed) return
    this.#before = this.answered
    this.#rested = Promise.all([this.#rested, this.#thread?.end()])
    this.#thread = null
  }
}
