/**
 * The client/server model of 2019: requests arrive, one each millisecond, at a server that serves so many at a time and refuses the
 * rest. A service holds a slot for 500 ms, a refusal holds one for 50 ms: the server counts open connections. How refused requests come
 * back is the client's business. All times in whole microseconds; the rules are exact, so that the same seed gives the same run anywhere.
 */
import { EventQueue } from '../event-queue.ts'

export const ARRIVAL_GAP = 1_000
export const SERVICE_TIME = 500_000
export const REFUSAL_TIME = 50_000

export interface ContentionSettings {
  readonly requests: number
  /** Connections the server holds at once. */
  readonly maxBusy: number
  /** Gives up on the run after so many attempts: a collapsed run would never end. */
  readonly maxAttempts: number
  /** Told now and then, as a share of 1. */
  readonly onProgress?: (done: number) => void
}

/** What the model offers to a client. */
export interface Wire {
  /** Microseconds since the first arrival. */
  readonly now: number
  /** Tries a request now. */
  send(request: number): void
  /** Tells the client `due(request)` after so many microseconds. */
  later(wait: number, request: number): void
}

export interface Client {
  arrived(request: number, wire: Wire): void
  /** A wait asked for is over. */
  due(request: number, wire: Wire): void
  succeeded(request: number, wire: Wire): void
  refused(request: number, wire: Wire): void
  /** The size of the window, for those that have one. */
  window?(): number
}

/** One point of the story of a run. */
export interface Sample {
  /** Seconds. */
  readonly time: number
  readonly busy: number
  readonly completed: number
  readonly attempts: number
  readonly window: number | null
}

export interface ContentionResult {
  /** Microseconds from the first arrival to the last success, or to the end of a run that was given up. */
  readonly makespan: number
  readonly attempts: number
  readonly completed: number
  /** Of each completed request, in microseconds, in the order of completion. */
  readonly latencies: Float64Array
  readonly samples: readonly Sample[]
}

const ARRIVED = 0
const DUE = 1
const SUCCEEDED = 2
const REFUSED = 3

/** How much time lies between two samples, in microseconds. */
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
