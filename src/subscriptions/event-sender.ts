/**
 * Sends the events of this node's subscriptions to their targets: in order, with one request at a time for each subscription, until the
 * target has accepted them. Mail never waits for an event. A crash repeats at most the events of one read, with the same ids.
 */
import type { ListedEvent } from '../events/wire-events.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { eventJson, lostJson } from '../resources/event-json.ts'
import type { TestAnswerJson } from '../resources/subscription-json.ts'
import type { KeptEvent } from '../events/kept-event.ts'
import { MOVED_ON } from '../store/outbox/moved-subscription.ts'
import { sendTestEvent } from './test-event.ts'
import type { OutboxStore } from '../store/outbox-store.ts'
import type { ParkedEvent, Progress, ProgressChange, PulledEvents, Subscription } from '../store/outbox/subscription.ts'
import { rethrowUnlessUnavailable } from '../store/queue-store.ts'
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import { WallView } from '../system/wall-view.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import type { Random } from '../system/random.ts'
import { EarliestAlarm } from '../system/earliest-alarm.ts'
import { TaskSet } from '../system/task-set.ts'
import type { Events } from '../telemetry/events.ts'
import { isRefusal, nextStep, type NextStep, type TargetAnswer } from './answer-decision.ts'
import type { SendEvents } from './target.ts'

