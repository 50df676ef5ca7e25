/**
 * MAILER-DAEMON: pays what the queue owes to senders. A debt is recorded with the outcome it comes from; here one
 * notice per message and round is made of the debts, and one transaction takes the notice in and clears them. A crash
 * anywhere between leaves the debt standing: no notice is lost, none is sent twice.
 */
import { MINUTE, SECOND, type Clock, type Duration, type Timer } from '../mail/clock.ts'
import { queueIdOf, type DestinationName, type Message, type MessageId } from '../queue/message.ts'
import { StoreUnavailable, type IndebtedMessage, type QueueStore, type Report } from '../queue/store.ts'
import type { Events } from '../telemetry/events.ts'
import { DelayWatch } from './delay-watch.ts'
import { owingAsTold } from './late.ts'
import { nextWarning, noticesFor, warningsUsed } from './notice.ts'
import { NoticeWriter, type NoticeEntry, type NoticeSettings, type WrittenNotice } from './notice-writer.ts'
import { Pace, type PaceLimits } from './pace.ts'
import { SecondTries } from './second-tries.ts'

export type { NoticeEntry } from './notice-writer.ts'

export interface MailerDaemonParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly entry: NoticeEntry
  readonly settings: () => NoticeSettings
  /** `open` while a recipient of the message is in delivery, or due at an open destination. */
  readonly rounds: (message: MessageId) => 'open' | 'over'
  /** Mail there is not tried now: dead or suspended. */
  readonly closed: (destination: DestinationName) => boolean
  readonly pace?: PaceLimits | undefined
}

/** How long a failure waits for the other recipients of its message. */
const ROUND: Duration = MINUTE
/** Notices in the making at once: enough to share commits, too few to be in the way. */
const AT_ONCE = 8
const PACE: PaceLimits = { burst: 500, perSecond: 500 }
/** After trouble with the store. */
const PAUSE: Duration = SECOND
/** Debts read at once at the start; also how many may wait before delay warnings add to them. */
const PAGE = 500

export class MailerDaemon {
  readonly #parts: MailerDaemonParts
  readonly #writer: NoticeWriter
  readonly #watch: DelayWatch
  readonly #pace: Pace
  readonly #secondTries: SecondTries
  /** Messages whose round is open, with the time on the stopwatch when it ends at the latest; first failure first. */
  readonly #open = new Map<MessageId, Duration>()
  /** Messages whose notices can be made. */
  readonly #ready = new Set<MessageId>()
  readonly #paying = new Set<MessageId>()
  readonly #running = new Set<Promise<void>>()
  #roundTimer: Timer | null = null
  #pauseTimer: Timer | null = null
  #waitsForRoom: (() => void)[] = []
  #started = false
  #stopping = false
  #troubled = false

