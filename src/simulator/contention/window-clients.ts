/**
 * Clients with a queue and a concurrency window: TCP Tahoe, TCP Reno, and Postfix's concurrency feedback. They use no timers and
 * no random numbers.
 */
import type { Client, Wire } from './contention.ts'

/** Waiting requests, first in, first out. A request is in the queue at most once. */
class Pending {
  readonly #ring: Int32Array
  #head = 0
  size = 0

  constructor(requests: number) {
    this.#ring = new Int32Array(Math.max(1, requests))
  }

  push(request: number): void {
    this.#ring[(this.#head + this.size++) % this.#ring.length] = request
  }

  shift(): number {
    const request = this.#ring[this.#head]!
    this.#head = (this.#head + 1) % this.#ring.length
    this.size--
    return request
  }
}

abstract class WindowClient implements Client {
  readonly #pending: Pending
  protected inFlight = 0

  constructor(requests: number) {
    this.#pending = new Pending(requests)
  }

  abstract window(): number
  protected abstract mayStart(): boolean
  protected abstract started(request: number): void
  /** Applies a result. `flight` is the number of requests in flight, including this one. */
  protected abstract learn(request: number, served: boolean, flight: number): void

  arrived(request: number, wire: Wire): void {
    this.#pending.push(request)
    this.#start(wire)
  }

  due(request: number, wire: Wire): void {
    this.arrived(request, wire)
  }

  succeeded(request: number, wire: Wire): void {
    this.learn(request, true, this.inFlight--)
    this.#start(wire)
  }

  refused(request: number, wire: Wire): void {
    this.learn(request, false, this.inFlight--)
    this.#pending.push(request)
    this.#start(wire)
  }

  #start(wire: Wire): void {
    while (this.#pending.size > 0 && this.mayStart()) {
      const request = this.#pending.shift()
      this.inFlight++
      this.started(request)
      wire.send(request)
    }
  }
}

/** Window after a loss: Reno continues from half, Tahoe restarts from one with slow start. */
export type Recovery = 'reno' | 'tahoe'

/**
 * TCP congestion control (RFC 5681): below ssthresh, cwnd grows by one per success; above ssthresh, by one per window.
 * A refusal reduces cwnd, at most once per window, because requests already in flight were sent under the same window.
 */
export class CongestionClient extends WindowClient {
  readonly #recovery: Recovery
  readonly #decrease: number
  /** Sequence number of the last send of each request. */
  readonly #sentAs: Float64Array
  #sends = 0
  /** Number of the last send before the last cut. Failures of sends up to this number do not cut again. */
  #ignoredUpTo = 0
  #cwnd = 20
  #ssthresh = 1024
  cuts = 0

  /** `decrease`: part of the requests in flight that remains after a cut. */
  constructor(requests: number, recovery: Recovery, decrease: number) {
    super(requests)
    this.#recovery = recovery
    this.#decrease = decrease
    this.#sentAs = new Float64Array(requests)
  }

  window(): number {
    return this.#cwnd
  }

  /** Compares without the request to be sent, so that up to ⌊cwnd⌋ + 1 requests are in flight. */
  protected mayStart(): boolean {
    return this.inFlight <= this.#cwnd
  }

  protected started(request: number): void {
    this.#sentAs[request] = ++this.#sends
  }

  protected learn(request: number, served: boolean, flight: number): void {
    if (served) this.#cwnd += this.#cwnd < this.#ssthresh ? 1 : 1 / this.#cwnd
    else if (this.#sentAs[request]! > this.#ignoredUpTo) this.#cut(flight)
  }

  #cut(flight: number): void {
    this.#ssthresh = Math.max(flight * this.#decrease, 2)
    this.#cwnd = this.#recovery === 'reno' ? this.#ssthresh + 3 : 1
    this.#ignoredUpTo = this.#sends
    this.cuts++
  }
}

/** Amount by which one delivery changes Postfix's window of size N. */
export type Feedback = (window: number) => number
export const perConcurrency: Feedback = (window) => 1 / window
export const perRoot: Feedback = (window) => 1 / Math.sqrt(window)
export const constantOne: Feedback = () => 1

interface FeedbackSettings {
  readonly feedback: Feedback
  readonly initial: number
  readonly limit: number
  /** True to round at the middle of a step, as Postfix's program does and SCHEDULER_README does not. */
  readonly halfStep: boolean
}

/**
 * Postfix's concurrency feedback without the failed cohort limit: grows at the end of a run of successes, shrinks at the start of
 * a run of failures.
 */
export class PostfixWindow {
  readonly #settings: FeedbackSettings
  #successes = 0
  #failures = 0
  size: number

  constructor(settings: FeedbackSettings) {
    this.#settings = settings
    this.size = settings.initial
  }

  /** Applies a success. `busy` is the number of deliveries in flight, including the one that has ended. */
  succeeded(busy: number): void {
    const { feedback, initial, limit, halfStep } = this.#settings
    if (this.size >= limit || this.size >= busy + initial) return
    const step = feedback(this.size)
    this.#successes += step
    while (this.#successes + (halfStep ? step / 2 : 0) >= 1) {
      this.size++
      this.#successes--
      this.#failures = 0
    }
    this.size = Math.min(this.size, limit)
  }

  failed(): void {
    const { feedback, halfStep } = this.#settings
    const step = feedback(this.size)
    this.#failures -= step
    while (this.#failures - (halfStep ? step / 2 : 0) < 0) {
      this.size--
      this.#successes = 0
      this.#failures++
    }
    this.size = Math.max(this.size, 1)
  }
}

export class PostfixClient extends WindowClient {
  readonly #window: PostfixWindow

  constructor(requests: number, settings: FeedbackSettings) {
    super(requests)
    this.#window = new PostfixWindow(settings)
  }

  window(): number {
    return this.#window.size
  }

  protected mayStart(): boolean {
    return this.inFlight < this.#window.size
  }

  protected started(_request: number): void {}

  protected learn(_request: number, served: boolean, flight: number): void {
    if (served) this.#window.succeeded(flight)
    else this.#window.failed()
  }
}

/** Fixed window. A size equal to the server's limit is optimal; a larger one collapses. */
export class FixedWindowClient extends WindowClient {
  readonly #size: number

  constructor(requests: number, size: number) {
    super(requests)
    this.#size = size
  }

  window(): number {
    return this.#size
  }

  protected mayStart(): boolean {
    return this.inFlight < this.#size
  }

  protected started(_request: number): void {}
  protected learn(_request: number, _served: boolean, _flight: number): void {}
}