interface EventSenderDeps {
  readonly outbox: Pick<OutboxStore, 'subscriptions' | 'replayEvents' | 'pullEvents' | 'saveProgress' | 'parkedDue' | 'settleParked'>
  readonly clock: Clock
  readonly random: Pick<Random, 'draw'>
  readonly events: Pick<Events, 'emit'>
  readonly send: SendEvents
  readonly addresses: ToldAddresses
  /** Secrets that sign for a subscription now, newest first. */
  readonly secretsOf: (subscription: Subscription) => readonly string[]
  /** Reason why this node must not send a subscription; null when it may. */
  readonly obstacle: (subscription: Subscription) => string | null
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

const READ_AT_ONCE = 100
/** Pause after a failure of the store, which may concern the progress of events that were sent. */
const STORE_PAUSE: Duration = 5 * SECOND
/** Interval at which the subscriptions of a shared queue are read again: commands at other nodes and takeovers change them. */
const REFRESH_INTERVAL: Duration = SECOND

export class EventSender {
  readonly #deps: EventSenderDeps
  readonly #tasks = new TaskSet((error) => {
    rethrowUnlessUnavailable(error)
    this.#alarm.expect(this.#deps.clock.now() + STORE_PAUSE)
  })
  readonly #stopping = new AbortController()
  /** Names of the subscriptions that this node had at the last refresh. */
  #owned: ReadonlySet<string> = new Set()
  /** Names of the subscriptions whose events are being sent. */
  readonly #busy = new Set<string>()
  /** Obstacles that were logged, by name. */
  readonly #obstacles = new Map<string, string>()
  /** Names of the subscriptions that wait for their next try. */
  readonly #waiting = new Set<string>()
  /** Names of the subscriptions that this node sends, as last read. */
  readonly #active = new Set<string>()
  /** Names of the subscriptions that became due while their events were being sent. */
  readonly #again = new Set<string>()
  /** Fires at the next try of a subscription that waits. */
  readonly #alarm: EarliestAlarm
  #isLooking = false
  /** True for a request to look again, made while the sender was looking. */
  #isAsked = false
  /** True when subscriptions may have changed since the last look began, those whose events are being sent too. */
  #mayHaveChanged = false
  #looks: PeriodicTask | null = null

  constructor(deps: EventSenderDeps) {
    this.#deps = deps
    this.#alarm = new EarliestAlarm(deps.clock, () => this.wake())
  }

  start(): void {
    this.wake()
    if (this.#deps.isShared) this.#looks = every(this.#deps.clock, REFRESH_INTERVAL, () => this.wake())
  }

  /** Sends one event of the type `test`, beside those that wait. */
  test(subscription: Subscription): Promise<TestAnswerJson> {
    return sendTestEvent(subscription, this.#deps)
  }

  /** Aborts running requests; resolves when none is left. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    void this.#looks?.stop()
    this.#alarm.stop()
    await this.#tasks.settled()
  }

  /** Sends new events. The call costs nothing while each subscription is busy or waits for its next try. */
  published(): void {
    for (const name of this.#busy) this.#again.add(name)
    if (this.#isLooking || this.#hasIdle) this.wake()
  }

  /** Sends everything that can be sent now. Called when subscriptions may have changed. */
  wake(): void {
    this.#mayHaveChanged = true
    this.#lookSoon()
  }

  #lookSoon(): void {
    if (this.#isStopping) return
    if (this.#isLooking) this.#isAsked = true
    else this.#tasks.add(this.#look())
  }

  get #hasIdle(): boolean {
    for (const name of this.#active) if (!this.#busy.has(name) && !this.#waiting.has(name)) return true
    return false
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    try {
      do {
        this.#isAsked = false
        const mayHaveChanged = this.#mayHaveChanged
        this.#mayHaveChanged = false
        const subscriptions = await this.#deps.outbox.subscriptions()
        await this.#takeBack(subscriptions)
        this.#active.clear()
        this.#waiting.clear()
        for (const subscription of subscriptions) this.#begin(subscription, mayHaveChanged)
      } while (this.#isAsked && !this.#isStopping)
    } finally {
      this.#isLooking = false
    }
  }

  /**
   * Enables the subscriptions that the final step of a move has disabled when they come to this node, at its start or from another node,
   * because the process of the move has ended.
   */
  async #takeBack(subscriptions: readonly Subscription[]): Promise<void> {
    for (const { name, progress } of subscriptions) {
      if (progress.why !== MOVED_ON || this.#owned.has(name)) continue
      await this.#deps.outbox.replayEvents(name, { kind: 'waiting' })
      this.wake()
    }
    this.#owned = new Set(subscriptions.map(({ name }) => name))
  }

  /**
   * Begins to send the events of a subscription that is not busy. A busy one is read again at its end only when it may have changed: the ends
   * of two others would wake it without an end.
   */
  #begin(subscription: Subscription, mayHaveChanged: boolean): void {
    const { name, settings, progress } = subscription
    if (settings.to === '' || progress.state !== 'active' || this.#isStopping) return
    const obstacle = this.#deps.obstacle(subscription)
    this.#tellObstacle(name, obstacle)
    if (obstacle !== null) return
    this.#active.add(name)
    if (this.#busy.has(name)) {
      if (mayHaveChanged) this.#again.add(name)
      return
    }
    this.#busy.add(name)
    const ended = (): void => {
      this.#busy.delete(name)
      if (this.#again.delete(name)) this.#lookSoon()
    }
    this.#tasks.add(this.#work(subscription).finally(ended))
  }

  /** Logs once why events are not sent. */
  #tellObstacle(name: string, obstacle: string | null): void {
    if ((this.#obstacles.get(name) ?? null) === obstacle) return
    if (obstacle === null) return void this.#obstacles.delete(name)
    this.#obstacles.set(name, obstacle)
    this.#deps.events.emit({ kind: 'note', level: 'warning', text: `events.${name}: ${obstacle}` })
  }

  async #work(subscription: Subscription): Promise<void> {
    this.#waiting.delete(subscription.name)
    await this.#sendParked(subscription)
    for (let { progress } = subscription; !this.#isStopping;) {
      if (progress.dueAt !== null && progress.dueAt > this.#deps.clock.now()) {
        this.#waiting.add(subscription.name)
        return this.#alarm.expect(progress.dueAt)
      }
      const pulled = await this.#deps.outbox.pullEvents(subscription.name, READ_AT_ONCE)
      if (pulled === null) return
      const next = pulled.cursor === progress.cursor ? await this.#sendPulled(subscription, progress, pulled) : undefined
      // A replay has moved the subscription's position, so the subscription is read again.
      if (next === undefined) return void this.#again.add(subscription.name)
      const isWaiting = (next.dueAt ?? 0) > this.#deps.clock.now() || pulled.lost !== null || pulled.more || next.cursor < pulled.through
      if (next.state !== 'active' || !isWaiting) return
      progress = next
    }
  }

  /** Sends the events of one read. Returns the new progress; undefined when the subscription has changed during the request. */
  async #sendPulled(subscription: Subscription, before: Progress, pulled: PulledEvents): Promise<Progress | undefined> {
    const { clock } = this.#deps
    const { epoch, lost, events } = pulled
    if (lost !== null) {
      const json = lostJson(epoch, lost, clock.wall.now())
      const { progress, next } = await this.#try(subscription, before, [json])
      const isTold = next.kind === 'sent' || next.kind === 'park'
      return this.#save(subscription, before, { progress, told: isTold ? lost : null, parked: [] })
    }
    if (events.length === 0) {
      if (pulled.through === before.cursor) return before
      return this.#save(subscription, before, { progress: { ...before, cursor: pulled.through }, told: null, parked: [] })
    }
    return this.#sendEvents(subscription, before, pulled)
  }

  async #sendEvents(subscription: Subscription, before: Progress, { epoch, events, through }: PulledEvents): Promise<Progress | undefined> {
    const { batch } = subscription.settings
    const parked: ProgressChange['parked'][number][] = []
    let progress = before
    let done = 0
    while (done < events.length && !this.#isStopping) {
      // After a failure, events are sent one by one, which shows the event that the target refuses.
      const some = events.slice(done, done + (progress.tries > 0 ? 1 : batch))
      const last = some.at(-1)?.seq ?? progress.cursor
      const tried = await this.#try(
        subscription,
        progress,
        some.map((event) => this.#json(epoch, event)),
      )
      const { next } = tried
      const tries = tried.progress.tries
      progress = tried.progress
      if (next.kind === 'wait' || next.kind === 'disable') break
      if (next.kind === 'park') {
        parked.push({ seq: last, tries, at: this.#deps.clock.now(), answer: progress.lastAnswer?.text ?? '' })
        progress = { ...progress, tries: 0 }
      }
      progress = { ...progress, cursor: last }
      done += some.length
    }
    if (done === events.length) progress = { ...progress, cursor: through }
    return progress === before ? before : this.#save(subscription, before, { progress, told: null, parked })
  }

  /** Sends events once. Returns the next step, and the progress with the answer. The cursor is unchanged. */
  async #try(
    subscription: Subscription,
    before: Progress,
    events: readonly ListedEvent[],
  ): Promise<{ readonly next: NextStep; readonly progress: Progress }> {
    const { clock, random } = this.#deps
    const { name } = subscription
    const answer = await this.#answerOf(subscription, events)
    const now = clock.now()
    // A request that the stop of the daemon has ended is not a failure of the target.
    if (this.#isStopping && answer.kind === 'failed') return { next: { kind: 'wait', wait: 0 }, progress: before }
    const tries = before.tries + 1
    const refusals = before.refusals + (isRefusal(answer) && events.length === 1 ? 1 : 0)
    // The ids of events have a random part, so the draw is named by their position.
    const next = nextStep(answer, { tries, refusals, draw: random.draw(`events ${name} ${before.cursor} ${tries}`) })
    const lastAnswer = { at: now, ok: next.kind === 'sent', text: answer.text }
    this.#report(subscription, before, next, answer)
    switch (next.kind) {
      case 'sent':
        return { next, progress: { ...before, tries: 0, refusals: 0, dueAt: null, lastAnswer } }
      case 'park':
        return { next, progress: { ...before, tries, refusals: 0, dueAt: null, lastAnswer } }
      case 'disable':
        return { next, progress: { ...before, state: 'disabled', why: answer.text, lastAnswer } }
      case 'wait':
        return { next, progress: { ...before, tries, refusals, dueAt: now + next.wait, lastAnswer } }
    }
  }

  /** Logs the first failure, the end of a failure, and what needs an operator. */
  #report({ name }: Subscription, before: Progress, next: NextStep, { text }: TargetAnswer): void {
    const emit = (level: 'info' | 'warning', words: string): void =>
      this.#deps.events.emit({ kind: 'note', level, text: `events.${name}: ${words}` })
    if (next.kind === 'disable') emit('warning', `disabled by its target (${text}): deferd webhook replay ${name} enables it`)
    else if (next.kind === 'park')
      emit('warning', `an event was refused too often and is parked (${text}): deferd webhook replay ${name} --parked`)
    else if (next.kind === 'wait' && before.tries === 0) emit('warning', `events are not taken and will be sent again: ${text}`)
    else if (next.kind === 'sent' && before.tries > 0) emit('info', 'events are taken again')
  }

  async #save({ name }: Subscription, before: Progress, change: ProgressChange): Promise<Progress | undefined> {
    return (await this.#deps.outbox.saveProgress(name, before.cursor, change)) ? change.progress : undefined
  }

  /** Sends the parked events that an operator has requested again. */
  async #sendParked(subscription: Subscription): Promise<void> {
    const { outbox, clock } = this.#deps
    const retries = await outbox.parkedDue(subscription.name, READ_AT_ONCE)
    const now = clock.now()
    const due = retries.filter(({ dueAt }) => dueAt !== null && dueAt <= now)
    const next = retries[due.length]?.dueAt ?? null
    // The alarm drops all other expectations when it fires, and has none after a start.
    if (next !== null) this.#alarm.expect(next)
    if (due.length === 0) return
    const pulled = await outbox.pullEvents(subscription.name, 1)
    if (pulled === null) return
    for (const one of due) if (!this.#isStopping) await this.#sendOneParked(subscription, pulled.epoch, one)
    // More events may be due than one read returns.
    if (due.length === READ_AT_ONCE) this.#again.add(subscription.name)
  }

  async #sendOneParked(subscription: Subscription, epoch: number, { event, tries: before }: ParkedEvent): Promise<void> {
    const { outbox, clock, random } = this.#deps
    const { name } = subscription
    const answer = await this.#answerOf(subscription, [this.#json(epoch, event)])
    if (this.#isStopping && answer.kind === 'failed') return
    const tries = before + 1
    const next = nextStep(answer, { tries, refusals: 0, draw: random.draw(`parked ${name} ${event.seq} ${tries}`) })
    if (next.kind === 'sent') return outbox.settleParked(name, event.seq, { kind: 'sent' })
    // A refused event is parked again; after connection trouble it is tried again.
    const dueAt = next.kind === 'wait' && !isRefusal(answer) ? clock.now() + next.wait : null
    await outbox.settleParked(name, event.seq, { kind: 'refused', tries, answer: answer.text, dueAt })
    if (dueAt !== null) this.#alarm.expect(dueAt)
  }

  #answerOf(subscription: Subscription, events: readonly ListedEvent[]): Promise<TargetAnswer> {
    const { send, secretsOf } = this.#deps
    const { name, settings } = subscription
    return send({ events, settings, secrets: secretsOf(subscription), name, signal: this.#stopping.signal })
  }

  /** An event with its time, which is the same at each try. */
  #json(epoch: number, event: KeptEvent): ListedEvent {
    const { clock, isShared, addresses } = this.#deps
    // Nodes follow the clock of the database, whatever their own wall clocks are.
    return eventJson(epoch, event, { wall: isShared ? new WallView(() => clock.now()) : clock.wall, addresses })
  }
}
