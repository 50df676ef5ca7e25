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

  async run<T>(call: () => T | Promise<T>): Promise<OutsideResult<T>> {
    const running = this.#inside.run(true, () => this.#result(call))
    this.#running.add(running)
    const result = await running
    this.#running.delete(running)
    return result
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
