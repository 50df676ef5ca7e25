/**
 * Watches the outcomes of deliveries: counts failures, lists addresses, and removes entries that a delivery refutes. The work follows the
 * commit of an outcome and delays none. A crash between loses a failure, never mail.
 */
import type { Config } from '../config/options.ts'
import type { DestinationName } from '../mail/message.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../store/queue-store.ts'
import { isListed, type NewSuppression, type Suppression, type SuppressionKey } from '../store/records/suppression-entry.ts'
import { HOUR, type Clock, type QueueTime } from '../system/clock.ts'
import { TaskSet } from '../system/task-set.ts'
import type { EventOf, Events } from '../telemetry/events.ts'
import { Brakes } from './brakes.ts'
import { afterFailure, isAboutRecipient, isRefuted, keyOf, type RecipientFailure } from './failures.ts'
import type { SuppressionIndex } from './suppression-index.ts'
import { changeOf, tell } from './suppression-changes.ts'

export type ListingSettings = Pick<
  Config,
  'suppression' | 'suppression_bounce_limit' | 'suppression_bounce_interval' | 'suppression_bounce_window'
>

export interface AutomaticListingsDeps {
  readonly store: Pick<QueueStore, 'records' | 'outbox'>
  readonly clock: Clock
  readonly events: Events
  readonly recorder: Pick<EventRecorder, 'of'>
  readonly index: Pick<SuppressionIndex, 'mayHave'>
  readonly settings: () => ListingSettings
  /** Called after each change of entries. */
  readonly changed: () => Promise<void>
  /** Tells the operators that nobody at a destination is listed. */
  readonly braked: (destination: DestinationName) => Promise<void>
}

/** Automatic listings of a scope within an hour, above which an operator has to look at them. */
const LISTINGS_PER_HOUR = 1_000
/** Outcomes whose entries are changed at once. */
const BATCH = 100
/** Tries to change an entry that others change too. */
const TRIES = 3

type Outcome =
  | { readonly kind: 'failure'; readonly failure: RecipientFailure }
  | { readonly kind: 'delivery'; readonly key: SuppressionKey }

const keyIn = (outcome: Outcome): SuppressionKey => (outcome.kind === 'failure' ? outcome.failure : outcome.key)

