/**
 * MAILER-DAEMON sends the notices that are due. A settlement records the outcome and marks a notice as due. This loop composes
 * one notice per message and round. One transaction queues the notice and clears the marks, so a crash before it leaves the
 * notice due. No notice is lost or sent twice.
 */
import { SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'
import type { DestinationName, Message, MessageId } from '../mail/message.ts'
import type { Arrivals } from '../store/membership/node-table.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { MessageWithNoticesDue, Report } from '../store/recorded-outcomes.ts'
import type { StoreHealth } from '../store/store-health.ts'
import type { Published } from '../outbox/event-data.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import { TaskSet } from '../system/task-set.ts'
import type { Events } from '../telemetry/events.ts'
import { DelayWatch } from './delay-watch.ts'
import { withLateRecipients } from './delay-rules.ts'
import { noticesFor } from './notice.ts'
import type { NoticePort } from './notice-port.ts'
import { NoticeRetries } from './notice-retries.ts'
import { NoticeRounds } from './notice-rounds.ts'
import { keptFrom, noticeSent, NoticeWriter, type NoticeEntry, type NoticeSettings, type WrittenNotice } from './notice-writer.ts'
import { nextWarning, warningsUsed } from './warning-times.ts'
import { TokenBucket, type TokenBucketLimits } from './token-bucket.ts'

interface MailerDaemonDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly storeHealth: StoreHealth
  readonly settings: () => NoticeSettings
  /** True while a recipient of the message is in delivery, or is due and its destination is open. */
  readonly roundIsOpen: (message: MessageId) => boolean
  /** True for a dead or suspended destination. */
  readonly closed: (destination: DestinationName) => boolean
  readonly pace?: TokenBucketLimits | undefined
}

/** Maximum number of notices composed concurrently. They share commits without delaying mail. */
const AT_ONCE = 8
const PACE: TokenBucketLimits = { burst: 500, perSecond: 500 }
/**
 * Number of messages per page at start. Delay warnings wait while at least this many messages wait for the composition of their
 * notices.
 */
const PAGE = 500

export class MailerDaemon implements NoticePort {
  readonly #deps: MailerDaemonDeps
  readonly #rounds: NoticeRounds
  readonly #watch: DelayWatch
  readonly #pace: TokenBucket
  readonly #retries: NoticeRetries
  /** Messages whose round has ended and whose notices are not composed yet. */
  readonly #ready = new Set<MessageId>()
  /** Messages whose round has taken its maximum time. */
  readonly #overdue = new Set<MessageId>()
  /** Messages whose notices are being composed. */
  readonly #making = new Set<MessageId>()
  readonly #tasks = new TaskSet((error) => this.#abandoned(error))
  #pauseTimer: Timer | null = null
  #waitingForRoom: (() => void)[] = []
  /** Null before the start. */
  #writer: NoticeWriter | null = null
  #stopping = false

