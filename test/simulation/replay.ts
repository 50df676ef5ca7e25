/**
 * Replays a history once. Passes each entry to every invariant, with the state just before the entry: the model of the queue, the
 * deliveries in progress, the closed destinations and the time of the queue.
 */
import { SECOND, type Duration, type QueueTime } from '../../src/system/clock.ts'
import { shardUnder } from '../../src/store/membership/shard-keys.ts'
import type { Shard } from '../../src/store/membership/shards.ts'
import type { DestinationName, OwnerId, RecipientId } from '../../src/mail/message.ts'
import type { TracedEvent } from '../../src/testkit/results/world-history.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { QueueModel } from './model.ts'
import type { CommittedClaim, GeneratedStep } from './record.ts'
import type { Scenario } from './scenario.ts'
import { settingsOf, type SimulatedSettings } from './settings.ts'

export interface Violation {
  readonly invariant: string
  /** Milliseconds since the start of the world. */
  readonly at: Duration
  readonly text: string
}

/** A delivery that has started and whose outcome is not committed yet. */
export interface UnderWay extends CommittedClaim {
  readonly attempt: number
  readonly node?: OwnerId
  readonly beganAt: Duration
}

/** State at an entry of the history. */
export interface Scene {
  readonly scenario: Scenario
  readonly settings: SimulatedSettings
  readonly provider: Scenario['provider']
  readonly queue: QueueModel
  readonly underWay: ReadonlyMap<number, UnderWay>
  /** Deliveries of nodes that were taken over, and which may still end. */
  readonly overtaken: ReadonlyMap<number, UnderWay>
  /** Deliveries that go on although their shard has another owner. */
  readonly lingering: ReadonlySet<number>
  /** Dead and suspended destinations in the memory of the relay. */
  readonly closed: ReadonlyMap<DestinationName, 'dead' | 'suspended'>
  /** Time at which destinations were last opened again, on the monotonic clock. */
  readonly openSince: ReadonlyMap<DestinationName, Duration>
  /** Start of the relay, on the monotonic clock; null while it is down. */
  readonly upSince: Duration | null
  readonly at: Duration
  readonly now: QueueTime
  /** Sum of the steps of the wall clock. */
  readonly wallSetBy: Duration
  /** Time until which the disk is full, on the monotonic clock. */
  readonly diskFullUntil: Duration
  readonly faultsOver: boolean
}

export type SimulatedEvent =
  | Exclude<TracedEvent, { where: 'test' }>
  | { readonly at: Duration; readonly where: 'test'; readonly event: GeneratedStep }

export type Complain = (text: string) => void

/** A rule that must always hold. `see` is called for every entry, before the entry changes the scene. */
export interface Invariant {
  see(entry: SimulatedEvent, scene: Scene): void
  /** Called after the last entry. */
  end?(scene: Scene): void
}

export type InvariantMaker = (complain: Complain, scenario: Scenario) => Invariant

export function replay(
  history: readonly TracedEvent[],
  scenario: Scenario,
  makers: Readonly<Record<string, InvariantMaker>>,
): readonly Violation[] {
  const violations: Violation[] = []
  const stage = new Stage(scenario)
  const invariants = Object.entries(makers).map(([invariant, make]) =>
    make((text) => violations.push({ invariant, at: stage.at, text }), scenario),
  )
  for (const entry of history) {
    stage.at = entry.at
    // The clock of the queue, which steps of the wall clock do not change.
    stage.now = BEGINNING + entry.at
    if (stage.isForeign(entry)) continue
    for (const invariant of invariants) invariant.see(entry as SimulatedEvent, stage)
    stage.happened(entry)
  }
  for (const invariant of invariants) invariant.end?.(stage)
  return violations
}

