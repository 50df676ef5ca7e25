/**
 * Expires waiting mail at the end of its lifetime, with one alarm for the earliest expiry. Mail for a dead or suspended
 * destination expires at once. Other mail is entitled to a last attempt, which may have to wait for room or for the result of a
 * probe. Its expiry is therefore postponed, a second at a time, for at most `minimal_backoff_time`.
 */
import type { DeliveryRequest, DestinationName } from '../../mail/message.ts'
import { SECOND, type Duration, type QueueTime } from '../../system/clock.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { Destination } from './destination.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import { NEVER_STARTED, type SettlementWriter } from './settlement-writer.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'table' | 'arriving' | 'tasks'>
interface Loops {
  readonly settlements: SettlementWriter
  readonly scheduler: Pick<SchedulerLoop, 'giveBack'>
}

/** Maximum number of recipients per claim. */
const CLAIM_LIMIT = 100

export class Expiry {
  readonly #state: State
  readonly #loops: Loops
  /** Destinations with postponed mail, each with the time of the first postponement on the monotonic clock. */
  #postponed: ReadonlyMap<DestinationName, Duration> = new Map()
  readonly #alarm: EarliestAlarm
  #running = false
  /** True when a run was requested since the last claims began. */
  #wanted = false
  #stopped = false

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
    this.#alarm = new EarliestAlarm(state.clock, () => state.tasks.add(this.run()))
  }

  stop(): void {
    this.#stopped = true
    this.#alarm.stop()
  }

  /** Records that mail in the store expires at `at`, and sets the alarm. */
  expect(at: QueueTime): void {
    this.#alarm.expect(at)
  }

  /** Expires or postpones all mail at the end of its lifetime, then sets the alarm for the next expiry. */
  async run(): Promise<void> {
    this.#wanted = true
    if (this.#running) return
    this.#running = true
    const { store, clock, storeHealth } = this.#state
    try {
      do {
        this.#wanted = false
        await this.#claimAll()
      } while (this.#wanted && !this.#stopped)
      const { expiresAt } = await store.nextDeadlines()
      // No mail is postponed any more, so mail that is postponed later can wait for the full time.
      if (expiresAt === null || expiresAt > clock.now()) this.#postponed = new Map()
      const soon = this.#postponed.size > 0 ? clock.now() + SECOND : 0
      if (expiresAt !== null) this.expect(Math.max(expiresAt, soon))
    } catch (error) {
      // The expiry is repeated when the store has recovered.
      storeHealth.failed(error)
    } finally {
      this.#running = false
    }
  }

  async #claimAll(): Promise<void> {
    const { store, clock, arriving } = this.#state
    const before = this.#postponed
    const now = clock.monotonic()
    const waited = (name: DestinationName) => now - (before.get(name) ?? now)
    const postponed = new Map<DestinationName, Duration>()
    while (!this.#stopped) {
      const claim = store.claimExpired(clock.now(), CLAIM_LIMIT, [...postponed.keys()])
      const left = await arriving.claimingExpired(
        claim.then((requests) => (requests.length === 0 ? null : this.#expireOrPostpone(requests, waited))),
      )
      if (left === null) break
      for (const { name } of left) postponed.set(name, before.get(name) ?? now)
    }
    this.#postponed = postponed
  }

  /**
   * Expires or postpones requests and returns the destinations with postponed mail. `waited` is the time since the first
   * postponement of a destination's mail.
   */
  async #expireOrPostpone(
    requests: readonly DeliveryRequest[],
    waited: (name: DestinationName) => Duration,
  ): Promise<Iterable<Destination>> {
    const { table, clock } = this.#state
    const { settlements, scheduler } = this.#loops
    const postponed = new Map<Destination, DeliveryRequest[]>()
    for (const request of requests) {
      const destination = table.get(request.destination)
      const { access, settings, name } = destination
      const now = clock.now()
      const patience = settings.minimal_backoff_time
      const late = waited(name) >= patience && request.recipients.every(({ expiresAt }) => now - expiresAt >= patience)
      if (late || !destination.mayBeTriedSoon(now)) {
        await settlements.expired(request, access.kind === 'dead' ? access.siteStatus : NEVER_STARTED)
      } else postponed.set(destination, [...(postponed.get(destination) ?? []), request])
    }
    for (const [destination, kept] of postponed) await scheduler.giveBack(destination, kept)
    return postponed.keys()
  }
}
