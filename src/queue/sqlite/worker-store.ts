/**
 * The store in a thread of its own: for the daemon, so that a slow sync never stalls a socket. Calls go over in the
 * order in which they were made and are answered in that order.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { threadFile } from '../../system/asked-thread.ts'
import { turn } from '../../system/turn.ts'
import { StoreUnavailable } from '../store.ts'
import type { Call } from './calls.ts'
import type { OpenedStore, StoreOptions } from './inline-store.ts'
import { errorOf, type FromWorker, type ToWorker, type WireOutcome } from './protocol.ts'
import { storeOver, type Shell } from './queued-store.ts'

/** Contents on their way to the thread; more wait here, so that a slow disk slows its callers, not the machine. */
const BYTES_IN_FLIGHT = 16 * 1024 * 1024
/** Buffers from this size on change threads without being copied. */
const TRANSFER_FROM = 16 * 1024

export async function openWorkerStore(place: { readonly directory: string }, options: StoreOptions = {}): Promise<OpenedStore> {
  const worker = new Worker(threadFile(import.meta.url, 'store-worker'), { workerData: { directory: place.directory } })
  const first = await Promise.race([once(worker, 'message'), once(worker, 'exit')])
  const hello = first[0] as FromWorker | number
  if (typeof hello === 'number') throw new StoreUnavailable(`the thread of the store ended with ${hello}`)
  if (hello.kind === 'refused') throw errorOf(hello.failure)
  if (hello.kind !== 'opened') throw new Error(`the thread of the store said ${hello.kind} before it had opened the queue`)
  const { lastId, quarantined, swept } = hello
  const store = storeOver(new WorkerShell(worker, { directory: place.directory, lastId, options }))
  return { store, opened: { quarantined, swept } }
}

interface Waiting {
  readonly call: Call
  readonly bytes: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

class WorkerShell implements Shell {
  readonly lastId: number
  readonly directory: string
  readonly #worker: Worker
  /** Made but not sent, and sent but not answered; both in order. */
  #unsent: Waiting[] = []
  #unanswered: Waiting[] = []
  #bytes = 0
  #scheduled = false
  #closed: Promise<void> | null = null
  #failure: StoreUnavailable | null = null

  constructor(worker: Worker, { directory, lastId, options }: { directory: string; lastId: number; options: StoreOptions }) {
    this.#worker = worker
    this.directory = directory
    this.lastId = lastId
    worker.on('message', (message: FromWorker) => {
      if (message.kind === 'answers') this.#answered(message.answers)
      else if (message.kind === 'quarantined') for (const one of message.messages) options.onQuarantined?.(one)
    })
    worker.on('error', (cause) => this.#fail(new StoreUnavailable(`the thread of the store failed: ${cause.message}`, { cause })))
    worker.on('exit', () => this.#fail(new StoreUnavailable('the store is closed')))
  }

  submit(call: Call): Promise<unknown> {
    if (this.#failure !== null) return Promise.reject(this.#failure)
    if (this.#closed !== null) return Promise.reject(new StoreUnavailable('the store is closed'))
    return new Promise((resolve, reject) => {
      this.#unsent.push({ call, bytes: bytesOf(call), resolve, reject })
      if (this.#scheduled) return
      this.#scheduled = true
      // What all sockets brought in this turn of the event loop shares one message and, mostly, one sync.
      void turn().then(() => {
        this.#scheduled = false
        this.#send()
      })
    })
  }

  close(): Promise<void> {
    this.#closed ??= this.#finish()
    return this.#closed
  }

  async #finish(): Promise<void> {
    if (this.#failure !== null) return
    const ended = once(this.#worker, 'exit')
    this.#send()
    while (this.#unsent.length > 0) await Promise.race([once(this.#worker, 'message'), ended])
    this.#say({ kind: 'close' })
    await ended
  }

  #send(): void {
    let count = 0
    for (const { bytes } of this.#unsent) {
      if (this.#bytes > 0 && bytes > 0 && this.#bytes + bytes > BYTES_IN_FLIGHT) break
      this.#bytes += bytes
      count++
    }
    if (count === 0) return
    const sent = this.#unsent.splice(0, count)
    this.#unanswered.push(...sent)
    const calls = sent.map(({ call }) => call)
    this.#say({ kind: 'calls', calls }, calls.flatMap(contentsOf).filter(isLarge).map(bufferOf))
  }

  #answered(answers: readonly WireOutcome[]): void {
    const done = this.#unanswered.splice(0, answers.length)
    answers.forEach((answer, n) => {
      const waiting = done[n]
      if (waiting === undefined) throw new Error('the thread of the store answered a call that was not made')
      this.#bytes -= waiting.bytes
      if ('failure' in answer) waiting.reject(errorOf(answer.failure))
      else waiting.resolve(answer.value)
    })
    this.#send()
  }

  #say(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer)
  }

  #fail(failure: StoreUnavailable): void {
    this.#failure ??= failure
    const lost = [...this.#unanswered, ...this.#unsent]
    this.#unanswered = []
    this.#unsent = []
    for (const { reject } of lost) reject(this.#failure)
  }
}

/** The contents a call carries; cut() made each of them a buffer of its own. */
function contentsOf(call: Call): readonly Uint8Array[] {
  switch (call.method) {
    case 'stage':
      return call.args[2]
    case 'enqueue':
      return call.args[0].content
    case 'report':
      return call.args[0].notices.flatMap((notice) => notice.content)
    default:
      return []
  }
}

const bytesOf = (call: Call): number => contentsOf(call).reduce((sum, chunk) => sum + chunk.byteLength, 0)
const isLarge = (chunk: Uint8Array): boolean => chunk.byteLength >= TRANSFER_FROM
const bufferOf = (chunk: Uint8Array): ArrayBuffer => chunk.buffer as ArrayBuffer
