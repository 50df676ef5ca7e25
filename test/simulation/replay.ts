/**
 * Replays a history once. Passes each entry to every invariant, with the state just before the entry: the model of the queue, the
 * deliveries in progress, the closed destinations and the time of the queue.
 */
import type { Instant, Duration } from '../../src/system/clock.ts'
import type { DestinationName, RecipientId } from '../../src/mail/message.ts'
import type { HistoryEvent } from '../../src/testkit/index.ts'
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
  readonly beganAt: Duration
}

/** State at an entry of the history. */
export interface Scene {
  readonly scenario: Scenario
  readonly settings: SimulatedSettings
  readonly queue: QueueModel
  readonly underWay: ReadonlyMap<number, UnderWay>
  /** Dead and suspended destinations in the memory of the relay. */
  readonly closed: ReadonlyMap<DestinationName, 'dead' | 'suspended'>
  /** Time at which destinations were last opened again, on the monotonic clock. */
  readonly openSince: ReadonlyMap<DestinationName, Duration>
  /** Start of the relay, on the monotonic clock; null while it is down. */
  readonly upSince: Duration | null
  readonly at: Duration
  readonly now: Instant
  /** Sum of the steps of the wall clock. */
  readonly wallSetBy: Duration
  /** Time until which the disk is full, on the monotonic clock. */
  readonly diskFullUntil: Duration
  readonly faultsOver: boolean
}

export type SimulatedEvent =
  | Exclude<HistoryEvent, { where: 'test' }>
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
  history: readonly HistoryEvent[],
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
    for (const invariant of invariants) invariant.see(entry as SimulatedEvent, stage)
    stage.happened(entry)
  }
  for (const invariant of invariants) invariant.end?.(stage)
  return violations
}

class Stage implements Scene {
  readonly scenario: Scenario
  readonly settings: SimulatedSettings
  readonly queue = new QueueModel()
  readonly underWay = new Map<number, UnderWay>()
  readonly closed = new Map<DestinationName, 'dead' | 'suspended'>()
  readonly openSince = new Map<DestinationName, Duration>()
  upSince: Duration | null = 0
  at: Duration = 0
  now: Instant = BEGINNING
  wallSetBy: Duration = 0
  diskFullUntil: Duration = 0
  faultsOver = false

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.settings = settingsOf(scenario)
  }

  happened(entry: HistoryEvent): void {
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
    if (typeof event['by'] === 'number') this.wallSetBy += event['by']
    const deed = event as unknown as GeneratedStep | { readonly did: 'killed' | 'started again' | 'restarted' }
    switch (deed.did) {
      case 'committed':
        this.queue.at = this.at
        this.queue.apply(deed)
        if (deed.method === 'settle') this.#ended(deed.settlement.recipients.map(({ recipient }) => recipient))
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
    for (const { name, deadUntil, suspension } of this.queue.remembered.values()) {
      if (suspension !== null) this.closed.set(name, 'suspended')
      else if (deadUntil !== null) this.closed.set(name, 'dead')
    }
  }

  #ended(recipients: readonly RecipientId[]): void {
    for (const [attempt, { recipients: there }] of this.underWay) {
      if (there.some(({ id }) => recipients.includes(id))) this.underWay.delete(attempt)
    }
  }

  #endedOf(message: number): void {
    for (const [attempt, one] of this.underWay) if (one.message === message) this.underWay.delete(attempt)
  }
}
