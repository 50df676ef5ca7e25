/**
 * Changes the health of destinations after deliveries and on commands of an operator, and saves it in the store. The records of
 * dead and suspended destinations survive a restart.
 */
import type { GiveBack } from './give-back.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DestinationName } from '../../mail/message.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { isKnownAs, type Suspension } from '../../store/records/suspension.ts'
import type { DestinationRecord } from '../../store/queue-store.ts'
import type { Duration } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { NewEvent } from '../../events/kept-event.ts'
import { asksForLowerRate } from './rate/adaptive-rate.ts'
import type { Destination } from './destination.ts'
import { probedNow, sharedDeath, sharedProbe } from './destination-health.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'events' | 'recorder' | 'storeHealth' | 'table' | 'hosts' | 'tasks'>
interface Loops {
  readonly due: DueQueue
  readonly giveBack: GiveBack
  readonly scheduler: Pick<SchedulerLoop, 'dispatch'>
}

/** A decision of an operator, with its events. */
interface Decision {
  readonly name: DestinationName
  readonly suspension: Suspension | null
  readonly kept: readonly NewEvent[] | undefined
}

/** Cause of a resumption that no operator ordered, for the log. */
export const SUSPENSION_ENDED = 'the end of its suspension'
export const ANOTHER_NODE = 'an operator at another node'

