/**
 * The store in a worker thread, for the daemon: a slow sync does not block the event loop. The thread receives calls in the order
 * in which they were made and answers them in that order.
 */
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { thread } from '../../../system/packaged-files.ts'
import { terminated, type ThreadFailure } from '../../../system/worker-rpc.ts'
import { quietTurn } from '../../../system/event-loop.ts'
import { ID_BLOCK, IdBuffer } from '../../id-buffer.ts'
import {
  chunksOf,
  contentBytes,
  mapChunks,
  METHODS,
  pending,
  type Answers,
  type Call,
  type Method,
  type PendingCall,
} from '../../methods.ts'
import { OutcomeUnknown, StoreFailed, StoreUnavailable } from '../../queue-store.ts'
import { ShareFeed, type ShareChanges } from '../../share-counts.ts'
import type { StoreSide } from '../../store-health.ts'
import type { OpenedStore, StoreOptions } from './inline-store.ts'
import { storeErrorOf, type FromWorker, type ToWorker, type WireOutcome } from './worker-protocol.ts'
import { createStoreClient, type CallTransport } from './store-client.ts'

/**
 * Maximum number of content bytes that were sent to the thread and not answered; one call may exceed it. Later calls wait, so that
 * a slow disk does not exhaust the memory.
 */
const BYTES_IN_FLIGHT = 16 * 1024 * 1024
/**
 * Maximum number of turns of the event loop for which calls wait for others. The calls of one message to the thread share, in most cases,
 * one sync; a commit costs as much CPU time as ten calls. An idle process sends them at once.
 */
const TURNS = 4
/** Memory in MB for new objects of the thread. Almost none outlive a transaction, so that more would save no CPU time. */
const YOUNG_GENERATION = 12
/** Minimum size in bytes of a buffer that is transferred instead of copied. */
const TRANSFER_FROM = 16 * 1024

/** A store in a thread. */
interface ThreadStore extends OpenedStore {
  readonly side: StoreSide
}

export async function openWorkerStore(place: { readonly directory: string }, options: StoreOptions = {}): Promise<ThreadStore> {
  const worker = thread('store/sqlite/clients/worker-main', {
    workerData: { directory: place.directory },
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION },
  })
  const first = await Promise.race([once(worker, 'message'), once(worker, 'exit')])
  const hello = first[0] as FromWorker | number
  if (typeof hello === 'number')
    throw new StoreUnavailable(`the thread of the store ended with exit code ${hello} before it had opened the queue`)
  if (hello.kind === 'refused') throw storeErrorOf(hello.failure)
  if (hello.kind !== 'opened') throw new Error(`the thread of the store sent ${hello.kind} before it had opened the queue`)
  const { terms, recovery } = hello
  const transport = new WorkerTransport(worker, options)
  const reserve = (count: number) => transport.submit({ method: 'nextIds', args: [count] })
  const firstIds = await reserve(ID_BLOCK).catch(async (error: unknown) => {
    await transport.close()
    throw error
  })
  const ids = new IdBuffer(reserve, firstIds)
  const store = createStoreClient({
    submit: (call, written) => transport.submit(call, written),
    onShares: (listener) => transport.onShares(listener),
    close: () => transport.close(),
    ids,
    terms,
  })
  return { store, recovery, side: transport }
}

interface Written {
  readonly pending: PendingCall
  readonly outcome: WireOutcome
}

interface Waiting {
  readonly pending: PendingCall
  /** Total size of the chunks in the call. */
  readonly bytes: number
}

class WorkerTransport implements Pick<CallTransport, 'submit' | 'onShares' | 'close'>, StoreSide {
  readonly #worker: Worker
  /** Calls that were made but not sent, in order. */
  #unsent: Waiting[] = []
  /** Calls that were sent and have no outcome, in order. */
  #unanswered: Waiting[] = []
  /** Calls with an outcome that is not durable, in order. */
  #written: Written[] = []
  #bytes = 0
  #answered = 0
  readonly #gone = Promise.withResolvers<void>()
  #scheduled = false
  /** True while calls wait for BYTES_IN_FLIGHT. */
  #isFull = false
  #closed: Promise<void> | null = null
  #failure: StoreUnavailable | null = null
  /** StoreFailed once the thread has reported it, after which no call succeeds. */
  #failed: StoreFailed | null = null
  readonly #shares = new ShareFeed()
  readonly #onFailed: StoreOptions['onFailed']

