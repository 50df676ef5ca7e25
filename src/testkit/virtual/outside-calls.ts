/**
 * Calls of a test's own functions, which take real time while the clock of their world stands. A failure is kept for the test: the code
 * that made the call only learns that it failed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export type OutsideResult<T> = { readonly value: T } | 'failed'

export class OutsideCalls {
  readonly #running = new Set<Promise<unknown>>()
  readonly #inside = new AsyncLocalStorage<true>()
  #failure: { readonly error: unknown } | null = null

  /** Resolves when the calls that run now have ended; null when none runs. */
  get ended(): Promise<unknown> | null {
    return this.#running.size === 0 ? null : Promise.all(this.#running)
  }

  /** True in a call, and in the asynchronous work that the call has begun. */
  get isInside(): boolean {
    return this.#inside.getStore() === true
  }

  /** The call fails when `signal` aborts, and the clock no longer waits for it. */
  async run<T>(call: () => T | Promise<T>, signal?: AbortSignal): Promise<OutsideResult<T>> {
    const result = this.#inside.run(true, () => this.#result(call))
    const running = signal === undefined ? result : untilAborted(result, signal)
    this.#running.add(running)
    const ended = await running
    this.#running.delete(running)
    return ended
  }

  async #result<T>(call: () => T | Promise<T>): Promise<OutsideResult<T>> {
    try {
      return { value: await call() }
    } catch (error) {
      this.#failure ??= { error }
      return 'failed'
    }
  }

  /** Throws the first failure since the last time. */
  throwFailure(): void {
    const failure = this.#failure
    this.#failure = null
    if (failure !== null) throw failure.error
  }
}

async function untilAborted<T>(result: Promise<OutsideResult<T>>, signal: AbortSignal): Promise<OutsideResult<T>> {
  const { promise: aborted, resolve } = Promise.withResolvers<'failed'>()
  const abort = (): void => resolve('failed')
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  const first = await Promise.race([result, aborted])
  signal.removeEventListener('abort', abort)
  return first
}
