/**
 * A world of the lab: a World of the test kit with an SMTP port, whose calls are answered one at a time in the order of their arrival, and
 * the waits in real time that clients in other processes need.
 */
import { Problem } from '../http/problem-details.ts'
import { isoInstant } from '../mail/mail-date.ts'
import { plural } from '../presentation/text.ts'
import { DAY, SECOND, type Duration, type MachineClock, type WallTime } from '../system/clock.ts'
import type { Endpoint } from '../system/net.ts'
import { toText } from '../testkit/options/time.ts'
import type { World } from '../testkit/world.ts'
import type { NamedStore } from '../testkit/options/world-options.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { RealTimeDrive, until } from './real-time.ts'
import type { WebhookTargets } from './webhook-targets.ts'
import { WorldSite } from './world-site.ts'
import { WorldWebhooks } from './world-webhooks.ts'

/** Parameters of the relay that differ from the defaults of deferd, because a client in another process does not follow the clock of its world. */
export const LAB_DEFAULTS = { smtpd_timeout: '100d', smtpd_error_sleep_time: '0s' } as const

/** Timers that one call may run. */
const MOST_TIMERS = 1_000_000
/** Total size of mail that a world may hold. */
const MOST_CONTENT = 64_000_000

/** Conditions that a call of the clock waits for in real time. */
export interface After {
  /** Number of accepted messages since the start, or `+N` since the last call that named it. */
  readonly accepted?: number | string | undefined
  /** No client is inside a transaction. */
  readonly sessions?: 'idle' | undefined
  /** Number of requests that each webhook has got since its creation. */
  readonly requests?: Readonly<Record<string, number>> | undefined
}

export interface Waiting {
  readonly after: After
  readonly within: Duration
  readonly signal: AbortSignal
}

export interface LabWorldFacts {
  readonly id: string
  readonly name: string | null
  readonly seed: number
  readonly store: NamedStore
  readonly tls: 'none' | 'starttls'
  readonly world: World
  /** Port of the relay; null for a world without one. */
  readonly smtp: Endpoint | null
  /** Remote hosts that listen on ports of their own. */
  readonly remotePorts: readonly { readonly mx: string; readonly at: Endpoint }[]
  /** Parameters of LAB_DEFAULTS that the configuration of the world does not have. */
  readonly defaults: Readonly<Record<string, string>>
}

/** State of the clock of a world, in its answers. */
interface ClockState {
  readonly now: string
  readonly elapsed: number
  readonly speed: number
  readonly next: { readonly in: number; readonly what: string } | null
  readonly accepted: number
  readonly sessions: readonly {
    readonly client: string
    readonly stage: string
    readonly in_transaction: boolean
    readonly waits_until: string | null
  }[]
}

export class LabWorld {
  readonly facts: LabWorldFacts
  readonly world: World
  readonly site: WorldSite
  readonly webhooks: WorldWebhooks
  readonly #clock: MachineClock
  readonly #drive: RealTimeDrive
  readonly #closing = new AbortController()
  #last: Promise<unknown> = Promise.resolve()
  #acceptedBefore = 0
  #downUntil: WallTime | null = null
  #wasFast = false
  /** True when two clients were connected at once. */
  #isConcurrent = false
  /** Time of the last request, on the monotonic clock of the machine. */
  usedAt: Duration
  readonly createdAt: Duration