  constructor(worker: Worker, options: StoreOptions) {
    this.#worker = worker
    this.#onFailed = options.onFailed
    worker.on('message', (message: FromWorker) => {
      // A thread that was given up may still answer before it ends.
      if (this.#failure !== null) return
      if (message.kind === 'answers') this.#receive(message)
      else if (message.kind === 'durable') this.#settleThrough(message.durable)
      else if (message.kind === 'failed') this.#storeFailed(message.failure)
      else if (message.kind === 'repaired') options.onRepaired?.(message.repair)
      else if (message.kind === 'quarantined') for (const one of message.messages) options.onQuarantined?.(one)
    })
    worker.on('error', (cause) => this.#fail(new StoreUnavailable(`the thread of the store failed: ${cause.message}`, { cause })))
    worker.on('exit', () => {
      this.#fail(new StoreUnavailable('the store is closed'))
      this.#gone.resolve()
    })
  }

  get answered(): number {
    return this.#answered
  }

  get isWaiting(): boolean {
    const isOwed = this.#written.length > 0 || this.#unanswered.length > 0 || this.#unsent.length > 0
    return this.#failure === null && (isOwed || this.#closed !== null)
  }

  abandon(): Promise<boolean> {
    this.#fail(new OutcomeUnknown('the thread of the store did not answer, and was ended: the change may have been made'))
    this.#gone.resolve()
    return terminated(this.#worker)
  }

  submit<M extends Method>(call: Call<M>, written?: () => void): Promise<Answers[M]> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#closed !== null) return Promise.reject(new StoreUnavailable('the store is closed'))
    return pending(call, (one) => this.#add(one), written)
  }

  #add(one: PendingCall): void {
    this.#unsent.push({ pending: one, bytes: contentBytes(one.call) })
    if (this.#scheduled) return
    this.#scheduled = true
    void quietTurn(TURNS).then(() => {
      this.#scheduled = false
      this.#send()
    })
  }

  close(): Promise<void> {
    this.#closed ??= this.#finish()
    return this.#closed
  }

  async #finish(): Promise<void> {
    if (this.#failure !== null) return
    this.#send()
    while (this.#unsent.length > 0) await Promise.race([once(this.#worker, 'message'), this.#gone.promise])
    this.#post({ kind: 'close' })
    await this.#gone.promise
  }

  #send(): void {
    let count = 0
    for (const { bytes } of this.#unsent) {
      if (this.#bytes > 0 && bytes > 0 && this.#bytes + bytes > BYTES_IN_FLIGHT) break
      this.#bytes += bytes
      count++
    }
    this.#isFull = count < this.#unsent.length
    if (count === 0) return
    const sent = this.#unsent.splice(0, count)
    this.#unanswered.push(...sent)
    const calls = sent.map(({ pending: { call }, bytes }) => (bytes === 0 ? call : movable(call)))
    const isAnyLarge = sent.some(({ bytes }) => bytes >= TRANSFER_FROM)
    this.#post({ kind: 'calls', calls }, isAnyLarge ? calls.flatMap(chunksOf).filter(isLarge).map(bufferOf) : [])
  }

  onShares(listener: (changes: ShareChanges) => void): void {
    this.#shares.listen(listener)
  }

  #receive({ answers, shares, durable }: Extract<FromWorker, { kind: 'answers' }>): void {
    if (shares !== null) this.#shares.changed(shares)
    const done = this.#unanswered.splice(0, answers.length)
    answers.forEach((outcome, n) => {
      const waiting = done[n]
      if (waiting === undefined) throw new Error('the thread of the store answered a call that was not made')
      this.#bytes -= waiting.bytes
      this.#written.push({ pending: waiting.pending, outcome })
    })
    this.#settleThrough(durable)
    if (this.#failed !== null) this.#failWritten(this.#failed)
    // Those that are left have come with this message, or were told of before.
    for (const { pending: one, outcome } of this.#written.slice(-answers.length)) {
      if (!('value' in outcome)) continue
      if (METHODS[one.call.method].isIndependent === true) one.settle({ ok: true, value: outcome.value })
      else one.written?.()
    }
    if (this.#isFull) this.#send()
  }

  /** Settles the calls up to a number, counted from the first of all. */
  #settleThrough(durable: number): void {
    const count = durable - this.#answered
    if (count <= 0) return
    const done = this.#written.splice(0, count)
    this.#answered += done.length
    for (const { pending: one, outcome } of done)
      one.settle('failure' in outcome ? { ok: false, error: this.#failureOf(outcome.failure) } : { ok: true, value: outcome.value })
  }

  #storeFailed(failure: ThreadFailure): void {
    const error = this.#failureOf(failure)
    if (this.#failed !== null) this.#failWritten(this.#failed)
    else throw error
  }

  /** Rejects the calls that have not become durable, whatever their outcomes were. */
  #failWritten(error: StoreFailed): void {
    const lost = this.#written.splice(0)
    this.#answered += lost.length
    for (const { pending: one } of lost) one.settle({ ok: false, error })
  }

  /** Error of an answer, or of the store. The first StoreFailed is also reported through `onFailed`. */
  #failureOf(failure: ThreadFailure): Error {
    const error = storeErrorOf(failure)
    if (error instanceof StoreFailed && this.#failed === null) {
      this.#failed = error
      this.#onFailed?.(error)
    }
    return error
  }

  #post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #fail(failure: StoreUnavailable): void {
    this.#failure ??= failure
    const lost = [...this.#written, ...this.#unanswered, ...this.#unsent]
    this.#written = []
    this.#unanswered = []
    this.#unsent = []
    for (const one of lost) one.pending.settle({ ok: false, error: this.#failure })
  }
}

/**
 * Prepares a call for postMessage. Large chunks are copied to transferable buffers unless the caller has given them away;
 * postMessage clones short chunks.
 */
const movable = (call: Call): Call => (chunksOf(call).every(isCloned) ? call : mapChunks(call, moved))

const moved = (chunk: Uint8Array, given: boolean): Uint8Array => (given || !isLarge(chunk) ? alone(chunk) : new Uint8Array(chunk))

/** Returns a chunk in a buffer of its own, so that no other bytes are transferred or cloned. */
const alone = (chunk: Uint8Array): Uint8Array => (isAlone(chunk) ? chunk : new Uint8Array(chunk))
const isAlone = (chunk: Uint8Array): boolean => chunk.byteLength === chunk.buffer.byteLength
const isCloned = (chunk: Uint8Array): boolean => isAlone(chunk) && !isLarge(chunk)
const isLarge = (chunk: Uint8Array): boolean => chunk.byteLength >= TRANSFER_FROM
const bufferOf = (chunk: Uint8Array): ArrayBuffer => chunk.buffer as ArrayBuffer
