/** Counts that read much of the queue: clients share a count that runs, and results are kept for a while. */
import { seconds, withTimeout, type Duration, type Timer } from '../../system/clock.ts'
import { asOf, type QueueView } from '../queue-view.ts'

/** Age of a result from which it is counted again. */
const KEPT_FOR: Duration = seconds(30)
/** Maximum number of results that are kept. */
const MOST_KEPT = 64
/** Time for which a count without clients runs on, so that a client that asks again gets its result. */
const COUNTS_ON_FOR: Duration = seconds(10)

export type CountsView = Pick<QueueView, 'reader' | 'clock'>

/** Counts; rejects when `signal` aborts. */
export type Make<Value> = (signal: AbortSignal) => Promise<Value>

export interface Counted<Value> {
  readonly value: Value
  /** Time at which the count began, in seconds. */
  readonly as_of: number
}

class RunningCount<Value> {
  readonly counted: Promise<Counted<Value>>
  readonly #view: CountsView
  readonly #end = new AbortController()
  #clients = 0
  #hasEnded = false
  /** Ends the count when it has had no client for COUNTS_ON_FOR; null while it has clients. */
  #timer: Timer | null = null

  constructor(view: CountsView, make: Make<Value>) {
    this.#view = view
    this.counted = this.#count(make)
  }

  /** True when the count is being ended without a result. */
  get isEnding(): boolean {
    return this.#end.signal.aborted
  }

  /** The result; undefined when `wait` is over, or when the client has left. A null `wait` has no end. */
  async answer(wait: Duration | null, signal: AbortSignal): Promise<Counted<Value> | undefined> {
    this.#clients++
    this.#timer?.cancel()
    this.#timer = null
    try {
      return await (wait === null ? untilAborted(this.counted, signal) : withTimeout(this.counted, this.#view.clock, wait, signal))
    } finally {
      this.#clients--
      if (this.#clients === 0 && !this.#hasEnded) this.#timer = this.#view.clock.after(COUNTS_ON_FOR, () => this.#end.abort())
    }
  }

  async #count(make: Make<Value>): Promise<Counted<Value>> {
    const as_of = asOf(this.#view)
    try {
      return { value: await make(this.#end.signal), as_of }
    } finally {
      this.#hasEnded = true
      this.#timer?.cancel()
    }
  }
}

/** The value of a promise; undefined when `signal` aborts before. */
const untilAborted = <T>(answer: Promise<T>, signal: AbortSignal): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    const leave = (): void => resolve(undefined)
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    answer.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })

/** Counts by the name of what they count. */
export class SharedCounts<Value> {
  readonly #view: CountsView
  readonly #running = new Map<string, RunningCount<Value>>()
  readonly #kept = new Map<string, { readonly at: Duration; readonly counted: Counted<Value> }>()

  constructor(view: CountsView) {
    this.#view = view
  }

  /** The last result that is kept, however old. */
  known(name: string): Counted<Value> | undefined {
    return this.#kept.get(name)?.counted
  }

  /** The result; undefined when `wait` is over, or when the client has left. A null `wait` has no end. */
  async answer(name: string, make: Make<Value>, { wait, signal }: { readonly wait: Duration | null; readonly signal: AbortSignal }) {
    const kept = this.#kept.get(name)
    if (kept !== undefined && this.#view.clock.monotonic() - kept.at < KEPT_FOR) return kept.counted
    const running = this.#running.get(name)
    return (running === undefined || running.isEnding ? this.#begun(name, make) : running).answer(wait, signal)
  }

  #begun(name: string, make: Make<Value>): RunningCount<Value> {
    const count = new RunningCount(this.#view, make)
    this.#running.set(name, count)
    const ended = (): void => {
      if (this.#running.get(name) === count) this.#running.delete(name)
    }
    count.counted.then((counted) => {
      ended()
      this.#keep(name, counted)
    }, ended)
    return count
  }

  #keep(name: string, counted: Counted<Value>): void {
    this.#kept.delete(name)
    // A count that takes longer than KEPT_FOR is kept as well, so that a client that waited for it finds it.
    this.#kept.set(name, { at: this.#view.clock.monotonic(), counted })
    const [oldest] = this.#kept.size > MOST_KEPT ? this.#kept.keys() : []
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
