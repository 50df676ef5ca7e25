/**
 * Vacuums the tables of mail as soon as many rows have died. Autovacuum looks once a minute, in which a busy queue grows by gigabytes.
 * The owner of shard 0 does it for all nodes.
 */
import type { OwnerId } from '../../mail/message.ts'
import { seconds, type Clock, type Duration, type Timer } from '../../system/clock.ts'
import { StoreUnavailable } from '../queue-store.ts'
import type { Connection, Statements } from './session/database-connection.ts'

/** Number of dead rows from which a vacuum is worth its reads. */
export const VACUUM_FROM = 50_000
const LOOK_EVERY: Duration = seconds(5)
/** Most of the time that vacuums may take: one in ten parts. */
const REST = 10

/**
 * Time until the next look after one that took `took`. While somebody holds an old snapshot, a vacuum reads ever more rows and removes none.
 */
export const pauseAfter = (took: Duration): Duration => Math.max(LOOK_EVERY, REST * took)

/** The tables with many dead rows; none unless this node owns shard 0. */
export const tablesToVacuum = `
  select relname as name from pg_stat_user_tables
  where schemaname = current_schema() and relname in ('message', 'recipient', 'attempt', 'chunk') and n_dead_tup >= $2
    and exists (select 1 from shard where id = 0 and owner = $1)`

export interface VacuumDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly reading: Statements
  readonly connect: () => Promise<Connection>
  readonly from: number
}

export class Vacuum {
  readonly #deps: VacuumDeps
  #timer: Timer | null = null
  #isStopped = false
  #running: Promise<void> = Promise.resolve()

  constructor(deps: VacuumDeps) {
    this.#deps = deps
    this.#lookLater(LOOK_EVERY)
  }

  /** Stops after the vacuum under way. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#running
  }

  #lookLater(pause: Duration): void {
    if (this.#isStopped) return
    const { clock } = this.#deps
    this.#timer = clock.after(pause, () => {
      const begun = clock.monotonic()
      this.#running = this.#look().then(() => this.#lookLater(pauseAfter(clock.monotonic() - begun)))
    })
  }

  async #look(): Promise<void> {
    const { node, reading, from } = this.#deps
    try {
      const tables = await reading.query<{ name: string }>(tablesToVacuum, [node, from])
      if (tables.length > 0) await this.#vacuum(tables.map(({ name }) => name))
    } catch (error) {
      // The next look tries again.
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }

  /** Uses a session of its own, because a vacuum delays the statements behind it. */
  async #vacuum(tables: readonly string[]): Promise<void> {
    const connection = await this.#deps.connect()
    try {
      await connection.command(`vacuum (skip_locked) ${tables.join(', ')}`)
    } catch {
      connection.destroy()
    } finally {
      await connection.end()
    }
  }
}