  constructor(facts: LabWorldFacts, clock: MachineClock, targets: WebhookTargets) {
    this.facts = facts
    this.world = facts.world
    this.#clock = clock
    this.site = new WorldSite(this.world, clock, this)
    this.webhooks = new WorldWebhooks({ world: this.world, clock, targets, closing: this.#closing.signal })
    this.createdAt = clock.monotonic()
    this.usedAt = this.createdAt
    this.#drive = new RealTimeDrive(clock, (by) => this.world.advance(toText(by)))
    this.world.relayEvents.listen(({ kind }) => {
      if (kind === 'connected' && this.world.relay.sessions.filter(({ stage }) => stage !== 'QUIT').length > 1) this.#isConcurrent = true
    })
  }

  /** The call after all earlier ones; everything that is due has happened before it. Calls of a world that closes are refused. */
  inOrder<T>(call: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(async () => {
      if (this.#closing.signal.aborted)
        throw new Problem(LAB_PROBLEMS.worldEnded, `world ${this.facts.id} was closed while the request waited`)
      await this.world.advance(0)
      return call()
    })
    this.#last = result.catch(() => undefined)
    return result
  }

  get speed(): number {
    return this.#drive.speed
  }

  set speed(speed: number) {
    this.#drive.speed = speed
    if (speed > 0) this.#wasFast = true
  }

  /** `sequential` when equal seeds and calls give an equal history; null with a clock that follows real time. */
  get order(): 'sequential' | 'concurrent' | null {
    if (this.#wasFast) return null
    const isOutside = this.webhooks.hasApplication || this.facts.remotePorts.length > 0
    return this.#isConcurrent || isOutside ? 'concurrent' : 'sequential'
  }

  clock(): ClockState {
    const { world } = this
    const now = world.now()
    const next = world.clock.nextAt()
    return {
      now: isoInstant(now),
      elapsed: world.clock.monotonic() / SECOND,
      speed: this.speed,
      next: next === null ? null : { in: (next - now) / SECOND, what: this.#whatIsAt(next) },
      accepted: world.accepted,
      sessions: world.relay.sessions.map(({ client, stage, isInTransaction, isAwaitingReply }) => ({
        client,
        stage,
        in_transaction: isInTransaction,
        waits_until: isAwaitingReply && next !== null ? isoInstant(next) : null,
      })),
    }
  }

  #whatIsAt(next: WallTime): string {
    const due = this.world.isUp ? this.world.destinations().find(({ nextDueAt }) => nextDueAt !== null && nextDueAt <= next) : undefined
    return due === undefined ? 'a timer of the relay or of a server' : `an attempt for ${due.destination}`
  }

  /** Advances by a time, after the conditions hold. */
  async advance(by: Duration, waiting: Waiting): Promise<void> {
    await this.#await(waiting)
    const { clock } = this.world
    const end = clock.monotonic() + by
    await this.runTimers((at) => at > end)
    await this.world.advance(toText(Math.max(0, end - clock.monotonic())))
  }

  /** Advances until the queue is empty, after the conditions hold. Resolves with the time that has passed. */
  async settle(atMost: Duration, waiting: Waiting): Promise<Duration> {
    this.#assertRelay()
    await this.#await(waiting)
    const { clock } = this.world
    const start = clock.monotonic()
    let isLate = false
    const isEmpty = await this.runTimers(async (at) => (await this.world.isEmpty()) || (isLate = at > start + atMost))
    if (isLate || !isEmpty) throw await this.#cannotSettle(atMost, isLate)
    return clock.monotonic() - start
  }

  /**
   * Runs timers until `isEnough`, which gets the time of the next timer on the monotonic clock. Resolves with false when no timer is left
   * before. Rejects with Problem after MOST_TIMERS.
   */
  async runTimers(isEnough: (next: Duration) => boolean | Promise<boolean>): Promise<boolean> {
    const { clock } = this.world
    let ran = -1
    const isDone = await this.world.runTimersWhile(async () => {
      const next = clock.nextAt()
      if (await isEnough(next === null ? Infinity : clock.monotonic() + next - clock.now())) return false
      return ++ran < MOST_TIMERS
    })
    if (ran < MOST_TIMERS) return isDone
    throw new Problem(
      LAB_PROBLEMS.tooMuchWork,
      `the call has run ${plural(MOST_TIMERS, 'timer')} and reached ${isoInstant(this.world.now())}: call again to go on`,
    )
  }

  async #cannotSettle(atMost: Duration, isLate: boolean): Promise<Problem> {
    const counts = (await this.world.reader.counts()).filter(({ messages }) => messages > 0)
    const queue = counts.map(({ queue: name, messages }) => `${name} ${messages}`).join(', ')
    const why = isLate ? `the queue is not empty after ${atMost / DAY} days of the world (at_most)` : 'no timer and no delivery is pending'
    return new Problem(LAB_PROBLEMS.cannotSettle, `the queue does not become empty: ${why}; it has ${queue || 'no mail'}`)
  }

  /** Resolves when the conditions hold; rejects with Problem after `within` of real time. */
  async #await({ after, within: limit, signal: left }: Waiting): Promise<void> {
    const { accepted: wanted } = after
    if (Object.keys(after).length > 0) this.#assertRelay()
    const accepted = typeof wanted === 'string' ? this.#acceptedBefore + Number(wanted.slice(1)) : wanted
    const signal = AbortSignal.any([left, this.#closing.signal])
    const holds = (): boolean => this.#lacking({ ...after, accepted }).length === 0
    const isReached = await until(holds, this.#clock, { limit, signal })
    if (accepted !== undefined) this.#acceptedBefore = this.world.accepted
    if (!isReached)
      throw new Problem(
        LAB_PROBLEMS.notYet,
        `${this.#lacking({ ...after, accepted }).join('; ')} within ${limit / SECOND}s${this.#openSessions()}`,
      )
    await this.world.advance(0)
  }

  /** Sentences about the conditions that do not hold. */
  #lacking({ accepted, sessions, requests = {} }: Omit<After, 'accepted'> & { readonly accepted: number | undefined }): readonly string[] {
    const { world } = this
    const lacking: string[] = []
    if (accepted !== undefined && world.accepted < accepted)
      lacking.push(`the relay has accepted ${world.accepted} of ${plural(accepted, 'message')}`)
    if (sessions === 'idle' && this.#busySessions().length > 0)
      lacking.push(`${plural(this.#busySessions().length, 'client')} did not end a transaction`)
    for (const [name, wanted] of Object.entries(requests)) {
      const { length } = this.webhooks.named(name).requests()
      if (length < wanted) lacking.push(`webhook ${name} has got ${length} of ${plural(wanted, 'request')}`)
    }
    return lacking
  }

  #busySessions(): readonly { readonly stage: string }[] {
    return this.world.relay.sessions.filter(({ isInTransaction, isAwaitingReply }) => isInTransaction || isAwaitingReply)
  }

  #openSessions(): string {
    const { sessions } = this.world.relay
    return `; open sessions: ${sessions.length}${sessions.length === 0 ? '' : `, in ${sessions.map(({ stage }) => stage).join(', ')}`}`
  }

  /** Waits in real time for a condition on the world. */
  until(holds: () => boolean, { within: limit, signal }: Omit<Waiting, 'after'>): Promise<boolean> {
    return until(holds, this.#clock, { limit, signal: AbortSignal.any([signal, this.#closing.signal]) })
  }

  async crash(downFor: Duration): Promise<void> {
    this.assertUp()
    this.#downUntil = this.world.now() + downFor
    await this.world.crash({ downFor: toText(downFor) })
  }

  /** True while the relay runs; false for a world without one. */
  get isUp(): boolean {
    return this.facts.smtp !== null && this.world.isUp
  }

  /** Throws Problem for a world without a relay. */
  #assertRelay(): void {
    if (this.facts.smtp !== null) return
    throw new Problem(
      LAB_PROBLEMS.relayDown,
      `world ${this.facts.id} has no relay ("relay": false): remote ports, rules and mailboxes only; create a world with a relay for this`,
    )
  }

  /** Throws Problem while the relay is down, and for a world without one. */
  assertUp(): void {
    this.#assertRelay()
    if (this.world.isUp) return
    throw new Problem(
      LAB_PROBLEMS.relayDown,
      `the relay is down until ${isoInstant(this.#downUntil ?? this.world.now())}: advance the clock, or crash without down_for`,
    )
  }

  /** Throws Problem for a world with more mail than it may hold. */
  assertRoom(): void {
    const size = this.world.received.reduce((sum, { content }) => sum + content.length, 0)
    if (size > MOST_CONTENT)
      throw new Problem(
        LAB_PROBLEMS.full,
        `world ${this.facts.id} holds ${plural(size, 'byte')} of mail, and ${plural(MOST_CONTENT, 'byte')} are allowed: delete it, and create another`,
      )
  }

  /** Ends waits, then closes the world. Resolves with the hash of its history; null when its clock has followed real time. */
  async close(): Promise<string | null> {
    this.#closing.abort()
    this.site.close()
    await this.#drive.stop()
    await this.#last
    await this.world.close()
    return this.order === null ? null : this.world.history().hash()
  }
}
