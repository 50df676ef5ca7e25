/**
 * How destinations stand: what deliveries teach about them, and what operators decide. A destination that dies or is
 * suspended gets back to the store what waits for it in memory; how it stands is remembered across restarts.
 */
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import type { Clock } from '../mail/clock.ts'
import type { Events } from '../telemetry/events.ts'
import type { ActiveQueue, Turn } from './active-queue.ts'
import type { Destination } from './destination.ts'
import type { DueMail } from './due-mail.ts'
import type { DestinationName } from './message.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore } from './store.ts'

export interface StandingsParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly guard: StoreGuard
  readonly active: ActiveQueue
  readonly due: DueMail
  readonly track: (work: Promise<void>) => void
  /** A destination has opened. */
  readonly turn: () => void
}

export class Standings {
  readonly #parts: StandingsParts

  constructor(parts: StandingsParts) {
    this.#parts = parts
  }

  /** Takes up what the last run remembered. */
  async recall(): Promise<void> {
    const { store, active } = this.#parts
    for (const record of await store.destinations()) active.destination(record.name).recall(record)
  }

  /** Is mail there not tried now? */
  isClosed(name: DestinationName): boolean {
    return (this.#parts.active.known(name)?.standing.kind ?? 'open') !== 'open'
  }

  /** Learns from a delivery that has just ended. */
  learn({ destination, begunAs }: Turn, result: AttemptResult): void {
    const { clock, events, due, track } = this.#parts
    const before = destination.window
    const { name, inFlight } = destination
    const alone = inFlight === 1 && destination.todo === 0 && destination.nextDueAt === null && !destination.claiming
    const change = destination.learn(result, { now: clock.now(), alone, begunAs })
    const { standing, window } = destination
    if (change !== 'same') track(this.#remember(destination))
    if (change === 'revived') events.emit({ kind: 'revived', destination: name })
    else if (standing.kind === 'dead' && change === 'died') {
      events.emit({ kind: 'died', destination: name, until: standing.until, reason: standing.reason.reason })
      track(due.giveBackWaiting(destination))
    } else if (window !== before) events.emit({ kind: 'window', destination: name, window, inFlight, feedback: result.feedback })
  }

  /** Resolves when it is on disk. Throws `StoreUnavailable` when it cannot be written down, and then nothing has changed. */
  async suspend(name: DestinationName, by: string): Promise<void> {
    const { due, events } = this.#parts
    const destination = await this.#decide(name, by, (one) => one.suspend(by))
    await due.giveBackWaiting(destination)
    due.schedule(destination)
    events.emit({ kind: 'suspended', destination: name, by })
  }

  /** Resolves when it is on disk; until then nobody is asked there. Throws `StoreUnavailable` as `suspend` does. */
  async resume(name: DestinationName, by: string): Promise<void> {
    const { active, due, events, turn } = this.#parts
    if (active.known(name)?.standing.kind !== 'suspended') return
    const destination = await this.#decide(name, null, (one) => one.reopen())
    events.emit({ kind: 'resumed', destination: name, by })
    due.schedule(destination)
    turn()
  }

  /** An operator wants a dead destination to be tried like any other. */
  revive(name: DestinationName): void {
    const { active, events, track } = this.#parts
    const destination = active.destination(name)
    if (destination.standing.kind !== 'dead') return
    destination.reopen()
    events.emit({ kind: 'revived', destination: name })
    track(this.#remember(destination))
  }

  /** What an operator decides is on disk before it takes effect. */
  async #decide(name: DestinationName, suspendedBy: string | null, takeEffect: (destination: Destination) => void): Promise<Destination> {
    const { active, store } = this.#parts
    const before = active.destination(name).standing
    await store.saveDestination({ name, suspendedBy, deadUntil: null, probeInterval: null, reason: null })
    // Meanwhile it may have been forgotten and met again, which makes it another one.
    const destination = active.destination(name)
    const overtaken = destination.standing !== before
    takeEffect(destination)
    // Something else was learned of it, and perhaps written down later than this.
    if (overtaken) await this.#remember(destination)
    return destination
  }

  async #remember(destination: Destination): Promise<void> {
    const { guard, store } = this.#parts
    await guard.insist(() => store.saveDestination(destination.record()))
  }
}
