/**
 * Watches delay_warning_time and the deliver-by times of messages. Mail for a dead or suspended destination gets its warning exactly at
 * that time, and each mail at its deliver-by time. Other mail gets it at the first failed attempt at or after that time, because the
 * settlement of the attempt marks the notice as due. Held mail gets no warning.
 */
import { MINUTE, type Clock, type Duration, type QueueTime } from '../system/clock.ts'
import { EarliestAlarm } from '../system/earliest-alarm.ts'
import type { TaskSet } from '../system/task-set.ts'
import type { DestinationName, MessageId, RecipientId } from '../mail/message.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { MessageWithNoticesDue } from '../store/recorded-outcomes.ts'
import type { StoreHealth } from '../store/store-health.ts'
import type { QueueEvent } from '../telemetry/events.ts'
import { factsFor, isLate, wantsWarning, type LateFacts } from './delay-rules.ts'
import type { NoticeSettings } from './notice-writer.ts'
import { isOverdue, nextWarning } from './warning-times.ts'

/** Delay before mail in delivery is checked again. */
const SOON: Duration = MINUTE
/** Maximum number of messages per claim. */
const CLAIM_LIMIT = 100

/** Decision about a message whose warning time has passed. */
type WarningDecision =
  | { readonly kind: 'warn'; readonly recipients: readonly RecipientId[] }
  /** `until` is the time of the next check. Null when no warning time is left, or no recipient waits or is in delivery. */
  | { readonly kind: 'postpone'; readonly until: QueueTime | null }

function decideWarning(claimed: MessageWithNoticesDue, ownFacts: LateFacts): WarningDecision {
  const { message, warnings, recipients } = claimed
  const facts = factsFor(claimed, ownFacts)
  const { now, settings, closed } = facts
  const due = nextWarning(settings.warningAges, message, warnings)
  if (due === null || due > now) return { kind: 'postpone', until: due }
  const concerned = recipients.filter((one) => wantsWarning(claimed, one, facts))
  const waiting = concerned.filter(({ state }) => state === 'waiting')
  if (waiting.some(({ destination }) => closed(destination) || isOverdue(message, now))) {
    return { kind: 'warn', recipients: waiting.filter((one) => isLate(one, claimed, facts)).map(({ id }) => id) }
  }
  if (waiting.length > 0) return { kind: 'postpone', until: Math.max(now + SOON, Math.min(...waiting.map(({ dueAt }) => dueAt))) }
  return { kind: 'postpone', until: concerned.some(({ state }) => state === 'leased') ? now + SOON : null }
}

interface DelayWatchDeps {
  readonly store: Pick<QueueStore, 'claimWarnings' | 'postponeWarning' | 'markDelayNoticeDue' | 'nextDeadlines'>
  readonly clock: Clock
  readonly storeHealth: StoreHealth
  readonly tasks: TaskSet
  readonly settings: () => NoticeSettings
  readonly closed: (destination: DestinationName) => boolean
  /** True while a notice about the message waits for the end of its round or is being composed. */
  readonly isPending: (message: MessageId) => boolean
  /** Resolves when the number of due notices is below the limit. */
  readonly room: () => Promise<void>
  readonly noticeDue: (message: MessageId) => void
}

export class DelayWatch {
  readonly #deps: DelayWatchDeps
  readonly #alarm: EarliestAlarm
  #running = false
  /** True when a warning may have become due since the last run. */
  #wanted = false
  #stopped = false

  constructor(deps: DelayWatchDeps) {
    this.#deps = deps
    this.#alarm = new EarliestAlarm(deps.clock, () => this.#run())
  }

  /** Processes due warnings and sets the next alarm, also after shards were taken from another node. */
  start(): void {
    this.#run()
  }

  stop(): void {
    this.#stopped = true
    this.#alarm.stop()
  }

  /** Sets the alarm to `at` unless an earlier one is set. */
  expect(at: QueueTime | null): void {
    if (at !== null) this.#alarm.expect(at)
  }

  /** Schedules the first warning of a message that is new or was changed by an operator. */
  onEvent(event: QueueEvent): void {
    if (event.kind === 'accepted' && event.message.sender !== '') {
      this.expect(nextWarning(this.#deps.settings().warningAges, event.message, 0))
    } else if (event.kind === 'operated') this.expectChange()
  }

  /** Sets an alarm for messages whose warning time may have passed while they were on hold. */
  expectChange(): void {
    this.expect(this.#deps.clock.now() + SOON)
  }

  /** Stores the time of the next check. When the store is unavailable, the next failed attempt causes the warning instead. */
  async wait(message: MessageId, at: QueueTime): Promise<void> {
    try {
      await this.#deps.store.postponeWarning(message, at)
      this.expect(at)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  #run(): void {
    this.#wanted = true
    const { storeHealth, tasks } = this.#deps
    if (this.#running || this.#stopped) return
    this.#running = true
    tasks.add(storeHealth.retryUntilCommitted(() => this.#work()).finally(() => (this.#running = false)))
  }

  async #work(): Promise<void> {
    const { store, clock } = this.#deps
    let claimedUntil: QueueTime
    do {
      this.#wanted = false
      claimedUntil = await this.#claimAll()
    } while (this.#wanted && !this.#stopped)
    const { warnAt } = await store.nextDeadlines()
    // A message that became due during this run, for example by a release from hold, has an alarm of its own (onEvent, wait).
    if (warnAt !== null && warnAt > claimedUntil) this.expect(Math.max(warnAt, clock.now() + 1))
  }

  /** Processes all due messages. Returns the time up to which they were claimed. */
  async #claimAll(): Promise<QueueTime> {
    const { store, clock, room } = this.#deps
    for (;;) {
      await room()
      const now = clock.now()
      const due = await store.claimWarnings(now, CLAIM_LIMIT)
      if (due.length === 0 || this.#stopped) return now
      await Promise.all(due.map((claimed) => this.#warnOrPostpone(claimed)))
    }
  }

  async #warnOrPostpone(claimed: MessageWithNoticesDue): Promise<void> {
    const { store, clock, settings, closed, isPending, noticeDue } = this.#deps
    const { id } = claimed.message
    const now = clock.now()
    const decision: WarningDecision = isPending(id)
      ? { kind: 'postpone', until: now + SOON }
      : decideWarning(claimed, { now, settings: settings(), closed })
    if (decision.kind === 'warn') await store.markDelayNoticeDue(id, decision.recipients)
    // The report of the notice sets the time of the next warning. The time set here only prevents a second claim before that
    // report.
    const until = decision.kind === 'warn' ? now + SOON : decision.until
    await store.postponeWarning(id, until)
    this.expect(until)
    if (decision.kind === 'warn') noticeDue(id)
  }
}
