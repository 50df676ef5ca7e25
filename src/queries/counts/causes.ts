/** Counts of the causes for which mail waits, at one destination or at all. A count reads all that mail, so clients share it, and results are kept. */
import {
  causeJson,
  summedCauseJson,
  type CauseJson,
  type CausesJson,
  type SummedCauseJson,
  type SummedCausesJson,
} from '../../resources/cause-json.ts'
import type { DestinationName } from '../../mail/message.ts'
import { summedCauses, waitingCauses, type WaitingCause } from '../../queue/waiting-causes.ts'
import type { Duration } from '../../system/clock.ts'
import { assertVisible } from '../destinations.ts'
import { maySee } from '../message-query.ts'
import type { Viewer } from '../queue-view.ts'
import { SharedCounts, type Counted, type CountsView } from './shared-counts.ts'

/** A destination whose causes are counted; null for all. */
type Asked = DestinationName | null

/** Name of a count. No destination is empty. */
const countOf = (asked: Asked): string => asked ?? ''

type CountedCauses = Counted<readonly WaitingCause[]>

/** A cause with the time of its count. */
export interface KnownCause {
  readonly cause: CauseJson | SummedCauseJson
  readonly as_of: number
}

/** A summed cause with the number of its destinations that are suspended, whose mail waits until they are resumed. */
export type PlacedSum = SummedCauseJson & { readonly suspended: number }

export interface PlacedSums {
  readonly causes: readonly PlacedSum[]
  readonly as_of: number
}

/** The name in lower case. Throws Problem for a destination that the client may not see. */
function nameOf(asked: string, { visible }: Viewer): DestinationName {
  const name = asked.toLowerCase()
  assertVisible(name, visible)
  return name
}

const seen = ({ value, as_of }: CountedCauses, { visible }: Viewer): CountedCauses => ({
  value: value.filter(({ destination }) => maySee(visible, destination)),
  as_of,
})

export class Causes {
  readonly #view: CountsView
  readonly #counts: SharedCounts<readonly WaitingCause[]>

  constructor(view: CountsView) {
    this.#view = view
    this.#counts = new SharedCounts(view)
  }

  /** The cause whose filter this is, of the last counts that are kept, with their time; null when no kept count has it. */
  known(filter: NonNullable<CauseJson['filter']>, { visible }: Pick<Viewer, 'visible'>): KnownCause | null {
    const isSame = ({ filter: one }: CauseJson | SummedCauseJson): boolean =>
      one !== null && one.destination === filter.destination && one.queue === filter.queue && one.reply === filter.reply
    const ofOne = filter.destination === null ? undefined : this.#counts.known(countOf(filter.destination))
    const ofAll = this.#counts.known(countOf(null))
    if (filter.destination !== null && !maySee(visible, filter.destination)) return null
    const found = ofOne === undefined ? undefined : this.#json(ofOne).causes.find(isSame)
    const sum = ofAll === undefined || visible !== null ? undefined : this.#summed(ofAll).causes.find(isSame)
    const known = [
      ...(ofOne === undefined || found === undefined ? [] : [{ cause: found, as_of: ofOne.as_of }]),
      ...(ofAll === undefined || sum === undefined ? [] : [{ cause: sum, as_of: ofAll.as_of }]),
    ]
    // That of the screen from which the client comes is the newest one.
    return known.toSorted((a, b) => b.as_of - a.as_of)[0] ?? null
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

  /** As `sums`, with the number of destinations of each cause that `isSuspended` names; undefined when they are not counted within `wait`. */
  async sumsWithin(wait: Duration, client: Viewer, isSuspended: (name: DestinationName) => boolean): Promise<PlacedSums | undefined> {
    const counted = await this.#answer(null, client, wait)
    if (counted === undefined) return undefined
    const { value, as_of } = seen(counted, client)
    const sums = summedCauses(value)
    return {
      causes: sums.map((one) => ({
        ...summedCauseJson(one, this.#view.clock.wall),
        suspended: one.destinations.filter((name) => isSuspended(name)).length,
      })),
      as_of,
    }
  }

  #json({ value, as_of }: CountedCauses): CausesJson {
    return { causes: value.map((one) => causeJson(one, this.#view.clock.wall)), as_of }
  }

  #summed({ value, as_of }: CountedCauses): SummedCausesJson {
    return { causes: summedCauses(value).map((one) => summedCauseJson(one, this.#view.clock.wall)), as_of }
  }

  async #whole(name: Asked, client: Viewer): Promise<CountedCauses> {
    const counted = await this.#answer(name, client, null)
    client.signal.throwIfAborted()
    if (counted === undefined) throw new Error(`the causes of ${name ?? 'all destinations'} were not counted`)
    return counted
  }

  #answer(name: Asked, { signal }: Viewer, wait: Duration | null): Promise<CountedCauses | undefined> {
    return this.#counts.answer(countOf(name), (end) => waitingCauses(this.#view.reader, name, end), { wait, signal })
  }
}
