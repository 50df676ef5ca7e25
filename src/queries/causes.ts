/** Counts of the causes for which mail waits, at one destination or at all. A count reads all that mail, so clients share it, and results are kept. */
import {
  causeJson,
  summedCauseJson,
  type CauseJson,
  type CausesJson,
  type SummedCauseJson,
  type SummedCausesJson,
} from '../resources/cause-json.ts'
import type { DestinationName } from '../mail/message.ts'
import { summedCauses, waitingCauses, type WaitingCause } from '../queue/waiting-causes.ts'
import { seconds, withTimeout, type Duration, type Timer } from '../system/clock.ts'
import { assertVisible } from './destinations.ts'
import { maySee } from './message-query.ts'
import { asOf, type QueueView, type Viewer } from './queue-view.ts'

/** Causes whose count ended longer ago are counted again. */
const KEPT_FOR: Duration = seconds(30)
/** Maximum number of destinations whose causes are kept. */
const MOST_KEPT = 64
/** Time for which a count without clients runs on, so that a client that asks again gets its result. */
const COUNTS_ON_FOR: Duration = seconds(10)

type CausesView = Pick<QueueView, 'reader' | 'clock'>

/** A destination whose causes are counted; null for all. */
type Counted = DestinationName | null

interface CountedCauses {
  readonly causes: readonly WaitingCause[]
  readonly as_of: number
}

/** A cause with the time of its count. */
export interface KnownCause {
  readonly cause: CauseJson | SummedCauseJson
  readonly as_of: number
}

class CauseCount {
  readonly counted: Promise<CountedCauses>
  readonly #view: CausesView
  readonly #end = new AbortController()
  #clients = 0
  #hasEnded = false
  /** Ends the count when it has had no client for COUNTS_ON_FOR; null while it has clients. */
  #timer: Timer | null = null

  constructor(view: CausesView, name: Counted) {
    this.#view = view
    this.counted = this.#count(name)
  }

  /** True when the count is being ended without a result. */
  get isEnding(): boolean {
    return this.#end.signal.aborted
  }

  /** The result; undefined when `wait` is over, or when the client has left. A null `wait` has no end. */
  async answer(wait: Duration | null, signal: AbortSignal): Promise<CountedCauses | undefined> {
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

  async #count(name: Counted): Promise<CountedCauses> {
    const as_of = asOf(this.#view)
    try {
      return { causes: await waitingCauses(this.#view.reader, name, this.#end.signal), as_of }
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

/** The name in lower case. Throws Problem for a destination that the client may not see. */
function nameOf(asked: string, { visible }: Viewer): DestinationName {
  const name = asked.toLowerCase()
  assertVisible(name, visible)
  return name
}

const seen = ({ causes, as_of }: CountedCauses, { visible }: Viewer): CountedCauses => ({
  causes: causes.filter(({ destination }) => maySee(visible, destination)),
  as_of,
})

export class Causes {
  readonly #view: CausesView
  readonly #running = new Map<Counted, CauseCount>()
  readonly #kept = new Map<Counted, { readonly at: Duration; readonly causes: CountedCauses }>()

  constructor(view: CausesView) {
    this.#view = view
  }

  /** The cause whose filter this is, of the last counts that are kept, with their time; null when no kept count has it. */
  known(filter: NonNullable<CauseJson['filter']>, { visible }: Pick<Viewer, 'visible'>): KnownCause | null {
    const isSame = ({ filter: one }: CauseJson | SummedCauseJson): boolean =>
      one !== null && one.destination === filter.destination && one.queue === filter.queue && one.reply === filter.reply
    const ofOne = filter.destination === null ? undefined : this.#kept.get(filter.destination)?.causes
    const ofAll = this.#kept.get(null)?.causes
    if (filter.destination !== null && !maySee(visible, filter.destination)) return null
    const found = ofOne === undefined ? undefined : this.#json(ofOne).causes.find(isSame)
    if (ofOne !== undefined && found !== undefined) return { cause: found, as_of: ofOne.as_of }
    const sum = ofAll === undefined || visible !== null ? undefined : this.#summed(ofAll).causes.find(isSame)
    return ofAll === undefined || sum === undefined ? null : { cause: sum, as_of: ofAll.as_of }
  }

  /** The causes of a destination. Rejects when `signal` aborts. */
  async of(asked: string, client: Viewer): Promise<CausesJson> {
    return this.#json(await this.#whole(nameOf(asked, client), client))
  }

  /** As `of`; undefined when the causes are not counted within `wait`. */
  async within(wait: Duration, asked: string, client: Viewer): Promise<CausesJson | undefined> {
    const counted = await this.#answer(nameOf(asked, client), client, wait)
    return counted === undefined ? undefined : this.#json(counted)
  }

  /** The causes of all destinations that the client may see, by destination. Rejects when `signal` aborts. */
  async all(client: Viewer): Promise<CausesJson> {
    return this.#json(seen(await this.#whole(null, client), client))
  }

  /** The same causes, summed over the destinations. */
  async sums(client: Viewer): Promise<SummedCausesJson> {
    return this.#summed(seen(await this.#whole(null, client), client))
  }

  /** As `sums`; undefined when the causes are not counted within `wait`. */
  async sumsWithin(wait: Duration, client: Viewer): Promise<SummedCausesJson | undefined> {
    const counted = await this.#answer(null, client, wait)
    return counted === undefined ? undefined : this.#summed(seen(counted, client))
  }

  #json({ causes, as_of }: CountedCauses): CausesJson {
    return { causes: causes.map((one) => causeJson(one, this.#view.clock.wall)), as_of }
  }

  #summed({ causes, as_of }: CountedCauses): SummedCausesJson {
    return { causes: summedCauses(causes).map((one) => summedCauseJson(one, this.#view.clock.wall)), as_of }
  }

  async #whole(name: Counted, client: Viewer): Promise<CountedCauses> {
    const counted = await this.#answer(name, client, null)
    client.signal.throwIfAborted()
    if (counted === undefined) throw new Error(`the causes of ${name ?? 'all destinations'} were not counted`)
    return counted
  }

  async #answer(name: Counted, { signal }: Viewer, wait: Duration | null): Promise<CountedCauses | undefined> {
    const kept = this.#kept.get(name)
    if (kept !== undefined && this.#view.clock.monotonic() - kept.at < KEPT_FOR) return kept.causes
    const running = this.#running.get(name)
    return (running === undefined || running.isEnding ? this.#begun(name) : running).answer(wait, signal)
  }

  #begun(name: Counted): CauseCount {
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

  #keep(name: Counted, causes: CountedCauses): void {
    this.#kept.delete(name)
    // A count that takes longer than KEPT_FOR is kept as well, so that a client that waited for it finds it.
    this.#kept.set(name, { at: this.#view.clock.monotonic(), causes })
    const [oldest] = this.#kept.size > MOST_KEPT ? this.#kept.keys() : []
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
