/** The suppression list of a relay: which recipients it refuses, its changes, and the watch over deliveries. Nothing runs while `suppression = no`. */
import type { Config } from '../config/options.ts'
import { domainOf } from '../mail/address.ts'
import type { DestinationName } from '../mail/message.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { ALL_SENDERS, isListed, type Suppression, type SuppressionKey, type SuppressionStop } from '../store/records/suppression-entry.ts'
import { DAY, HOUR, SECOND } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { TaskSet } from '../system/task-set.ts'
import { onEvents } from '../telemetry/events.ts'
import { AutomaticListings, type AutomaticListingsDeps, type ListingSettings } from './automatic-listings.ts'
import { keyOf } from './failures.ts'
import { SuppressionChanges, tell } from './suppression-changes.ts'
import { SuppressionIndex } from './suppression-index.ts'

interface SuppressionsDeps extends Omit<AutomaticListingsDeps, 'index' | 'changed' | 'settings'> {
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

/** The entry that concerns a recipient, and whether it is refused. */
export interface SuppressedRecipient {
  readonly entry: Suppression
  readonly isRefused: boolean
}

const TASK = { failed: rethrowUnlessUnavailable }

export class Suppressions {
  readonly #deps: SuppressionsDeps
  readonly #index: SuppressionIndex
  readonly #listings: AutomaticListings
  readonly changes: SuppressionChanges
  readonly #told = new TaskSet((error) => rethrowUnlessUnavailable(error))
  #settings: ListingSettings
  #tasks: readonly PeriodicTask[] = []

  constructor(deps: SuppressionsDeps, settings: ListingSettings) {
    const { store } = deps
    this.#deps = deps
    this.#settings = settings
    this.#index = new SuppressionIndex((last, limit) => store.records.suppressions.changes(last, limit))
    const changed = (): Promise<void> => (this.isOn ? this.#index.follow() : Promise.resolve())
    this.#listings = new AutomaticListings({ ...deps, index: this.#index, settings: () => this.#settings, changed })
    this.changes = new SuppressionChanges({ ...deps, changed })
    deps.events.listen(onEvents({ attempted: (event) => (this.isOn ? this.#listings.attempted(event) : undefined) }))
  }

  get isOn(): boolean {
    return this.#settings.suppression !== 'no'
  }

  /** Applies the configuration, at the start and at each reload. */
  async apply(settings: Config): Promise<void> {
    this.#settings = settings
    if (this.isOn === this.#tasks.length > 0) return
    if (!this.isOn) return this.stop()
    const { clock, store, isShared } = this.#deps
    this.#tasks = [
      every(clock, isShared ? SECOND : HOUR, () => this.#index.follow(), { ...TASK, immediate: true }),
      every(clock, HOUR, () => store.records.suppressions.prune({ now: clock.now() }), TASK),
      every(clock, DAY, () => this.#index.renew(), TASK),
    ]
  }

  async stop(): Promise<void> {
    const tasks = this.#tasks
    this.#tasks = []
    await Promise.all(tasks.map((task) => task.stop()))
    await this.#listings.settled()
    await this.#told.settled()
  }

  /** The entry that concerns a recipient; undefined for none. Rejects with StoreUnavailable. */
  find(sender: string, address: string): Promise<SuppressedRecipient | undefined> | undefined {
    if (!this.isOn) return undefined
    const key = keyOf(sender, address)
    if (key === null) return undefined
    const domain = `@${domainOf(address)}`
    const keys = [key.scope, ALL_SENDERS].flatMap((scope) => [address, domain].map((one): SuppressionKey => ({ scope, address: one })))
    return keys.some((one) => this.#index.mayHave(one)) ? this.#read(key, domain, keys) : undefined
  }

  async #read(key: SuppressionKey, domain: string, keys: readonly SuppressionKey[]): Promise<SuppressedRecipient | undefined> {
    const { last } = this.#index
    const found = await this.#deps.store.records.suppressions.matching(key, domain)
    const known = new Set(found.map(({ scope, address }) => `${scope} ${address}`))
    this.#index.forget(
      keys.filter(({ scope, address }) => !known.has(`${scope} ${address}`)),
      last,
    )
    const now = this.#deps.clock.now()
    const entry = found.filter((one) => isListed(one, now)).toSorted((a, b) => rank(a) - rank(b))[0]
    return entry === undefined ? undefined : { entry, isRefused: this.#settings.suppression === 'yes' }
  }

  /** Reports a recipient with an entry. */
  report({ entry, isRefused }: SuppressedRecipient, sender: string, recipient: string): void {
    const { scope, reason, reply: text } = entry
    const happened = { sender, recipient, scope, reason: reason ?? '', action: isRefused ? 'refused' : 'warned', text } as const
    this.#told.add(tell({ kind: 'suppressed', ...happened }, this.#deps))
  }

  /** Destinations with too many failures, to which this node delivers. No address there is listed for now. */
  get braked(): readonly DestinationName[] {
    return this.isOn ? this.#listings.braked : []
  }

  /** Sender domains with too many entries, for which no address is listed. */
  async stopped(): Promise<readonly SuppressionStop[]> {
    return this.isOn ? this.#deps.store.records.suppressionStops.all() : []
  }
}

/** The entry of the address itself comes before that of its domain, and that of a sender domain before that of all. */
const rank = ({ scope, address }: SuppressionKey): number => (address.startsWith('@') ? 2 : 0) + (scope === ALL_SENDERS ? 1 : 0)
