/**
 * Reports a database that needs an operator: a transaction that keeps dead rows, and synchronous standbys that are absent. The owner of
 * shard 0 reports for all nodes.
 */
import { MINUTE, SECOND, type Duration } from '../../system/clock.ts'
import { isSynchronous, type DatabaseState } from '../../store/membership/database-state.ts'
import type { Events } from '../../telemetry/events.ts'

/** From this age on, a transaction is reported. */
const REPORTED_AGE: Duration = MINUTE

interface DatabaseReportDeps {
  readonly events: Events
  readonly reports: () => boolean
  /** True when a commit waits for a standby (`queue_database_durability = "replicated"`). */
  readonly replicated: boolean
}

export class DatabaseReport {
  readonly #deps: DatabaseReportDeps
  #state: DatabaseState | null = null
  /** The transaction reported last. */
  #reported: string | null = null
  #reportedStandbys = false

  constructor(deps: DatabaseReportDeps) {
    this.#deps = deps
  }

  /** The state as last read; null before the first read. */
  get state(): DatabaseState | null {
    return this.#state
  }

  /** True when commits wait for a standby and none was connected at the last read. */
  get lacksStandby(): boolean {
    const standbys = this.#state?.standbys ?? null
    return this.#deps.replicated && standbys !== null && !standbys.some(isSynchronous)
  }

  seen(state: DatabaseState): void {
    this.#state = state
    if (!this.#deps.reports()) return
    this.#compareTransaction(state)
    this.#compareStandbys()
  }

  #compareTransaction({ oldest }: DatabaseState): void {
    const long = oldest !== null && oldest.age >= REPORTED_AGE ? oldest : null
    if (long?.of === this.#reported || (long === null && this.#reported === null)) return
    if (long === null) this.#note('info', `${this.#reported} has ended: dead rows can be removed`)
    else {
      const age = Math.floor(long.age / SECOND)
      this.#note('warning', `a transaction is open for ${age} s, and dead rows of the queue are kept until its end: ${long.of}`)
    }
    this.#reported = long?.of ?? null
  }

  #compareStandbys(): void {
    const areAbsent = this.lacksStandby
    if (areAbsent === this.#reportedStandbys) return
    this.#reportedStandbys = areAbsent
    if (areAbsent) this.#note('warning', 'no synchronous standby is connected to the database: commits, and so clients, wait for one')
    else this.#note('info', 'a synchronous standby is connected to the database again')
  }

  #note(level: 'info' | 'warning', text: string): void {
    this.#deps.events.emit({ kind: 'note', level, text })
  }
}