  constructor(deps: MailerDaemonDeps) {
    const { clock, events, pace = PACE, roundIsOpen } = deps
    this.#deps = deps
    this.#rounds = new NoticeRounds(clock, roundIsOpen, (message, isOverdue) => this.#roundEnded(message, isOverdue))
    this.#pace = new TokenBucket(pace)
    this.#retries = new NoticeRetries(clock, (message) => this.noticeDue(message))
    this.#watch = new DelayWatch({
      ...deps,
      tasks: this.#tasks,
      isPending: (message) => this.isPending(message),
      room: () => this.#room(),
      noticeDue: (message) => this.noticeDue(message),
    })
    events.listen((event) => this.#watch.onEvent(event))
  }

  /** True while a notice that is due waits for other recipients of its message, or for its turn. False after it could not be made. */
  isPending(message: MessageId): boolean {
    return this.#rounds.has(message) || this.#ready.has(message) || this.#making.has(message)
  }

  /** Loads the messages for which notices were due when the queue was closed. Notices enter the queue by `entry`. */
  start(entry: NoticeEntry): void {
    const { store, clock, settings } = this.#deps
    this.#writer = new NoticeWriter({ store, clock, entry, settings })
    this.load()
    this.#makeNext()
  }

  /** Completes the notices that are being composed. The others are composed after the next start. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#rounds.stop()
    this.#pauseTimer?.cancel()
    this.#retries.stop()
    this.#roomIsFree()
    this.#watch.stop()
    await this.#tasks.settled()
  }

  /** Loads the messages for which notices are due, also after shards were taken from another node. */
  load(): void {
    if (this.#stopping) return
    this.#tasks.add(this.#recall())
    this.#watch.start()
  }

  /** Called for changes by other nodes. Mail that an operator released there may be due for a delay warning. */
  arrived({ due, notices }: Arrivals): void {
    for (const message of notices) this.noticeDue(message)
    if (notices.length > 0) this.#watch.start()
    else if (due.length > 0) this.#watch.expectChange()
  }

  noticeDue(message: MessageId): void {
    if (!this.#stopping && !this.#ready.has(message)) this.#rounds.begin(message)
  }

  atRest(message: MessageId): void {
    this.#rounds.check(message)
  }

  waits(message: Message): void {
    const at = message.sender === '' ? null : nextWarning(this.#deps.settings().warningAges, message, 0)
    if (at !== null) this.#tasks.add(this.#watch.wait(message.id, at))
  }

  async #recall(): Promise<void> {
    const { store, storeHealth } = this.#deps
    let page: readonly MessageWithNoticesDue[] | undefined
    while (!this.#stopping && (page === undefined || page.length === PAGE)) {
      const after: MessageId = page?.at(-1)?.message.id ?? 0
      page = await storeHealth.retryUntilCommitted(() => store.messagesWithNoticesDue(after, PAGE))
      for (const { message } of page) this.noticeDue(message.id)
    }
  }

  #roundEnded(message: MessageId, isOverdue: boolean): void {
    if (isOverdue) this.#overdue.add(message)
    this.#ready.add(message)
    this.#makeNext()
  }

  // --- making notices

  /** Starts to compose notices, up to the limits. */
  #makeNext(): void {
    while (this.#writer !== null && !this.#stopping && this.#pauseTimer === null && this.#making.size < AT_ONCE) {
      const message = this.#nextReady()
      if (message === undefined) return
      const wait = this.#pace.take(this.#deps.clock.monotonic())
      if (wait > 0) return this.#pause(wait)
      this.#ready.delete(message)
      this.#tasks.add(this.#make(message, this.#writer))
    }
  }

  /** The first message in `#ready` whose notices are not being composed. */
  #nextReady(): MessageId | undefined {
    for (const message of this.#ready) if (!this.#making.has(message)) return message
    return undefined
  }

  #pause(delay: Duration): void {
    this.#pauseTimer ??= this.#deps.clock.after(delay, () => {
      this.#pauseTimer = null
      this.#makeNext()
    })
  }

  async #make(message: MessageId, writer: NoticeWriter): Promise<void> {
    this.#making.add(message)
    try {
      await this.#deps.storeHealth.retryUntilCommitted(() => this.#send(message, writer))
      this.#retries.made(message)
      this.#overdue.delete(message)
    } catch (error) {
      this.#failed(message, error)
    }
    this.#making.delete(message)
    if (this.#ready.size < PAGE) this.#roomIsFree()
    this.#makeNext()
  }

  /** Handles an internal error. The notice stays due and is tried again later. */
  #failed(message: MessageId, error: unknown): void {
    if (error instanceof StoreUnavailable) throw error
    const wait = this.#retries.failed(message)
    const next = wait === null ? 'it is tried again after the next start' : `it is tried again in ${wait / SECOND} s`
    const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#deps.events.emit({ kind: 'note', level: 'error', text: `cannot make a notice about message ${message}, ${next}: ${why}` })
  }

  async #send(id: MessageId, writer: NoticeWriter): Promise<void> {
    const { store, clock, settings, closed } = this.#deps
    const recorded = await store.noticesDueOf(id)
    if (recorded === undefined) return
    if (recorded.elsewhere?.leased === true && !this.#overdue.has(id)) return this.#rounds.extend(id)
    const named = withLateRecipients(recorded, { now: clock.now(), settings: settings(), closed })
    const written = await writer.write(recorded.message, noticesFor(named, settings().rules))
    const happened = this.#happened(named, written)
    const events = this.#deps.recorder.ofAll(happened)
    const { removed, entered } = await this.#commit({ ...this.#report(recorded, named, written), events }, written)
    if (entered) for (const event of happened) this.#deps.events.emit(event)
    else this.noticeDue(id)
    if (removed) this.#deps.events.emit({ kind: 'removed', message: recorded.message })
  }

  async #commit(report: Report, written: readonly WrittenNotice[]): ReturnType<QueueStore['report']> {
    try {
      const result = await this.#deps.store.report(report)
      // When the due notices have changed since they were read, nothing was queued and the message is processed again.
      for (const { prepared } of written) prepared[result.entered ? 'committed' : 'withdrawn']()
      if (result.entered) this.#watch.expect(report.warnAt)
      return result
    } catch (error) {
      for (const { prepared } of written) prepared.withdrawn()
      throw error
    }
  }

  /** `recorded` has the notices due according to the store. `named` also has the recipients that a delay warning adds. */
  #report(recorded: MessageWithNoticesDue, named: MessageWithNoticesDue, written: readonly WrittenNotice[]): Report {
    const { clock, settings } = this.#deps
    const { message, recipients, warnings: before } = recorded
    const ages = settings().warningAges
    const late = named.recipients.filter(({ noticeDue }) => noticeDue === 'delay').map(({ id }) => id)
    const warnings = late.length === 0 ? before : Math.max(before + 1, warningsUsed(ages, message, { now: clock.now(), before }))
    return {
      message: message.id,
      noticesSettled: recipients.flatMap(({ id, noticeDue }) => (noticeDue === undefined ? [] : [{ recipient: id, noticeDue }])),
      late,
      ...keptFrom(clock.now(), settings()),
      notices: written.map(({ prepared }) => prepared.entry),
      warnings,
      warnAt: message.sender === '' ? null : nextWarning(ages, message, warnings),
    }
  }

  /** The events of the notices that were sent, or of the one that was not. */
  #happened({ message, recipients }: MessageWithNoticesDue, written: readonly WrittenNotice[]): readonly Published[] {
    if (written.length > 0) return written.map((one) => noticeSent(message, one))
    if (recipients.every(({ noticeDue }) => noticeDue === undefined)) return []
    const isDoubleBounce = this.#deps.settings().rules.doubleBounce.has(message.sender)
    const why = isDoubleBounce ? 'it is mail to the postmaster' : 'neither NOTIFY nor notify_classes asks for one'
    return [{ kind: 'notice-dropped', message, why }]
  }

  // --- delay warnings wait while many notices are due

  #room(): Promise<void> {
    if (this.#ready.size < PAGE || this.#stopping) return Promise.resolve()
    return new Promise((resolve) => this.#waitingForRoom.push(resolve))
  }

  #roomIsFree(): void {
    for (const resolve of this.#waitingForRoom.splice(0)) resolve()
  }

  /**
   * Ignores the failure of a notice that could not be committed before the daemon ended: the notice stays due, and the next start
   * sends it. Rethrows every other error.
   */
  #abandoned(error: unknown): void {
    if (!(error instanceof StoreUnavailable) || !this.#deps.storeHealth.abandoned.aborted) throw error
  }
}
