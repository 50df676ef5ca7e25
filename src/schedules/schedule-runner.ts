/**
 * Makes the runs of the `[schedule.NAME]` tables: one timer, at the earliest of them. A run whose time has passed is skipped: while
 * nothing ran, by a step of the wall clock, or while an earlier run of its table goes on. On several nodes a row of the store
 * (schedule-run) is the right to a run, so that each is made once.
 */
import type { Actor } from '../store/records/audit-log.ts'
import type { ScheduleTable } from '../config/values/tables/schedule-table.ts'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import { NODE_GONE, type Schedules } from '../queue/schedule-state.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../store/queue-store.ts'
import { NOT_ENDED, RUN_LEASE, type ScheduleRun } from '../store/records/schedule-run.ts'
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, MINUTE, type Clock, type Duration, type QueueTime, type Timer, type WallTime } from '../system/clock.ts'
import { every } from '../system/periodic-task.ts'
import { TaskSet } from '../system/task-set.ts'
import type { EventOf, Events } from '../telemetry/events.ts'

/** A run that has begun. `who` is `schedule NAME`, or has ordered the run. */
export interface BegunRun extends Actor {
  readonly table: ScheduleTable
  readonly planned: WallTime
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal
}

export interface RunEnd {
  readonly outcome: 'done' | 'failed'
  /** Result, or the reason of the failure and its remedy. */
  readonly text: string
  /** Number of messages, destinations, files or mails. */
  readonly changed: number
}

/** Answer to an order. */
export type OrderedRun = RunEnd | { readonly outcome: 'going-on' | 'unknown' }

interface ScheduleRunnerDeps {
  readonly store: Pick<QueueStore, 'records' | 'outbox'>
  readonly clock: Clock
  readonly events: Events
  readonly recorder: Pick<EventRecorder, 'of'>
  readonly tables: () => Schedules
  /** Name of this node. */
  readonly node: string
  /** False for a queue with one owner, which has ended all runs of an earlier process. */
  readonly isShared: boolean
  /** Does the work of a run. */
  readonly work: (run: BegunRun) => Promise<RunEnd>
  /** Gives way to other work of the process. */
  readonly pause: () => Promise<void>
}

/** A search for the next run gives way after this time. */
const SLICE: Duration = 20
/** A run that begins later than this was missed. */
const LATEST: Duration = MINUTE
/** A stop waits this long for runs that go on. */
const STOP_LIMIT: Duration = 5 * SECOND

type Plan = readonly (readonly [name: string, at: WallTime])[]

