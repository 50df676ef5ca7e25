/**
 * Watches for the times of delay warnings. Mail that waits behind a dead or suspended destination is warned of at the
 * time itself; other mail at its first failed attempt at or after the time, where the outcome brings the debt with it.
 * Held mail is never warned of.
 */
import { MINUTE, SECOND, type Clock, type Duration, type Instant, type Timer } from '../mail/clock.ts'
import type { DestinationName, MessageId, RecipientId } from '../queue/message.ts'
import { StoreUnavailable, type IndebtedMessage, type QueueStore } from '../queue/store.ts'
import type { QueueEvent } from '../telemetry/events.ts'
import { isLate, wantsWarning, type LateFacts } from './late.ts'
import { nextWarning } from './notice.ts'
import type { NoticeSettings } from './notice-writer.ts'

/** When to look again at mail that is just being tried. */
const SOON: Duration = MINUTE
/** After trouble with the store. */
const PAUSE: Duration = SECOND
/** Messages claimed at once. */
const CLAIM_LIMIT = 100

/** What is to be done about a message whose warning time has come. */
export type WarningDecision =
  | { readonly kind: 'owe'; readonly recipients: readonly RecipientId[] }
  /** Not now; null when the outcome of an attempt, or nothing at all, will bring it up again. */
  | { readonly kind: 'postpone'; readonly until: Instant | null }

export function decideWarning(owing: IndebtedMessage, facts: LateFacts): WarningDecision {
  const { message, warnings, recipients } = owing
  const { now, settings, closed } = facts
  const due = nextWarning(settings.warningAges, message.arrivedAt, warnings)
  if (due === null || due > now) return { kind: 'postpone', until: due }
  const concerned = recipients.filter((one) => wantsWarning(owing, one, facts))
  const waiting = concerned.filter(({ state }) => state === 'waiting')
  if (waiting.some(({ destination }) => closed(destination))) {
    return { kind: 'owe', recipients: waiting.filter((one) => isLate(one, facts)).map(({ id }) => id) }
  }
  if (waiting.length > 0) return { kind: 'postpone', until: Math.max(now + SOON, Math.min(...waiting.map(({ dueAt }) => dueAt))) }
  return { kind: 'postpone', until: concerned.some(({ state }) => state === 'leased') ? now + SOON : null }
}

export interface DelayWatchParts {
  readonly store: Pick<QueueStore, 'claimWarnings' | 'postponeWarning' | 'oweDelay' | 'nextDeadlines'>
  readonly clock: Clock
  readonly settings: () => NoticeSettings
  readonly closed: (destination: DestinationName) => boolean
  /** A notice about the message is being made: what it will say is not known yet. */
  readonly inHand: (message: MessageId) => boolean
  /** Resolves when there is room for more notices to be made. */
  readonly room: () => Promise<void>
  readonly owes: (message: MessageId) => void
}

export class DelayWatch {
  readonly #parts: DelayWatchParts
  #alarm: { readonly at: Instant; readonly timer: Timer } | null = null
  #running: Promise<void> | null = null
  /** Something may have become due since the last look. */
  #wanted = false
  #stopped = false

  constructor(parts: DelayWatchParts) {
    this.#parts = parts
  }

  /** Works off what is due, and learns when to look again. */
  start(): void {
    this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#alarm?.timer.cancel()
    await this.#running
  }

  /** A warning may be due at `at`. */
  expect(at: Instant | null): void {
    if (this.#stopped || at === null || (this.#alarm !== null && this.#alarm.at <= at)) return
    this.#alarm?.timer.cancel()
    const timer = this.#parts.clock.alarm(at, () => {
      this.#alarm = null
      this.#run()
    })
    this.#alarm = { at, timer }
  }

  /** New mail may be warned of one day; mail that an operator moved, soon. */
  hear(event: QueueEvent): void {
    if (event.kind === 'accepted' && event.message.sender !== '') {
      this.expect(nextWarning(this.#parts.settings().warningAges, event.message.arrivedAt, 0))
    } else if (event.kind === 'operated' && this.#parts.settings().warningAges.length > 0) {
      this.expect(this.#parts.clock.now() + SOON)
    }
  }

  /** Looks at a message at `at`. When that cannot be written down, its first failed attempt will bring the warning. */
  async wait(message: MessageId, at: Instant): Promise<void> {
    try {
      await this.#parts.store.postponeWarning(message, at)
      this.expect(at)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  #run(): void {
    this.#wanted = true
    if (this.#running !== null || this.#stopped || this.#parts.settings().warningAges.length === 0) return
    this.#running = this.#work().finally(() => (this.#running = null))
  }

  async #work(): Promise<void> {
    const { store, clock } = this.#parts
    try {
      let lookedAt: Instant = 0
      while (this.#wanted && !this.#stopped) {
        this.#wanted = false
        lookedAt = await this.#workOff()
      }
      const { warnAt } = await store.nextDeadlines()
      // What was due when we looked and is still there is not for us: held mail.
      if (warnAt !== null && warnAt > lookedAt) this.expect(Math.max(warnAt, clock.now() + 1))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      this.expect(clock.now() + PAUSE)
    }
  }

  /** Attends to all that is due; says up to when. */
  async #workOff(): Promise<Instant> {
    const { store, clock, room } = this.#parts
    for (;;) {
      await room()
      const now = clock.now()
      const due = await store.claimWarnings(now, CLAIM_LIMIT)
      if (due.length === 0 || this.#stopped) return now
      await Promise.all(due.map((message) => this.#attend(message)))
    }
  }

  async #attend(owing: IndebtedMessage): Promise<void> {
    const { store, clock, settings, closed, inHand, owes } = this.#parts
    const { id } = owing.message
    const now = clock.now()
    const decision: WarningDecision = inHand(id)
      ? { kind: 'postpone', until: now + SOON }
      : decideWarning(owing, { now, settings: settings(), closed })
    if (decision.kind === 'owe') await store.oweDelay(id, decision.recipients)
    // The report of the notice sets the next time; this one only keeps the message from being claimed again meanwhile.
    const until = decision.kind === 'owe' ? now + SOON : decision.until
    await store.postponeWarning(id, until)
    this.expect(until)
    if (decision.kind === 'owe') owes(id)
  }
}