  constructor(parts: MailerDaemonParts) {
    this.#parts = parts
    this.#writer = new NoticeWriter(parts)
    this.#pace = new Pace(parts.pace ?? PACE)
    this.#secondTries = new SecondTries(parts.clock, (message) => this.notice(message))
    this.#watch = new DelayWatch({
      ...parts,
      inHand: (id) => this.#open.has(id) || this.#ready.has(id) || this.#paying.has(id),
      room: () => this.#room(),
      owes: (id) => this.notice(id),
    })
    parts.events.listen((event) => this.#watch.hear(event))
  }

  /** Takes up what was owed when the queue was last closed. */
  start(): void {
    this.#started = true
    this.#track(this.#resume())
    this.#watch.start()
    this.#turn()
  }

  /** Ends what is in the making; debts that are left are paid after the next start. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#roundTimer?.cancel()
    this.#pauseTimer?.cancel()
    this.#secondTries.stop()
    this.#letIn()
    await this.#watch.stop()
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** The message owes a word. */
  notice(message: MessageId): void {
    if (this.#stopping || this.#ready.has(message)) return
    if (this.#parts.rounds(message) === 'over') this.#end(message)
    else if (!this.#open.has(message)) {
      this.#open.set(message, this.#parts.clock.monotonic() + ROUND)
      this.#armRounds()
    }
  }

  /** The round of the message may be over. */
  atRest(message: MessageId): void {
    if (this.#open.has(message) && this.#parts.rounds(message) === 'over') this.#end(message)
  }

  /**
   * New mail waits from the start, behind a destination that is not tried now: no outcome will say when its sender is
   * to be warned.
   */
  waits(message: Message): void {
    const at = message.sender === '' ? null : nextWarning(this.#parts.settings().warningAges, message.arrivedAt, 0)
    if (at !== null) this.#track(this.#watch.wait(message.id, at))
  }

  // --- rounds

  #end(message: MessageId): void {
    this.#open.delete(message)
    this.#ready.add(message)
    this.#turn()
  }

  #armRounds(): void {
    if (this.#roundTimer !== null) return
    const [first] = this.#open.values()
    if (first === undefined || this.#stopping) return
    this.#roundTimer = this.#parts.clock.after(first - this.#parts.clock.monotonic(), () => {
      this.#roundTimer = null
      const now = this.#parts.clock.monotonic()
      for (const [message, deadline] of this.#open) {
        if (deadline > now) break
        this.#end(message)
      }
      this.#armRounds()
    })
  }

  async #resume(): Promise<void> {
    const { store, clock } = this.#parts
    let after: MessageId = 0
    while (!this.#stopping) {
      try {
        const page = await store.indebted(after, PAGE)
        for (const { message } of page) this.notice(message.id)
        after = page.at(-1)?.message.id ?? after
        if (page.length < PAGE) return
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        clock.after(PAUSE, () => this.#track(this.#resume()))
        return
      }
    }
  }

  // --- paying

  /** Starts as many notices as may be in the making. */
  #turn(): void {
    while (this.#started && !this.#stopping && this.#pauseTimer === null && this.#paying.size < AT_ONCE) {
      const message = this.#next()
      if (message === undefined) return
      const wait = this.#pace.take(this.#parts.clock.monotonic())
      if (wait > 0) return this.#pause(wait)
      this.#ready.delete(message)
      this.#track(this.#attend(message))
    }
  }

  /** The first message whose notices are not just being made. */
  #next(): MessageId | undefined {
    for (const message of this.#ready) if (!this.#paying.has(message)) return message
    return undefined
  }

  #pause(delay: Duration): void {
    this.#pauseTimer ??= this.#parts.clock.after(delay, () => {
      this.#pauseTimer = null
      this.#turn()
    })
  }

  async #attend(message: MessageId): Promise<void> {
    this.#paying.add(message)
    try {
      await this.#pay(message)
      this.#secondTries.made(message)
      this.#troubled = false
    } catch (error) {
      this.#failed(message, error)
    }
    this.#paying.delete(message)
    if (this.#ready.size < PAGE) this.#letIn()
    this.#turn()
  }

  /** Our own trouble costs nobody a notice: the debt stands, and is paid when the store can take it. */
  #failed(message: MessageId, error: unknown): void {
    if (!(error instanceof StoreUnavailable)) {
      const wait = this.#secondTries.failed(message)
      const next = wait === null ? 'it is tried again after the next start' : `it is tried again in ${wait / SECOND} s`
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
      this.#parts.events.emit({ kind: 'note', level: 'error', text: `cannot make a notice about message ${message}, ${next}: ${why}` })
      return
    }
    if (!this.#troubled) this.#parts.events.emit({ kind: 'note', level: 'warning', text: `notices must wait: ${error.message}` })
    this.#troubled = true
    this.#ready.add(message)
    this.#pause(PAUSE)
  }

  async #pay(id: MessageId): Promise<void> {
    const { store, clock, settings, closed } = this.#parts
    const owing = await store.debtsOf(id)
    if (owing === undefined) return
    const told = owingAsTold(owing, { now: clock.now(), settings: settings(), closed })
    const written = await this.#writer.write(owing.message, noticesFor(told, settings().rules))
    const { removed, entered } = await this.#commit(this.#report(owing, told, written), written)
    if (entered) this.#tell(told, written)
    else this.notice(id)
    if (removed) this.#parts.events.emit({ kind: 'removed', message: owing.message })
  }

  async #commit(report: Report, written: readonly WrittenNotice[]): ReturnType<QueueStore['report']> {
    const { store, entry } = this.#parts
    try {
      const result = await store.report(report)
      // What was to be told may have changed meanwhile: then nothing was taken in, and what is owed now is looked at anew.
      for (const one of written) entry[result.entered ? 'entered' : 'withdrawn'](one.entry)
      if (result.entered) this.#watch.expect(report.warnAt)
      return result
    } catch (error) {
      for (const one of written) entry.withdrawn(one.entry)
      throw error
    }
  }

  #report(owing: IndebtedMessage, told: IndebtedMessage, written: readonly WrittenNotice[]): Report {
    const { clock, settings } = this.#parts
    const { message, recipients } = owing
    const ages = settings().warningAges
    const paid = recipients.flatMap(({ id, debt }) => (debt === undefined ? [] : [{ recipient: id, debt }]))
    const warned = told.recipients.some(({ debt }) => debt === 'delay')
    const warnings = warned
      ? Math.max(owing.warnings + 1, warningsUsed(ages, message.arrivedAt, clock.now(), owing.warnings))
      : owing.warnings
    return {
      message: message.id,
      paid,
      late: told.recipients.filter(({ debt }) => debt === 'delay').map(({ id }) => id),
      notices: written.map(({ entry }) => entry),
      warnings,
      warnAt: message.sender === '' ? null : nextWarning(ages, message.arrivedAt, warnings),
    }
  }

  #tell({ message, recipients }: IndebtedMessage, written: readonly WrittenNotice[]): void {
    const { events, settings } = this.#parts
    for (const { notice, queueId } of written) {
      events.emit({ kind: 'noticed', message, notice: notice.kind, to: notice.to, noticeId: queueId })
    }
    if (written.length > 0 || recipients.every(({ debt }) => debt === undefined)) return
    const why =
      message.sender.toLowerCase() === settings().rules.doubleBounceSender.toLowerCase()
        ? 'it is mail to the postmaster'
        : 'nobody is to be told'
    events.emit({ kind: 'notice-dropped', message, why: `${queueIdOf(message)}: ${why}` })
  }

  // --- small things

  /** Delay warnings wait while many notices are to be made already. */
  #room(): Promise<void> {
    if (this.#ready.size < PAGE || this.#stopping) return Promise.resolve()
    return new Promise((resolve) => this.#waitsForRoom.push(resolve))
  }

  #letIn(): void {
    for (const enter of this.#waitsForRoom.splice(0)) enter()
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#running.delete(tracked))
    this.#running.add(tracked)
  }
}