export class DestinationControl {
  readonly #state: State
  readonly #loops: Loops
  /** Fires at the earliest end of a suspension. */
  readonly #suspensionEnds: EarliestAlarm

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
    this.#suspensionEnds = new EarliestAlarm(state.clock, () => state.tasks.add(this.#endSuspensions()))
  }

  /** Loads the records that were saved before the restart, or by the last owner, of the destinations that are `wanted`. */
  async recall(wanted: (name: DestinationName) => boolean = () => true): Promise<void> {
    const { store, table } = this.#state
    for (const record of await store.destinations()) if (wanted(record.name)) table.get(record.name).recall(record)
    await this.#endSuspensions()
  }

  /** Applies saved orders of operators at other nodes, which may have been missed, to the destinations that are `wanted`. */
  async compare(wanted: (name: DestinationName) => boolean): Promise<void> {
    const { store, table } = this.#state
    const saved = new Map((await store.destinations()).map((record) => [record.name, record]))
    const suspended = [...table.all].filter(({ ownAccess }) => ownAccess.kind === 'suspended').map(({ name }) => name)
    for (const name of suspended)
      if (wanted(name) && (saved.get(name)?.suspension ?? null) === null) await this.resume(name, ANOTHER_NODE, 'recorded')
    for (const { name, suspension } of saved.values()) {
      if (suspension !== null && wanted(name) && table.get(name).ownAccess.kind !== 'suspended') await this.#suspended(name, suspension)
    }
  }

  /** Applies the order of an operator at another node. The record may have been overwritten here, so it is saved again. */
  async received({ name, suspension }: DestinationRecord): Promise<void> {
    const destination = this.#state.table.get(name)
    if (suspension !== null) await this.#suspended(name, suspension)
    else if (destination.ownAccess.kind === 'suspended') await this.resume(name, ANOTHER_NODE, 'recorded')
    else if (destination.ownAccess.kind === 'dead') await this.#save(destination)
  }

  /**
   * Updates the health of a destination after a delivery. When the destination becomes dead, its waiting jobs return to the
   * store. `silentHost` is the address of a host that has not greeted it, whose probes it then shares.
   */
  learn(running: RunningDelivery, result: AttemptResult, silentHost: string | null): void {
    const { destination, begunAs } = running
    const { clock, events, tasks } = this.#state
    // The next owner learns from its own deliveries.
    if (destination.isReleased) return
    const { name, inFlight, window: before } = destination
    const wasDead = destination.ownAccess.kind === 'dead'
    destination.attempted([...result.outcomes.values()], clock.now())
    // A refusal at connect while other deliveries are in flight is about their number, which the window limits.
    if (result.congestion !== 'early' || inFlight === 1) this.#learnRate(running, result)
    const change = destination.learn(slowingOnly(running, result, clock.monotonic()), begunAs, clock.now())
    const { window } = destination
    const happened = this.#changed(destination, change)
    if (change === 'died') {
      this.#share(destination, { silentHost, wasProbe: wasDead })
      tasks.add(this.#loops.giveBack.waiting(destination))
    } else if (happened === undefined && window !== before)
      events.emit({ kind: 'window', destination: name, window, inFlight, feedback: result.feedback })
  }

  /** Saves and reports a change of access. */
  #changed(destination: Destination, change: ReturnType<Destination['learn']>): ReturnType<typeof changeOf> {
    const { clock, events, recorder, tasks } = this.#state
    const happened = changeOf(change, destination, clock.wall)
    if (change !== 'same') tasks.add(this.#save(destination, happened === undefined ? undefined : recorder.of(happened)))
    if (happened !== undefined) events.emit(happened)
    return happened
  }

  // --- destinations that are dead because of the same host

  /** Lets a dead destination share the probes of its host. A failed probe counts for the others. */
  #share(destination: Destination, { silentHost, wasProbe }: { readonly silentHost: string | null; readonly wasProbe: boolean }): void {
    const { hosts, tasks } = this.#state
    if (silentHost === null) return destination.hosts.unshare()
    destination.hosts.share(hosts.at(silentHost))
    if (!wasProbe) return
    for (const other of hosts.membersAt(silentHost)) {
      if (other === destination || !this.#countProbe(other)) continue
      tasks.add(this.#save(other))
      this.#loops.due.schedule(other)
    }
  }

  /** Counts a failed probe of the same host. Returns false when that changes nothing. */
  #countProbe(destination: Destination): boolean {
    return destination.change((health, settings) => sharedProbe(health, settings, this.#state.clock.now()))
  }

  /** Makes a destination dead without an attempt, because all its hosts are silent. A probe that was to be made counts as failed. */
  shareDeath(destination: Destination, { address, status }: { readonly address: string; readonly status: DeliveryStatus }): void {
    const { clock, tasks } = this.#state
    const { due, giveBack } = this.#loops
    if (destination.isReleased || destination.ownAccess.kind === 'suspended') return
    destination.hosts.endWait()
    const { isProber } = destination.hosts
    if (destination.ownAccess.kind === 'dead') {
      destination.probing(false)
      if (this.#countProbe(destination)) tasks.add(this.#save(destination))
    } else {
      destination.change((health, settings) => sharedDeath(health, { siteStatus: status, now: clock.now(), settings }))
      this.#changed(destination, 'died')
    }
    this.#share(destination, { silentHost: address, wasProbe: isProber })
    tasks.add(giveBack.waiting(destination))
    due.schedule(destination)
  }

  /** Makes the probe of a dead destination due, because its host has greeted another delivery. */
  probeNow(destination: Destination): void {
    const { clock, tasks } = this.#state
    destination.hosts.unshare()
    if (destination.change((health) => probedNow(health, clock.now()))) tasks.add(this.#save(destination))
  }

  /** The destinations of a provider share its rate. */
  #learnRate({ job, destination, provider }: RunningDelivery, { outcomes, times }: AttemptResult): void {
    const { clock, events } = this.#state
    const now = clock.monotonic()
    const sentAt = now - Math.max(0, times.endedAt - times.transmittingAt)
    const lowered = (provider ?? destination).learnRate({ outcomes: outcomes.values(), fresh: job.request.fresh, now, sentAt })
    if (lowered === undefined) return
    const { rate, refusal } = lowered
    const name = provider === null ? `destination ${destination.name}` : `provider ${provider.name}`
    const text = `${name}: message rate lowered to ${rate.toFixed(1)} per minute: ${refusal.reply ?? refusal.reason}`
    events.emit({ kind: 'note', level: 'info', text })
  }

  /**
   * Suspends a destination; resolves when the suspension is committed. Rejects with StoreUnavailable, without effect, when the
   * commit fails.
   */
  async suspend(name: DestinationName, suspension: Suspension): Promise<void> {
    const { clock, events, recorder } = this.#state
    const { due, giveBack } = this.#loops
    const happened = suspended(name, suspension, clock.wall)
    const destination = await this.#decide({ name, suspension, kept: recorder.of(happened) }, (one) => one.suspend(suspension))
    await giveBack.waiting(destination)
    due.schedule(destination)
    events.emit(happened)
    if (suspension.until !== null) this.#suspensionEnds.expect(suspension.until)
  }

  /**
   * Applies a suspension that another node has committed, and whose event it has kept. Has effect at once, because mail of the destination
   * may be claimed meanwhile.
   */
  async #suspended(name: DestinationName, suspension: Suspension): Promise<void> {
    const { clock, events, table } = this.#state
    const { due, giveBack } = this.#loops
    const destination = table.get(name)
    if (!isKnownAs(suspensionOf(destination), suspension)) events.emit(suspended(name, suspension, clock.wall))
    destination.suspend(suspension)
    due.schedule(destination)
    if (suspension.until !== null) this.#suspensionEnds.expect(suspension.until)
    await Promise.all([giveBack.waiting(destination), this.#save(destination)])
  }

  /** Ends a suspension; resolves when that is committed. No mail is attempted before the commit. Rejects as `suspend` does. */
  async resume(name: DestinationName, by: string, order: 'new' | 'recorded' = 'new'): Promise<void> {
    const { table, events, recorder } = this.#state
    const { due, scheduler } = this.#loops
    if (table.known(name)?.ownAccess.kind !== 'suspended') return
    const happened = { kind: 'resumed', destination: name, by } as const
    const kept = order === 'new' ? recorder.of(happened) : undefined
    const destination = await this.#decide({ name, suspension: null, kept }, (one) => one.reopen())
    events.emit(happened)
    due.schedule(destination)
    scheduler.dispatch()
  }

  /** Resumes the destinations whose suspension has ended, and sets the alarm for the next end. */
  async #endSuspensions(): Promise<void> {
    const { clock, table, storeHealth } = this.#state
    for (const { name, ownAccess: access } of table.all) {
      const until = access.kind === 'suspended' ? access.suspension.until : null
      if (until === null) continue
      if (until > clock.now()) this.#suspensionEnds.expect(until)
      else await storeHealth.retryUntilCommitted(() => this.resume(name, SUSPENSION_ENDED))
    }
  }

  /** Stops waiting for ends of suspensions; the next start ends those that have passed. */
  stop(): void {
    this.#suspensionEnds.stop()
  }

  /** Opens a dead destination, and ends the adaptive rate, by order of an operator. */
  revive(name: DestinationName): void {
    const { table, events, recorder, tasks } = this.#state
    const destination = table.get(name)
    destination.forgetRate()
    destination.provider?.forgetRate()
    if (destination.ownAccess.kind !== 'dead') return
    destination.reopen()
    const happened = { kind: 'revived', destination: name, answered: false } as const
    events.emit(happened)
    tasks.add(this.#save(destination, recorder.of(happened)))
  }

  /** Commits an operator's decision, then applies it. */
  async #decide({ name, suspension, kept }: Decision, apply: (destination: Destination) => void): Promise<Destination> {
    const { store, table } = this.#state
    const before = table.get(name).ownAccess
    await this.#committing(table.get(name), () => store.saveDestination(ordered(name, suspension), kept))
    // The destination may have been dropped from memory and created again during the commit.
    const destination = table.get(name)
    const overtaken = destination.ownAccess !== before
    apply(destination)
    // Health changed during the commit, and the record of that change may have been overwritten. So the current health is saved
    // again.
    if (overtaken) await this.#save(destination)
    return destination
  }

  async #save(destination: Destination, kept?: readonly NewEvent[]): Promise<void> {
    const { storeHealth, store } = this.#state
    await this.#committing(destination, () => storeHealth.retryUntilCommitted(() => store.saveDestination(destination.record(), kept)))
  }

  async #committing(destination: Destination, commit: () => Promise<void>): Promise<void> {
    destination.beginCommit()
    try {
      await commit()
    } finally {
      destination.endCommit()
    }
  }
}

/**
 * The result with which the health of the destination is updated. A destination that accepts mail and asks for less of it is slowed, but not
 * failed: no refusal of that kind brings it nearer to the dead state.
 */
function slowingOnly(
  { destination }: RunningDelivery,
  result: AttemptResult,
  now: Duration,
): Pick<AttemptResult, 'feedback' | 'congestion' | 'siteStatus'> {
  const outcomes = [...result.outcomes.values()]
  if (outcomes.some(({ outcome }) => outcome === 'delivered')) destination.accepted(now)
  const asks = destination.settings.destination_adaptive_rate && outcomes.some(({ status }) => asksForLowerRate(status))
  return asks && result.congestion !== undefined && destination.acceptsMail(now)
    ? { ...result, feedback: 'none', congestion: 'late' }
    : result
}

/** Record of an order to suspend or resume a destination, which ends its death. */
export const ordered = (name: DestinationName, suspension: Suspension | null): DestinationRecord => ({
  name,
  suspension,
  deadUntil: null,
  probeInterval: null,
  siteStatus: null,
})

const suspensionOf = ({ ownAccess: access }: Destination): Suspension | null => (access.kind === 'suspended' ? access.suspension : null)

/** Event of a suspension. */
export const suspended = (destination: DestinationName, suspension: Suspension, wall: WallView) =>
  ({ kind: 'suspended', destination, ...suspension, until: wall.orNull(suspension.until) }) as const

/** Event of a change of health by a delivery. */
function changeOf(change: ReturnType<Destination['learn']>, { name, ownAccess: access }: Destination, wall: WallView) {
  if (change === 'revived') return { kind: 'revived', destination: name, answered: true } as const
  if (change !== 'died' || access.kind !== 'dead') return undefined
  return { kind: 'died', destination: name, until: wall.of(access.until), siteStatus: access.siteStatus } as const
}
