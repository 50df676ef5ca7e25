/**
 * Slots of requests that may walk the whole queue. A request has a slot while it works, never while its body arrives or its answer is sent,
 * so that no client can keep one by sending or reading slowly. Requests get slots in the order in which they asked.
 */
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'
import type { Answer, SlotKind } from './route-table.ts'

const SLOTS = 4
/** Time for which a request waits for a slot before it is refused. */
const PATIENCE: Duration = seconds(2)

interface Wanted {
  readonly signal: AbortSignal
  /** False to wait until the client disconnects. */
  readonly isRefusedLate: boolean
}

export class Slots {
  readonly #clock: Timers
  /** Work of the slots, in the sentence of a refusal. */
  readonly #name: string
  readonly #waiting = new Set<() => void>()
  #free = SLOTS

  constructor(clock: Timers, name: string) {
    this.#clock = clock
    this.#name = name
  }

  /**
   * The answer of a handler that works in a slot. The pieces of a stream are made in a slot each. Rejects with Problem when no slot becomes
   * free within PATIENCE.
   */
  async answer(handler: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    const answer = await this.#inSlot(handler, { signal, isRefusedLate: true })
    if (answer.kind === 'stream') return { ...answer, chunks: this.#inTurns(answer.chunks, signal) }
    if (answer.kind !== 'lines' || answer.isSearch !== true) return answer
    return { ...answer, produce: (...to) => this.#inSlot(() => answer.produce(...to), { signal, isRefusedLate: false }) }
  }

  async *#inTurns<T>(chunks: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
    const iterator = chunks[Symbol.asyncIterator]()
    try {
      // The first piece precedes the status of the response, which can still be that of a refusal.
      for (let isFirst = true; ; isFirst = false) {
        const { done, value } = await this.#inSlot(() => iterator.next(), { signal, isRefusedLate: isFirst })
        if (done === true) return
        yield value
      }
    } finally {
      await iterator.return?.()
    }
  }

  async #inSlot<T>(work: () => Promise<T>, wanted: Wanted): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#turn(wanted)
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  /** Resolves when another piece of work has passed its slot on. */
  #turn({ signal, isRefusedLate }: Wanted): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (error: Error): void => {
      if (this.#waiting.delete(resolve)) reject(error)
    }
    const left = (): void => leave(new Error('the client has disconnected'))
    const timer = isRefusedLate ? this.#clock.after(PATIENCE, () => leave(this.#busy())) : null
    this.#waiting.add(resolve)
    signal.addEventListener('abort', left)
    if (signal.aborted) left()
    return promise.finally(() => {
      timer?.cancel()
      signal.removeEventListener('abort', left)
    })
  }

  #release(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free++
    else {
      this.#waiting.delete(next)
      next()
    }
  }

  #busy(): Problem {
    return new Problem(HTTP_PROBLEMS.busy, `${SLOTS} ${this.#name} run already: repeat the request later`, {
      headers: { 'retry-after': '2' },
    })
  }
}

/** Slots by kind of work: operations do not wait for searches. Shared by the listeners of a daemon. */
export type AllSlots = Readonly<Record<SlotKind, Slots>>

export const newSlots = (clock: Timers): AllSlots => ({
  searches: new Slots(clock, 'searches'),
  operations: new Slots(clock, 'operations or plans of them'),
})
