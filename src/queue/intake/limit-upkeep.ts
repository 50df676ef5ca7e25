/**
 * Keeps the counts of the limits of the queue: has the store count while a limit is set, and reads the counts of the other nodes once a second.
 * Nothing runs without a limit.
 */
import { rethrowUnlessUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { QueueLimitConfig } from '../../config/values/limit-terms.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import { MINUTE, SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { TaskSet } from '../../system/task-set.ts'
import type { Events } from '../../telemetry/events.ts'
import { QueueLimits, type LimitChange } from './queue-limits.ts'

interface LimitUpkeepDeps {
  readonly store: Pick<QueueStore, 'shares' | 'outbox'>
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

/** Pause between two slices, in which the store does other work. */
const BETWEEN_SLICES: Duration = 10

const TASK = { immediate: true, failed: rethrowUnlessUnavailable } as const

export class LimitUpkeep {
  readonly #deps: LimitUpkeepDeps
  readonly limits: QueueLimits
  #tasks: readonly PeriodicTask[] = []
  readonly #records = new TaskSet((error) => {
    throw error
  })

  constructor(deps: LimitUpkeepDeps) {
    this.#deps = deps
    this.limits = new QueueLimits({ now: () => deps.clock.now(), changed: (change) => this.#tell(change) })
    deps.store.shares.onShares(this.limits.ownChanged)
  }

  /** Applies the configuration, at the start and at each reload. Resolves when the first slice is counted. */
  async apply(config: QueueLimitConfig): Promise<void> {
    const { limits } = this
    const { store, clock, isShared } = this.#deps
    limits.configure(config)
    // An earlier life of the relay may have left counts.
    if (limits.isActive ? this.#tasks.length > 0 : this.#tasks.length === 0 && !limits.hasCounts) return
    if (!limits.isActive) {
      await this.stop()
      limits.counted(false)
      await store.shares.countShares(false).catch(rethrowUnlessUnavailable)
      return
    }
    const first = await store.shares.countShares(true).catch(rethrowUnlessUnavailable)
    if (first === true && !isShared) limits.counted(true)
    // A repaired queue begins its counts anew.
    const counting = every(clock, MINUTE, (stopping) => this.#count(stopping), TASK)
    this.#tasks = isShared ? [counting, every(clock, SECOND, () => this.#readElsewhere(), TASK)] : [counting]
  }

  /** Ends the tasks. The store goes on with its counts. */
  async stop(): Promise<void> {
    const tasks = this.#tasks
    this.#tasks = []
    await Promise.all(tasks.map((task) => task.stop()))
    await this.#records.settled()
  }

  async #count(stopping: AbortSignal): Promise<void> {
    const { limits } = this
    const { store } = this.#deps
    while (!stopping.aborted && !(await store.shares.countShares(true))) {
      limits.counted(false)
      await sleep(this.#deps.clock, BETWEEN_SLICES)
    }
    if (stopping.aborted) return
    if (this.#deps.isShared) await this.#readElsewhere()
    limits.counted(true)
  }

  #tell(change: LimitChange): void {
    const { events, recorder, store } = this.#deps
    const event = change.isReached ? ({ kind: 'limit-reached', ...change.of } as const) : ({ kind: 'limit-cleared', ...change.of } as const)
    events.emit(event)
    const recorded = recorder.of(event)
    if (recorded !== undefined) this.#records.add(store.outbox.recordEvents(recorded).catch(rethrowUnlessUnavailable))
  }

  async #readElsewhere(): Promise<void> {
    this.limits.elsewhere(await this.#deps.store.shares.sharesElsewhere())
  }
}