class Stage implements Scene {
  readonly scenario: Scenario
  readonly settings: SimulatedSettings
  readonly provider: Scenario['provider']
  readonly queue = new QueueModel()
  readonly underWay = new Map<number, UnderWay>()
  readonly overtaken = new Map<number, UnderWay>()
  readonly lingering = new Set<number>()
  readonly #owners = new Map<Shard, OwnerId>()
  readonly #providers = new Map<DestinationName, string | null>()
  readonly closed = new Map<DestinationName, 'dead' | 'suspended'>()
  readonly openSince = new Map<DestinationName, Duration>()
  upSince: Duration | null = 0
  at: Duration = 0
  now: QueueTime = BEGINNING
  wallSetBy: Duration = 0
  diskFullUntil: Duration = 0
  faultsOver = false

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.settings = settingsOf(scenario)
    this.provider = scenario.provider
  }

  /** True for an event about a destination that its node no longer schedules. */
  isForeign(entry: TracedEvent & { readonly node?: OwnerId }): boolean {
    if (entry.where !== 'queue' || entry.node === undefined) return false
    const { event } = entry
    const isState = ['died', 'revived', 'suspended', 'resumed', 'window'].includes(event.kind)
    return isState && 'destination' in event && this.#owners.get(this.#shardOf(event.destination)) !== entry.node
  }

  /** The shard of a destination, which is that of its provider once that is known. */
  #shardOf(name: DestinationName): Shard {
    return shardUnder(name, this.#providers.get(name) ?? null)
  }

  happened(entry: TracedEvent): void {
    if (entry.where === 'queue') {
      const { event } = entry
      if (event.kind === 'died') this.closed.set(event.destination, 'dead')
      if (event.kind === 'suspended') this.closed.set(event.destination, 'suspended')
      if (event.kind === 'revived' || event.kind === 'resumed') {
        this.closed.delete(event.destination)
        this.openSince.set(event.destination, this.at)
      }
    } else if (entry.where === 'test') this.#did(entry.event)
  }

  #did(event: Readonly<Record<string, unknown>>): void {
    if (typeof event['by'] === 'number') this.wallSetBy += event['by'] * SECOND
    const deed = event as unknown as GeneratedStep | { readonly did: 'killed' | 'started again' | 'restarted' }
    switch (deed.did) {
      case 'committed':
        this.queue.at = this.at
        this.queue.apply(deed)
        if (deed.method === 'joinProvider') this.#providers.set(deed.destination, deed.provider)
        if (deed.method === 'settle')
          this.#ended(
            deed.settlement.recipients.map(({ recipient }) => recipient),
            deed.node,
          )
        // Gives back mail in memory, which is not in delivery, and mail whose delivery has not begun.
        if (deed.method === 'giveBack') this.#ended(deed.recipients, deed.node)
        if (deed.method === 'quarantine') this.#endedOf(deed.message)
        break
      case 'began':
        this.underWay.set(deed.attempt, { ...deed, beganAt: this.at })
        break
      case 'killed':
        this.upSince = null
        break
      case 'started again':
      case 'restarted':
        this.#restart()
        this.upSince = this.at
        break
      case 'node ended':
        this.#nodeEnded(deed.node)
        break
      case 'shards taken':
        this.#shardsTaken(deed.shards, deed.node)
        break
      case 'shards released':
        // A release whose answer was lost is repeated, and has no effect when another node has taken the shard meanwhile.
        for (const shard of deed.shards) if (this.#owners.get(shard) === deed.node) this.#owners.delete(shard)
        break
      case 'node fault':
        // The connections come back after the fault, then the next beats.
        this.upSince = Math.max(this.upSince ?? 0, this.at + 2 * (deed.time ?? 0) + 2 * (this.scenario.lease ?? 0))
        break
      case 'disk full':
        this.diskFullUntil = deed.until
        break
      case 'faults end':
        this.faultsOver = true
        break
      default:
    }
  }

  #restart(): void {
    this.queue.at = this.at
    this.queue.crash()
    this.underWay.clear()
    this.closed.clear()
    this.#remember(() => true)
  }

  #remember(wanted: (name: DestinationName) => boolean): void {
    for (const { name, deadUntil, suspension } of this.queue.remembered.values()) {
      if (!wanted(name)) continue
      if (suspension !== null) this.closed.set(name, 'suspended')
      else if (deadUntil !== null) this.closed.set(name, 'dead')
    }
  }

  #nodeEnded(node: OwnerId): void {
    this.queue.at = this.at
    this.queue.crash(node)
    this.upSince = Math.max(this.upSince ?? 0, this.at)
    for (const [attempt, one] of this.underWay) {
      if (one.node !== node) continue
      this.underWay.delete(attempt)
      this.overtaken.set(attempt, one)
    }
    for (const [shard, owner] of this.#owners) if (owner === node) this.#owners.delete(shard)
  }

  /** The new owner loads the saved state. */
  #shardsTaken(shards: readonly Shard[], node: OwnerId): void {
    const isTaken = (name: DestinationName) => shards.includes(this.#shardOf(name))
    for (const shard of shards) this.#owners.set(shard, node)
    this.upSince = Math.max(this.upSince ?? 0, this.at)
    for (const name of this.closed.keys()) if (isTaken(name)) this.closed.delete(name)
    this.#remember(isTaken)
    for (const [attempt, one] of this.underWay) if (one.node !== node && isTaken(one.destination)) this.lingering.add(attempt)
  }

  #ended(recipients: readonly RecipientId[], node?: OwnerId): void {
    for (const [attempt, { recipients: there, node: at }] of this.underWay) {
      if (at === node && there.some(({ id }) => recipients.includes(id))) this.underWay.delete(attempt)
    }
  }

  #endedOf(message: number): void {
    for (const [attempt, one] of this.underWay) if (one.message === message) this.underWay.delete(attempt)
  }
}
