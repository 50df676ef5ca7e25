/**
 * The backlogs of destinations with more due mail in the store than memory has room for, where deliveries are shared fairly. Reads them from the
 * store, a slice at a time, beside the claims.
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { SchedulerState } from './scheduler-state.ts'
import { Backlog } from './turns/share-backlog.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'tasks' | 'policies'>

/** Maximum number of recipients in a slice, which takes some milliseconds. */
const SLICE = 500
/** Number of recipients in all backlogs from which only those are read that have less than a slice. */
const MOST_KNOWN = 500_000

export class Backlogs {
  readonly #state: State
  /** Called when mail of a destination can be claimed. */
  readonly #changed: (name: DestinationName) => void
  readonly #all = new Map<DestinationName, Map<Band, Backlog>>()
  #stopped = false

  constructor(state: State, changed: (name: DestinationName) => void) {
    this.#state = state
    this.#changed = changed
  }

  of(name: DestinationName, band: Band): Backlog | undefined {
    return this.#all.get(name)?.get(band)
  }

  /** Destinations and bands that have a backlog. */
  get places(): readonly (readonly [DestinationName, Band])[] {
    return [...this.#all].flatMap(([name, bands]) => [...bands.keys()].map((band) => [name, band] as const))
  }

  /** Begins a backlog, unless there is one or deliveries are not shared fairly. */
  begin(name: DestinationName, band: Band): void {
    if (this.#state.policies().shares === null || this.of(name, band) !== undefined) return
    const bands = this.#all.get(name) ?? new Map<Band, Backlog>()
    this.#all.set(name, bands.set(band, new Backlog()))
    this.read(name, band)
  }

  end(name: DestinationName, band: Band): void {
    const bands = this.#all.get(name)
    bands?.delete(band)
    if (bands?.size === 0) this.#all.delete(name)
  }

  forget(name: DestinationName): void {
    this.#all.delete(name)
  }

  /** Reads what is due and was not read, unless that is being done or enough is known. */
  read(name: DestinationName, band: Band): void {
    const backlog = this.#stopped ? undefined : this.of(name, band)
    if (backlog === undefined || backlog.isReading || backlog.unreadFrom > this.#state.clock.now()) return
    if (backlog.size < SLICE || this.#known < MOST_KNOWN) this.#state.tasks.add(this.#read({ name, band, backlog }))
  }

  /** Reads no more. */
  stop(): void {
    this.#stopped = true
  }

  get #known(): number {
    let sum = 0
    for (const bands of this.#all.values()) for (const { size } of bands.values()) sum += size
    return sum
  }

  async #read({ name, band, backlog }: { readonly name: DestinationName; readonly band: Band; readonly backlog: Backlog }): Promise<void> {
    const { store, clock, storeHealth, policies } = this.#state
    const after = backlog.beginReading()
    const now: QueueTime = clock.now()
    try {
      const rows = await store.waitingAt({ destination: name, band, after, limit: SLICE })
      const { shares } = policies()
      if (shares === null) backlog.notRead()
      else backlog.read({ rows, size: SLICE, now }, shares)
    } catch (error) {
      // The next claim reads again, when the store has recovered.
      backlog.notRead()
      storeHealth.failed(error)
    }
    if (this.of(name, band) !== backlog) return
    if (!storeHealth.unavailable) this.read(name, band)
    this.#changed(name)
  }
}
