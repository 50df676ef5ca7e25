/**
 * Client/server model of contention (2019): one request per millisecond arrives at a server with a limited number of connections;
 * it refuses the rest. A service holds a connection for 500 ms, a refusal for 50 ms. The client decides when refused requests are
 * sent again. Times are whole microseconds and the rules exact: equal seeds give equal runs on every machine.
 */
import { EventQueue } from './event-queue.ts'

const ARRIVAL_GAP = 1_000
export const SERVICE_TIME = 500_000
const REFUSAL_TIME = 50_000

interface ContentionSettings {
  readonly requests: number
  /** Number of connections that the server serves concurrently. */
  readonly maxBusy: number
  /** Number of attempts after which the run ends, because a collapsed run would not end. */
  readonly maxAttempts: number
  /** Called at each sample with the progress, from 0 to 1. */
  readonly onProgress?: (done: number) => void
}

export interface Wire {
  /** Microseconds since the first arrival. */
  readonly now: number
  /** Sends a request at the current time. */
  send(request: number): void
  /** Calls the client's `due(request)` after `wait` microseconds. */
  later(wait: number, request: number): void
}

/** A client; the model calls it at each event of a request. */
export interface Client {
  arrived(request: number, wire: Wire): void
  /** Called at the end of a wait requested with `later`. */
  due(request: number, wire: Wire): void
  succeeded(request: number, wire: Wire): void
  refused(request: number, wire: Wire): void
  /** Size of the window; absent for clients without one. */
  window?(): number
}

export interface Sample {
  /** Seconds since the first arrival. */
  readonly time: number
  readonly busy: number
  readonly completed: number
  readonly attempts: number
  readonly window: number | null
}

export interface ContentionResult {
  /** Microseconds from the first arrival to the last success, or to the end of a collapsed run. */
  readonly makespan: number
  readonly attempts: number
  readonly completed: number
  /** Latency of each completed request in microseconds, in the order of completion. */
  readonly latencies: Float64Array
  readonly samples: readonly Sample[]
}

const ARRIVED = 0
const DUE = 1
const SUCCEEDED = 2
const REFUSED = 3

/** In microseconds. */
const SAMPLE_GAP = 100_000

class Contention implements Wire {
  readonly #settings: ContentionSettings
  readonly #client: Client
  readonly #events = new EventQueue()
  readonly #latencies: Float64Array
  readonly #samples: Sample[] = []
  #busy = 0
  #attempts = 0
  #completed = 0
  #nextSample = 0

  constructor(settings: ContentionSettings, client: Client) {
    this.#settings = settings
    this.#client = client
    this.#latencies = new Float64Array(settings.requests)
  }

  get now(): number {
    return this.#events.now
  }

  send(request: number): void {
    this.#attempts++
    const served = this.#busy < this.#settings.maxBusy
    this.#busy++
    this.#events.put(this.#events.now + (served ? SERVICE_TIME : REFUSAL_TIME), request * 4 + (served ? SUCCEEDED : REFUSED))
  }

  later(wait: number, request: number): void {
    this.#events.put(this.#events.now + wait, request * 4 + DUE)
  }

  run(): ContentionResult {
    const { requests, maxAttempts } = this.#settings
    for (let request = 0; request < requests; request++) this.#events.put(request * ARRIVAL_GAP, request * 4 + ARRIVED)
    while (this.#completed < requests && this.#attempts < maxAttempts) {
      const event = this.#events.take()
      if (event === undefined) break
      if (this.#events.now >= this.#nextSample) this.#sample()
      this.#happen(event >> 2, event & 3)
    }
    this.#sample()
    return {
      makespan: this.#events.now,
      attempts: this.#attempts,
      completed: this.#completed,
      latencies: this.#latencies.slice(0, this.#completed),
      samples: this.#samples,
    }
  }

  #happen(request: number, what: number): void {
    if (what === ARRIVED) return this.#client.arrived(request, this)
    if (what === DUE) return this.#client.due(request, this)
    this.#busy--
    if (what === REFUSED) return this.#client.refused(request, this)
    this.#latencies[this.#completed++] = this.#events.now - request * ARRIVAL_GAP
    this.#client.succeeded(request, this)
  }

  #sample(): void {
    const { requests, maxAttempts, onProgress } = this.#settings
    this.#nextSample = this.#events.now + SAMPLE_GAP
    this.#samples.push({
      time: this.#events.now / 1e6,
      busy: this.#busy,
      completed: this.#completed,
      attempts: this.#attempts,
      window: this.#client.window?.() ?? null,
    })
    onProgress?.(Math.max(this.#completed / requests, this.#attempts / maxAttempts))
  }
}

export const runContention = (settings: ContentionSettings, client: Client): ContentionResult => new Contention(settings, client).run()
