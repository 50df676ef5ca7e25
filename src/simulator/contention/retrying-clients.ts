/** Clients whose refused requests wait independently: fixed waits, backoff with each jitter, any retry policy, and a token bucket. */
import { compileAlone, exactWait } from '../../backoff/retry-policy.ts'
import type { Client, Wire } from './contention.ts'

/**
 * Wait after a failure, in microseconds. `failures` counts the failures of the request, the last one included; `previous` is the
 * wait before the last one, 0 for the first.
 */
export type Wait = (failures: number, previous: number, draw: () => number) => number

const FIRST = 50_000
const CAP = 30_000_000

/** Upper limit of a wait: 100 ms, 200 ms, and so on, up to 30 s. */
const ceiling = (failures: number): number => Math.min(FIRST * 2 ** failures, CAP)

export const fixedWait =
  (wait: number): Wait =>
  () =>
    wait
export const noJitter: Wait = (failures) => ceiling(failures)
export const fullJitter: Wait = (failures, _, draw) => Math.floor(draw() * ceiling(failures))
export const equalJitter: Wait = (failures, _, draw) => Math.floor((ceiling(failures) / 2) * (1 + draw()))
export const decorrelatedJitter: Wait = (_, previous, draw) =>
  Math.floor(Math.min(CAP, FIRST + draw() * (3 * Math.max(previous, FIRST) - FIRST)))

/** Wait of a retry policy with its own defaults. */
export function policyWait(text: string): Wait {
  const policy = compileAlone(text)
  return (failures, previous, draw) =>
    Math.floor(exactWait(policy, { step: failures, age: 0, previousWait: failures === 1 ? null : previous / 1000, draw }) * 1000)
}

/** Sends each refused request again after its own wait. */
export class RetryingClient implements Client {
  readonly #wait: Wait
  readonly #draw: () => number
  readonly #failures: Uint32Array
  readonly #previous: Float64Array

  constructor(requests: number, wait: Wait, draw: () => number) {
    this.#wait = wait
    this.#draw = draw
    this.#failures = new Uint32Array(requests)
    this.#previous = new Float64Array(requests)
  }

  arrived(request: number, wire: Wire): void {
    wire.send(request)
  }

  due(request: number, wire: Wire): void {
    wire.send(request)
  }

  succeeded(_request: number, _wire: Wire): void {}

  refused(request: number, wire: Wire): void {
    const failures = (this.#failures[request] = this.#failures[request]! + 1)
    const wait = this.#wait(failures, this.#previous[request]!, this.#draw)
    this.#previous[request] = wait
    wire.later(wait, request)
  }
}

/** Capacity of the token bucket. */
const TOKEN_CAPACITY = 500
const TOKENS_PER_SUCCESS = 0.1
const TOKENS_PER_SECOND = 20

/**
 * Full jitter with a token bucket. A retry costs one token and a success returns a tenth of a token, so that retries add at most
 * a tenth to a normal load. A retry without a token waits once more; it is not dropped. The bucket also fills with time.
 *
 * Source: M. Brooker, "Fixing retries with token buckets and circuit breakers", 2022. Filling with time is an addition.
 */
export class TokenBucketClient implements Client {
  readonly #inner: RetryingClient
  #tokens = TOKEN_CAPACITY
  #filledAt = 0

  constructor(requests: number, draw: () => number) {
    this.#inner = new RetryingClient(requests, fullJitter, draw)
  }

  arrived(request: number, wire: Wire): void {
    wire.send(request)
  }

  due(request: number, wire: Wire): void {
    this.#fill((TOKENS_PER_SECOND * (wire.now - this.#filledAt)) / 1e6)
    this.#filledAt = wire.now
    if (this.#tokens < 1) return this.#inner.refused(request, wire)
    this.#tokens--
    wire.send(request)
  }

  succeeded(_request: number, _wire: Wire): void {
    this.#fill(TOKENS_PER_SUCCESS)
  }

  refused(request: number, wire: Wire): void {
    this.#inner.refused(request, wire)
  }

  #fill(tokens: number): void {
    this.#tokens = Math.min(TOKEN_CAPACITY, this.#tokens + tokens)
  }
}
