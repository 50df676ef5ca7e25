/** Keeps the quotas of a relay: applies the configuration, plans held mail anew, tells of keys with room again, and deletes old counts. Nothing runs without a quota. */
import { isDeepStrictEqual } from 'node:util'
import type { EventRecorder } from '../outbox/event-recorder.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../store/queue-store.ts'
import { HOUR, MINUTE, type Timer } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { TaskSet } from '../system/task-set.ts'
import type { Events } from '../telemetry/events.ts'
import { QuotaChanges } from './intake/quota-changes.ts'
import { QuotaReports, type FullQuota } from './intake/quota-reports.ts'
import { Quotas, type QuotaConfig } from './intake/quotas.ts'
import { planHeldMail, type QuotaPlanningDeps } from './quota-planning.ts'

interface QuotaUpkeepDeps extends Omit<QuotaPlanningDeps, 'quotas' | 'reader' | 'store'> {
  readonly store: Pick<QueueStore, 'records' | 'outbox' | 'operate'>
  /** Held mail is not planned anew when absent. */
  readonly reader: QuotaPlanningDeps['reader'] | undefined
  readonly events: Events
  readonly recorder: EventRecorder
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

/** Keys of a quota that are looked at when a relay starts: those with the most messages. */
const MOST_RESUMED = 1_000

const TASK = { failed: rethrowUnlessUnavailable } as const

export class QuotaUpkeep {
  readonly #deps: QuotaUpkeepDeps
  readonly quotas: Quotas
  readonly changes: QuotaChanges
  readonly #reports: QuotaReports
  readonly #plans = new TaskSet((error) => {
    throw error
  })
  #config: QuotaConfig
  #planned: Promise<void> = Promise.resolve()
  #tasks: readonly PeriodicTask[] = []
  #stopping = new AbortController()
  #joining: Timer | null = null
  #hasResumed = false

  constructor(deps: QuotaUpkeepDeps, config: QuotaConfig) {
    const { store, clock, isShared } = deps
    this.#deps = deps
    this.#config = config
    this.#reports = new QuotaReports(deps)
    this.quotas = new Quotas({ store, clock, isShared, used: this.#reports.used })
    this.quotas.configure(config)
    this.changes = new QuotaChanges({ store, clock, tables: () => this.quotas.tables, changed: (key) => this.#wasReset(key) })
  }

  /** Begins, with mail that an earlier life of the relay has held. */
  async start(): Promise<void> {
    this.#stopping = new AbortController()
    this.#hasResumed = false
    this.#watch()
    const { isShared, clock } = this.#deps
    // A node of a shared queue knows which keys are its own once it has joined, after its start (#look).
    if (isShared) return void (this.#joining = clock.after(MINUTE, () => this.#plans.add(this.#planAll())))
    if (this.quotas.isOn) this.#plans.add(this.#resume().catch(rethrowUnlessUnavailable))
    await this.#planAll()
  }

  /** Plans all held mail anew, where there may be some. */
  async #planAll(): Promise<void> {
    if (this.quotas.isOn || (await this.#deps.store.records.quotaCounts.any().catch(rethrowUnlessUnavailable)) === true) this.#plan(null)
  }

  /** Applies a changed configuration. */
  apply(config: QuotaConfig): void {
    if (isDeepStrictEqual(config.quota, this.#config.quota)) return
    this.#config = config
    this.quotas.configure(config)
    this.#watch()
    this.#plan(null)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#joining?.cancel()
    const tasks = this.#tasks
    this.#tasks = []
    await Promise.all(tasks.map((task) => task.stop()))
    await this.#plans.settled()
    await this.#reports.settled()
  }

  #watch(): void {
    const { clock, store } = this.#deps
    if (this.quotas.isOn === this.#tasks.length > 0) return
    if (this.quotas.isOn) {
      this.#tasks = [
        every(clock, MINUTE, () => this.#look(), TASK),
        every(clock, HOUR, () => store.records.quotaCounts.prune({ now: clock.now() }), { ...TASK, immediate: true }),
      ]
      return
    }
    for (const task of this.#tasks) this.#plans.add(task.stop())
    this.#tasks = []
  }

  /**
   * The quotas that are used up now, of keys whose mail came to this node or that were the fullest at its start; the first one first. Of several limits
   * of a key, the one that has room last.
   */
  get full(): readonly FullQuota[] {
    const full = this.#reports.reached.filter(({ quota, key, limit }) =>
      this.quotas.statesOfKey({ quota, key }).some((one) => one.isFull && one.limit.text === limit.text),
    )
    const ofKeys = Map.groupBy(full, ({ quota, key }) => JSON.stringify([quota, key])).values()
    return [...ofKeys]
      .flatMap((reached) => {
        const [{ quota, key } = { quota: '', key: '' }] = reached
        const held = this.quotas.holding(
          { quota, key },
          reached.map(({ limit }) => limit),
        )
        const last = reached.find(({ limit }) => limit === held?.limit)
        if (held === undefined || last === undefined) return []
        return [{ quota, key, limit: held.limit.text, action: held.action, refuses: held.refuses, since: last.since }]
      })
      .toSorted((a, b) => a.since - b.since)
  }

  /** Takes over the limits that are used up, which an earlier life of the relay has told of. */
  async #resume(): Promise<void> {
    const { store, clock, owns } = this.#deps
    for (const { name: quota } of this.quotas.tables) {
      const fullest = await store.records.quotaCounts.fullest({ quota, now: clock.now(), limit: MOST_RESUMED })
      const own = fullest.filter(({ key }) => owns(key))
      await this.quotas.counts.load(own)
      this.#reports.resume(own.flatMap((use) => this.quotas.statesOfKey(use)))
    }
    this.#hasResumed = true
  }

  /** Tells of keys that have room again. */
  async #look(): Promise<void> {
    const { quotas } = this
    if (!this.#hasResumed) await this.#resume()
    const told = this.#reports.told
    if (told.length === 0) return
    await quotas.counts.load(told)
    this.#reports.cleared(told.flatMap((use) => quotas.statesOfKey(use)))
  }

  async #wasReset(key: string): Promise<void> {
    this.quotas.counts.forget(this.quotas.tables.map(({ name: quota }) => ({ quota, key })))
    this.#plan(key)
  }

  #plan(key: string | null): void {
    const { reader, ...deps } = this.#deps
    if (reader === undefined) return
    const { signal } = this.#stopping
    const plan = (): Promise<void> => planHeldMail({ ...deps, reader, quotas: this.quotas }, key, signal)
    this.#planned = this.#planned.then(plan).catch(rethrowUnlessUnavailable)
    this.#plans.add(this.#planned)
  }
}
