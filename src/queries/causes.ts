/** Counts of the causes for which the mail of a destination waits. A count reads all that mail, so clients share it, and results are kept. */
import { causeJson, type CausesJson } from '../resources/cause-json.ts'
import type { DestinationName } from '../mail/message.ts'
import { waitingCauses } from '../queue/waiting-causes.ts'
import { seconds, withTimeout, type Duration, type Timer } from '../system/clock.ts'
import { assertVisible } from './destinations.ts'
import { asOf, type QueueView, type Viewer } from './queue-view.ts'

/** Causes whose count ended longer ago are counted again. */
const KEPT_FOR: Duration = seconds(30)
/** Maximum number of destinations whose causes are kept. */
const MOST_KEPT = 64
/** Time for which a count without clients runs on, so that a client that asks again gets its result. */
const COUNTS_ON_FOR: Duration = seconds(10)

type CausesView = Pick<QueueView, 'reader' | 'clock'>

class CauseCount {
  readonly counted: Promise<CausesJson>
  readonly #view: CausesView
  readonly #end = new AbortController()
  #clients = 0
  #hasEnded = false
  /** Ends the count when it has had no client for COUNTS_ON_FOR; null while it has clients. */
  #timer: Timer | null = null

  constructor(view: CausesView, name: DestinationName) {
    this.#view = view
    this.counted = this.#count(name)
  }

  /** True when the count is being ended without a result. */
  get isEnding(): boolean {
    return this.#end.signal.aborted
  }

  /** The result; undefined when `wait` is over, or when the client has left. A null `wait` has no end. */
  async answer(wait: Duration | null, signal: AbortSignal): Promise<CausesJson | undefined> {
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

  async #count(name: DestinationName): Promise<CausesJson> {
    const as_of = asOf(this.#view)
    try {
      return {
        causes: (await waitingCauses(this.#view.reader, name, this.#end.signal)).map((one) => causeJson(one, this.#view.clock.wall)),
        as_of,
      }
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

export class Causes {
  readonly #view: CausesView
  readonly #running = new Map<DestinationName, CauseCount>()
  readonly #kept = new Map<DestinationName, { readonly at: Duration; readonly causes: CausesJson }>()

  constructor(view: CausesView) {
    this.#view = view
  }

  /** The causes of a destination. Rejects when `signal` aborts. */
  async of(asked: string, client: Viewer): Promise<CausesJson> {
    const causes = await this.#answer(asked, client, null)
    client.signal.throwIfAborted()
    if (causes === undefined) throw new Error(`the causes of ${asked} were not counted`)
    return causes
  }

  /** As `of`; undefined when the causes are not counted within `wait`. */
  within(wait: Duration, asked: string, client: Viewer): Promise<CausesJson | undefined> {
    return this.#answer(asked, client, wait)
  }

  async #answer(asked: string, { visible, signal }: Viewer, wait: Duration | null): Promise<CausesJson | undefined> {
    const name = asked.toLowerCase()
    assertVisible(name, visible)
    const kept = this.#kept.get(name)
    if (kept !== undefined && this.#view.clock.monotonic() - kept.at < KEPT_FOR) return kept.causes
    const running = this.#running.get(name)
    return (running === undefined || running.isEnding ? this.#begun(name) : running).answer(wait, signal)
  }

  #begun(name: DestinationName): CauseCount {
    const count = new CauseCount(this.#view, name)
    this.#running.set(name, count)
    const ended = (): void => {
      if (this.#running.get(name) === count) this.#running.delete(name)
    }
    count.counted.then((causes) => {
      ended()
      this.#keep(name, causes)
    }, ended)
    return count
  }

  #keep(name: DestinationName, causes: CausesJson): void {
    this.#kept.delete(name)
    // A count that takes longer than KEPT_FOR is kept as well, so that a client that waited for it finds it.
    this.#kept.set(name, { at: this.#view.clock.monotonic(), causes })
    const [oldest] = this.#kept.size > MOST_KEPT ? this.#kept.keys() : []
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