export class ScheduleRunner {
  readonly #deps: ScheduleRunnerDeps
  readonly #stopping = new AbortController()
  readonly #runs = new TaskSet((error) => {
    throw error
  })
  #timer: Timer | null = null
  /** Counts the plans: a search for an earlier plan ends without effect. */
  #planning = 0

  constructor(deps: ScheduleRunnerDeps) {
    this.#deps = deps
  }

  /** Plans the runs, and reports those that an earlier process did not end. */
  start(): void {
    if (this.#deps.tables().size === 0) return
    this.#background(this.#endGone(this.#deps.isShared ? this.#deps.clock.now() : Infinity))
    this.plan()
  }

  /** Resolves when the runs that go on have ended, after STOP_LIMIT at the latest. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#timer?.cancel()
    const { promise, resolve } = Promise.withResolvers<void>()
    const limit = this.#deps.clock.after(STOP_LIMIT, resolve)
    await Promise.race([this.#runs.settled(), promise])
    limit.cancel()
  }

  /** Plans all runs anew: after a reload, and after a step of the wall clock. */
  plan(): void {
    const { tables } = this.#deps
    this.#timer?.cancel()
    this.#timer = null
    const planning = ++this.#planning
    if (tables().size === 0 || this.#stopping.signal.aborted) return
    this.#background(this.#arm(planning))
  }

  /** Makes a run now, by order. */
  async order(name: string, actor: Actor): Promise<OrderedRun> {
    const { clock, tables } = this.#deps
    const table = tables().get(name)
    if (table === undefined) return { outcome: 'unknown' }
    const run = this.#make(table, clock.wall.now(), actor)
    this.#background(run)
    return (await run) ?? { outcome: 'going-on' }
  }

  #background(work: Promise<unknown>): void {
    this.#runs.add(work.then(() => undefined, rethrowUnlessUnavailable))
  }

  async #arm(planning: number): Promise<void> {
    const { clock, tables } = this.#deps
    const now = clock.wall.now()
    const plan: (readonly [string, WallTime])[] = []
    for (const table of tables().values()) {
      const next = await this.#nextOf(table, now)
      if (planning !== this.#planning) return
      if (next !== null) plan.push([table.name, next])
    }
    if (plan.length === 0 || this.#stopping.signal.aborted) return
    const earliest = Math.min(...plan.map(([, at]) => at))
    this.#timer = clock.after(Math.max(0, earliest - clock.wall.now()), () => this.#begin(plan))
  }

  async #nextOf({ times }: ScheduleTable, now: WallTime): Promise<WallTime | null> {
    const { clock, pause } = this.#deps
    let began = clock.monotonic()
    const search = times.search(now)
    for (let step = search.next(); ; step = search.next()) {
      if (step.done === true) return step.value
      if (clock.monotonic() - began < SLICE) continue
      await pause()
      began = clock.monotonic()
    }
  }

  /** Begins the runs of a plan that are due. */
  #begin(plan: Plan): void {
    const { clock, tables } = this.#deps
    const now = clock.wall.now()
    for (const [name, planned] of plan) {
      const table = tables().get(name)
      if (table === undefined || planned > now) continue
      if (now - planned > LATEST) this.#skipped(table, planned, 'its time has passed')
      else this.#background(this.#makePlanned(table, planned))
    }
    this.plan()
  }

  async #makePlanned(table: ScheduleTable, planned: WallTime): Promise<void> {
    try {
      if ((await this.#make(table, planned, null)) !== null) return
      const runs = await this.#deps.store.records.scheduleRuns.of(table.name)
      const isMade = runs.some((run) => run.planned === planned)
      if (!isMade) this.#skipped(table, planned, 'an earlier run goes on')
    } catch (error) {
      rethrowUnlessUnavailable(error)
      this.#skipped(table, planned, error.message)
    }
  }

  #skipped({ name, action }: ScheduleTable, planned: WallTime, why: string): void {
    this.#deps.events.emit({ kind: 'schedule-skipped', schedule: name, action: action.do, planned, why })
  }

  /** Makes a run. Resolves with null when another one goes on, or a node has made or makes it. Rejects with StoreUnavailable. */
  async #make(table: ScheduleTable, planned: WallTime, orderedBy: Actor | null): Promise<RunEnd | null> {
    const { store, clock, node, work } = this.#deps
    const { name } = table
    await this.#endGone(clock.now())
    const beganAt = clock.now()
    const until = beganAt + RUN_LEASE
    const row: ScheduleRun = {
      name,
      planned,
      orderedBy: orderedBy?.who ?? null,
      node,
      beganAt,
      until,
      ...NOT_ENDED,
    }
    if (!(await store.records.scheduleRuns.begin(row))) return null
    const extend = async (): Promise<void> => {
      await store.records.scheduleRuns.extend({ name, planned, until: clock.now() + RUN_LEASE })
    }
    const signs = every(clock, RUN_LEASE / 4, extend, { failed: rethrowUnlessUnavailable })
    const actor = orderedBy ?? { who: `schedule ${name}` }
    const end = await work({ table, planned, ...actor, stopping: this.#stopping.signal }).catch((error: unknown): RunEnd => ({
      outcome: 'failed',
      text: errorMessage(error),
      changed: 0,
    }))
    await signs.stop()
    await this.#ended(row, table, { actor, end })
    return end
  }

  async #ended(run: ScheduleRun, table: ScheduleTable, { actor, end }: { readonly actor: Actor; readonly end: RunEnd }): Promise<void> {
    const { store, clock, events } = this.#deps
    const { name, planned, beganAt } = run
    const { outcome, text, changed } = end
    const at = clock.now()
    const about = { schedule: name, action: table.action.do, planned, text }
    if (outcome === 'failed') events.emit({ kind: 'schedule-failed', ...about })
    else events.emit({ kind: 'schedule-done', ...about, took: at - beganAt })
    await store.records.scheduleRuns.end({ name, planned, endedAt: at, outcome, text })
    await store.records.scheduleRuns.prune(name)
    await store.records.audit.add({ at, ...actor, action: 'schedule', arguments: name, changed, error: outcome === 'failed' ? text : null })
    if (outcome === 'failed') await this.#tell(about)
  }

  /** Ends the runs whose node is gone: those that were not extended since `before`. */
  async #endGone(before: QueueTime): Promise<void> {
    const { store, clock, events, tables } = this.#deps
    for (const { name, planned, until } of await store.records.scheduleRuns.unended()) {
      if (until > before) continue
      const ended = { name, planned, endedAt: clock.now(), outcome: 'failed', text: NODE_GONE } as const
      if (!(await store.records.scheduleRuns.end(ended))) continue
      const about = { schedule: name, action: tables().get(name)?.action.do ?? null, planned, text: NODE_GONE }
      events.emit({ kind: 'schedule-failed', ...about })
      await this.#tell(about)
    }
  }

  /** Records the event for programs. */
  async #tell(about: Omit<EventOf<'schedule-failed'>, 'kind'>): Promise<void> {
    const { recorder, store } = this.#deps
    const told = recorder.of({ kind: 'schedule-failed', ...about })
    if (told !== undefined) await store.outbox.recordEvents(told)
  }
}
