/** Clients that keep a queue and a window: TCP's Tahoe and Reno, and Postfix's concurrency feedback. No timers, no chance. */
import type { Client, Wire } from './contention.ts'

/** Requests that wait their turn, first in, first out; a request is in it at most once. */
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
  /** `flight` counts the request itself. */
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

/** After a cut: Reno goes on from half, Tahoe starts slowly again from one. */
export type Recovery = 'reno' | 'tahoe'

/**
 * TCP's congestion control (RFC 5681): cwnd grows by one per success below ssthresh, above it by one per window; a refusal halves it, once
 * per window, since the others in flight then were sent by the same mistake.
 */
export class CongestionClient extends WindowClient {
  readonly #recovery: Recovery
  /** When each request was sent last, counted in sends. */
  readonly #sentAs: Float64Array
  #sends = 0
  /** Sends up to this one were in flight at the last cut: their failure says nothing new. */
  #ignoredUpTo = 0
  #cwnd = 20
  #ssthresh = 1024
  cuts = 0

  constructor(requests: number, recovery: Recovery) {
    super(requests)
    this.#recovery = recovery
    this.#sentAs = new Float64Array(requests)
  }

  window(): number {
    return this.#cwnd
  }

  /** The one about to be sent is not counted, so up to ⌊cwnd⌋ + 1 are in flight. */
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
    this.#ssthresh = Math.max(flight / 2, 2)
    this.#cwnd = this.#recovery === 'reno' ? this.#ssthresh + 3 : 1
    this.#ignoredUpTo = this.#sends
    this.cuts++
  }
}

/** How much one delivery moves Postfix's window of size N. */
export type Feedback = (window: number) => number
export const perConcurrency: Feedback = (window) => 1 / window
export const perRoot: Feedback = (window) => 1 / Math.sqrt(window)
export const constantOne: Feedback = () => 1

export interface FeedbackSettings {
  readonly feedback: Feedback
  readonly initial: number
  readonly limit: number
  /** Postfix's program rounds in the middle of a step; its SCHEDULER_README does not. */
  readonly halfStep: boolean
}

/** Postfix's concurrency feedback without its limit of failed cohorts: grows at the end of a run of successes, shrinks at the start of one of failures. */
export class PostfixWindow {
  readonly #settings: FeedbackSettings
  #successes = 0
  #failures = 0
  size: number

  constructor(settings: FeedbackSettings) {
    this.#settings = settings
    this.size = settings.initial
  }

  /** `busy` counts the delivery that has just ended. */
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

/** A window that never learns: the oracle's, when its size is right, and a collapse when it is not. */
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