export class AutomaticListings {
  readonly #deps: AutomaticListingsDeps
  readonly #brakes = new Brakes()
  readonly #tasks = new TaskSet((error) => {
    throw error
  })
  #waiting: Outcome[] = []
  #tripped: { readonly destination: DestinationName; readonly at: QueueTime }[] = []
  #isWorking = false

  constructor(deps: AutomaticListingsDeps) {
    this.#deps = deps
  }

  /** Destinations at which nobody is listed for now. */
  get braked(): readonly DestinationName[] {
    return this.#brakes.braked(this.#deps.clock.now())
  }

  /** Notes the outcomes of an attempt. */
  attempted({ request, attempts }: EventOf<'attempted'>): void {
    const { sender } = request.message
    const addresses = new Map(request.recipients.map(({ id, address }) => [id, address]))
    const { destination } = request
    let [recipients, failed] = [0, 0]
    for (const { recipient, outcome, status, at } of attempts) {
      const key = keyOf(sender, addresses.get(recipient) ?? '')
      const isFailure = outcome === 'bounced' && isAboutRecipient(status)
      if (outcome === 'delivered' || outcome === 'bounced') recipients++
      if (isFailure) failed++
      if (key === null) continue
      if (isFailure) this.#waiting.push({ kind: 'failure', failure: { ...key, at, destination, reply: status.reply ?? status.reason } })
      else if (outcome === 'delivered' && this.#deps.index.mayHave(key)) this.#waiting.push({ kind: 'delivery', key })
    }
    const at = this.#deps.clock.now()
    if (recipients > 0 && this.#brakes.count(destination, { recipients, failed, at })) this.#tripped.push({ destination, at })
    if (!this.#isWorking && this.#waiting.length + this.#tripped.length > 0) this.#tasks.add(this.#work())
  }

  /** Resolves when all noted outcomes are in the store. */
  settled(): Promise<void> {
    return this.#tasks.settled()
  }

  async #work(): Promise<void> {
    this.#isWorking = true
    try {
      while (this.#waiting.length + this.#tripped.length > 0) await this.#batch()
    } catch (error) {
      // The outcomes of the batch are not counted.
      rethrowUnlessUnavailable(error)
    } finally {
      this.#isWorking = false
    }
  }

  async #batch(): Promise<void> {
    for (const { destination, at } of this.#tripped.splice(0)) await this.#brake(destination, at)
    const batch = this.#waiting.splice(0, BATCH)
    const byKey = Map.groupBy(batch, (outcome) => `${keyIn(outcome).scope} ${keyIn(outcome).address}`)
    const listed = await Promise.all([...byKey.values()].map((outcomes) => this.#ofOneKey(outcomes)))
    for (const failure of listed.flat()) await this.#list(failure)
    await this.#deps.changed()
  }

  /** Removes what the destination has caused within the hour. */
  async #brake(destination: DestinationName, at: QueueTime): Promise<void> {
    const { store, events, braked } = this.#deps
    await store.records.suppressions.voidSince({ destination, since: at - HOUR })
    events.emit({ kind: 'listing-braked', destination })
    await braked(destination)
  }

  /** Counts the outcomes of a key. Returns the failures that list it. */
  async #ofOneKey(outcomes: readonly Outcome[]): Promise<readonly RecipientFailure[]> {
    const listing: RecipientFailure[] = []
    for (const outcome of outcomes) {
      if (outcome.kind === 'delivery') await this.#refute(outcome.key)
      else if ((await this.#changed(outcome.failure, 'counted')) === 'listed') listing.push(outcome.failure)
    }
    return listing
  }

  async #refute(key: SuppressionKey): Promise<void> {
    const { store, clock } = this.#deps
    for (let tries = 0; tries < TRIES; tries++) {
      const known = await this.#known(key)
      if (known === undefined || !isRefuted(known)) return
      if (!(await store.records.suppressions.removeUnchanged(known))) continue
      if (isListed(known, clock.now())) await tell({ kind: 'suppression-removed', ...changeOf(known, 'a delivery', clock) }, this.#deps)
      return
    }
  }

  /** Lists an address, unless its scope has too many new entries. */
  async #list(failure: RecipientFailure): Promise<void> {
    const { store, clock } = this.#deps
    const { suppressions, suppressionStops } = store.records
    const { scope } = failure
    if ((await suppressionStops.all()).some((stop) => stop.scope === scope)) return
    const now = clock.now()
    const entries = await suppressions.listedSince(scope, now - HOUR)
    if (entries < LISTINGS_PER_HOUR) await this.#changed(failure, 'listed')
    else if (await suppressionStops.stop({ scope, at: now })) await tell({ kind: 'suppression-stopped', scope, entries }, this.#deps)
  }

  /** Makes the change of a failure when it is one of a kind. Returns the kind of change. */
  async #changed(failure: RecipientFailure, kind: 'counted' | 'listed'): Promise<'none' | 'counted' | 'listed'> {
    const { store, settings, clock } = this.#deps
    const { suppression_bounce_limit: limit, suppression_bounce_interval: interval, suppression_bounce_window: window } = settings()
    for (let tries = 0; tries < TRIES; tries++) {
      if (this.#brakes.isBraked(failure.destination, clock.now())) return 'none'
      const known = await this.#known(failure)
      const verdict = afterFailure(known, failure, { limit, interval, window })
      if (verdict.kind !== kind) return verdict.kind
      if (await store.records.suppressions.put(ownPart(verdict.entry), known?.seq ?? 0)) {
        if (kind === 'listed') await tell({ kind: 'suppression-added', ...changeOf(verdict.entry, 'failures', clock) }, this.#deps)
        return kind
      }
    }
    return 'none'
  }

  #known({ scope, address }: SuppressionKey): Promise<Suppression | undefined> {
    return this.#deps.store.records.suppressions.of(scope, address)
  }
}

/** The entry without its `seq`, which the store gives. */
const ownPart = ({ seq: _seq, ...entry }: NewSuppression & { readonly seq?: number }): NewSuppression => entry
