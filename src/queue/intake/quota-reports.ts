/** Tells of quotas that fill: at 80 and 100 percent, once in each slice, and when a key that was told of has room again. */
import { rethrowUnlessUnavailable, type QueueStore } from '../../store/queue-store.ts'
import type { QuotaAction, QuotaLimit } from '../../config/values/tables/quota-table.ts'
import type { QuotaUse } from '../../store/records/quota-count.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { Clock, QueueTime } from '../../system/clock.ts'
import { TaskSet } from '../../system/task-set.ts'
import type { EventOf, Events } from '../../telemetry/events.ts'

/** A limit of a quota that is used up. */
export interface FullQuota extends QuotaUse {
  /** As it is written: `1000/1h`. */
  readonly limit: string
  readonly action: QuotaAction
  /** True while mail is refused: also by a quota that holds, when it would be held longer than `hold_limit`. */
  readonly refuses: boolean
  /** Time at which mail first found no room, as far as this node knows. */
  readonly since: QueueTime
}

/** `mail of app@example.com is refused: quota app, 1000/1h, is used up` */
export const fullQuotaText = ({ quota, key, limit, action, refuses }: FullQuota): string =>
  `mail of ${key} is ${refuses ? 'refused' : 'held'}: quota ${quota}, ${limit}, is used up${refuses && action === 'hold' ? ' for longer than hold_limit' : ''}`

/** Use of a limit by a key. */
export interface QuotaState extends QuotaUse {
  readonly limit: QuotaLimit
  readonly used: number
  /** Begin of the slice. */
  readonly slice: QueueTime
  /** True when mail is refused or held. */
  readonly isFull: boolean
}

const NEAR = 0.8

interface QuotaReportsDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly store: Pick<QueueStore, 'outbox'>
  readonly events: Events
  readonly recorder: Pick<EventRecorder, 'of'>
}

interface Told extends QuotaUse {
  readonly limit: QuotaLimit
  readonly slice: QueueTime
  readonly percent: 80 | 100
  /** Time since which it is told of at this percentage. */
  readonly since: QueueTime
}

export class QuotaReports {
  readonly #deps: QuotaReportsDeps
  readonly #told = new Map<string, Told>()
  readonly #records = new TaskSet((error) => {
    throw error
  })

  constructor(deps: QuotaReportsDeps) {
    this.#deps = deps
  }

  /** Keys that were told of, whose use is to be looked at again. */
  get told(): readonly QuotaUse[] {
    return [...this.#told.values()]
  }

  /** Limits that were told of at 100 percent, by key, with the time. */
  get reached(): readonly (QuotaUse & { readonly limit: QuotaLimit; readonly since: QueueTime })[] {
    return [...this.#told.values()].filter(({ percent }) => percent === 100)
  }

  /** Tells of limits that are nearly or wholly used. */
  readonly used = (states: readonly QuotaState[]): void => {
    for (const { quota, key, limit, used, slice, isFull } of states) {
      const percent = isFull ? 100 : used >= limit.most * NEAR ? 80 : undefined
      if (percent === undefined) continue
      const id = idOf(quota, key, limit)
      const last = this.#told.get(id)
      if (last?.slice === slice && last.percent >= percent) continue
      const since = last?.percent === percent ? last.since : this.#deps.clock.now()
      this.#told.set(id, { quota, key, limit, slice, percent, since })
      this.#tell({ kind: 'quota-reached', ...membersOf({ quota, key, limit, used }), percent })
    }
  }

  /** Takes over limits that are used up at the start of the relay, without an event. */
  resume(states: readonly QuotaState[]): void {
    const since = this.#deps.clock.now()
    for (const { quota, key, limit, slice, isFull } of states) {
      const id = idOf(quota, key, limit)
      if (isFull && !this.#told.has(id)) this.#told.set(id, { quota, key, limit, slice, percent: 100, since })
    }
  }

  /** Tells of limits with room again. `states` has the present use of the keys. */
  cleared(states: readonly QuotaState[]): void {
    const present = new Map(states.map((one) => [idOf(one.quota, one.key, one.limit), one]))
    for (const [id, { quota, key, limit }] of this.#told) {
      const { used = 0, isFull = false } = present.get(id) ?? {}
      if (isFull || used >= limit.most * NEAR) continue
      this.#told.delete(id)
      this.#tell({ kind: 'quota-cleared', ...membersOf({ quota, key, limit, used }) })
    }
  }

  settled(): Promise<void> {
    return this.#records.settled()
  }

  #tell(event: EventOf<'quota-reached' | 'quota-cleared'>): void {
    const { events, recorder, store } = this.#deps
    events.emit(event)
    const recorded = recorder.of(event)
    if (recorded !== undefined) this.#records.add(store.outbox.recordEvents(recorded).catch(rethrowUnlessUnavailable))
  }
}

const idOf = (quota: string, key: string, limit: QuotaLimit): string => `${quota} ${limit.text} ${key}`

const membersOf = ({ quota, key, limit, used }: Pick<QuotaState, 'quota' | 'key' | 'limit' | 'used'>) => ({
  quota,
  key,
  measure: limit.measure,
  span: limit.span,
  used,
  limit: limit.most,
})
