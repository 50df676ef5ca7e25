/**
 * Series of the queue, once a minute: adds what transactions have counted, counts the backlog, and keeps marks of what changed the
 * relay. Counts that are not added yet are read too, so that a crash loses none.
 */
import { isDeepStrictEqual } from 'node:util'
import type { LoadedConfig } from '../../config/load.ts'
import type { WrittenTables } from '../../config/written-config.ts'
import type { QueueName } from '../../mail/message.ts'
import { oldestArrival } from '../../queue/queue-status.ts'
import { completeTally } from '../../store/counts/queue-tally.ts'
import { rethrowUnlessUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { QueueMark } from '../../store/records/queue-mark.ts'
import { choicesAt, LATE_DAYS } from '../../store/records/series.ts'
import { minuteOf } from '../../store/counts/traffic.ts'
import { HOUR, MINUTE, type Clock, type QueueTime } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { onEvents, type Events } from '../../telemetry/events.ts'

interface QueueSeriesDeps {
  readonly clock: Clock
  readonly store: Pick<QueueStore, 'records' | 'tally'>
  readonly events: Events
  /** Name of the node in marks. */
  readonly node: () => string
}

/** Marks of one kind in a minute that are kept by themselves; more become one mark with their number. */
const MARKS_BY_NAME = 20

/** Marks of one kind in a minute, which are not stored yet. */
interface NotedMarks {
  /** The first ones. */
  readonly marks: QueueMark[]
  count: number
}

/** The words of a mark with a number. */
const COUNTED: Readonly<Record<QueueMark['kind'], string>> = {
  restart: 'starts',
  reload: 'reloads',
  configuration: 'reloads with changes',
  suspended: 'destinations or providers',
  resumed: 'destinations or providers',
}

/** Names of changed parameters in a mark. */
const NAMES_SHOWN = 5

export class QueueSeries {
  readonly #deps: QueueSeriesDeps
  /** In the order of their times. */
  readonly #noted: NotedMarks[] = []
  /** Begin of the minute of the last run. */
  #minute: QueueTime = 0
  /** The last hour in which old rows were deleted. */
  #pruned = 0
  #task: PeriodicTask | null = null

  constructor(deps: QueueSeriesDeps) {
    this.#deps = deps
    deps.events.listen(
      onEvents({
        suspended: ({ destination }) => this.mark('suspended', destination),
        resumed: ({ destination }) => this.mark('resumed', destination),
        'provider-suspended': ({ provider }) => this.mark('suspended', `provider ${provider}`),
        'provider-resumed': ({ provider }) => this.mark('resumed', `provider ${provider}`),
      }),
    )
  }

  /** Notes a mark, which is stored within a minute. */
  mark(kind: QueueMark['kind'], text: string): void {
    const mark: QueueMark = { at: this.#deps.clock.now(), node: this.#deps.node(), kind, text }
    const noted = this.#noted.findLast(({ marks: [first] }) => first?.kind === kind && minuteOf(first.at) === minuteOf(mark.at))
    if (noted === undefined) this.#noted.push({ marks: [mark], count: 1 })
    else {
      noted.count++
      if (noted.count <= MARKS_BY_NAME) noted.marks.push(mark)
    }
  }

  /** Notes a reload, with the parameters that it changed. */
  reloaded(before: LoadedConfig, after: LoadedConfig): void {
    const changed = changedNames(before, after)
    if (changed.length === 0) return this.mark('reload', '')
    const more = changed.length - NAMES_SHOWN
    this.mark('configuration', [...changed.slice(0, NAMES_SHOWN), ...(more > 0 ? [`${more} more`] : [])].join(', '))
  }

  /** Runs at the begin of each minute. A failed run is repeated in the next one. */
  start(): void {
    const { clock } = this.#deps
    this.#minute = minuteOf(clock.now())
    const untilMinute = (): number => MINUTE - (clock.now() % MINUTE)
    this.#task = every(clock, untilMinute, (stopping) => this.#run(stopping), { immediate: true, failed: rethrowUnlessUnavailable })
  }

  async stop(): Promise<void> {
    await this.#task?.stop()
    await this.#keepMarks().catch(rethrowUnlessUnavailable)
  }

  async #run(stopping: AbortSignal): Promise<void> {
    const { clock, store } = this.#deps
    const { series, backlogs, marks } = store.records
    const minute = minuteOf(clock.now())
    const hasBegun = minute > this.#minute
    this.#minute = minute
    try {
      // The run at the start is within a minute.
      if (hasBegun) await this.#count(minute - MINUTE)
    } finally {
      await this.#keepMarks()
    }
    while (!stopping.aborted && (await series.fold()));
    const hour = Math.floor(clock.now() / HOUR)
    if (hour === this.#pruned) return
    for (const choice of choicesAt(clock.now(), this.#pruned === 0 ? LATE_DAYS : 1)) {
      if (stopping.aborted) return
      await series.choose(choice)
    }
    await series.prune(clock.now())
    await backlogs.prune(clock.now())
    await marks.prune(clock.now())
    this.#pruned = hour
  }

  /** Counts the queue at the end of the minute that began at `at`. */
  async #count(at: QueueTime): Promise<void> {
    const { clock, store } = this.#deps
    const { queues } = await completeTally(() => store.tally(1))
    const recipients = (name: QueueName): number => queues.find(({ queue }) => queue === name)?.recipients ?? 0
    const oldest = oldestArrival(queues)
    await store.records.backlogs.add({
      at,
      incoming: recipients('incoming'),
      active: recipients('active'),
      deferred: recipients('deferred'),
      hold: recipients('hold'),
      scheduled: recipients('scheduled'),
      oldest: oldest === null ? 0 : Math.max(0, clock.now() - oldest),
    })
  }

  /** Stores the noted marks. Those that the store does not take are stored later. */
  async #keepMarks(): Promise<void> {
    for (let noted = this.#noted.shift(); noted !== undefined; noted = this.#noted.shift()) {
      try {
        for (const one of few(noted)) await this.#deps.store.records.marks.add(one)
      } catch (error) {
        this.#noted.unshift(noted)
        throw error
      }
    }
  }
}

/** Many marks of a kind as one. */
function few({ marks, count }: NotedMarks): readonly QueueMark[] {
  const [first] = marks
  return first === undefined || count <= MARKS_BY_NAME ? marks : [{ ...first, text: `${count} ${COUNTED[first.kind]}` }]
}

/** Names of parameters and tables that differ. */
function changedNames(before: LoadedConfig, after: LoadedConfig): readonly string[] {
  const parameters = [...after.written].filter(([name, value]) => before.written.get(name) !== value).map(([name]) => name)
  const tables = (Object.keys(TABLE_NAMES) as (keyof WrittenTables)[])
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => TABLE_NAMES[name])
  return [...parameters, ...tables]
}

const TABLE_NAMES: Readonly<Record<keyof WrittenTables, string>> = {
  writtenTransports: 'transport_maps',
  writtenTables: '[destination]',
  writtenProviders: '[provider]',
  writtenDkim: '[dkim]',
  writtenEvents: '[events]',
  writtenOauth: '[oauth]',
  writtenSchedules: '[schedule]',
  writtenQuotas: '[quota]',
  writtenClasses: '[class]',
}
