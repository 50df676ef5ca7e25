/**
 * Arrivals: messages of other nodes to the owner of a shard. An arrival is deleted when the next request shows that its answer was
 * received; after a lost answer it arrives again.
 */
import type { DestinationName, MessageId, OwnerId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { Recall } from '../membership/taken-back.ts'
import { NO_ARRIVALS, type Arrivals } from '../membership/node-table.ts'
import type { ProviderChange } from '../records/provider-state.ts'
import type { DestinationRecord } from '../queue-store.ts'
import { texts } from './session/arrays.ts'
import type { Connection } from './session/database-connection.ts'
import * as sql from './membership-queries.ts'

interface Place {
  /** Place of the row in its file. */
  readonly row: string
  /** The file of the table. */
  readonly file: number
}

type ArrivalRow = Place &
  (
    | { readonly kind: 'due'; readonly destination: DestinationName; readonly dueAt: QueueTime; readonly revive: boolean }
    | { readonly kind: 'notices'; readonly message: MessageId }
    | { readonly kind: 'destinations' | 'providers'; readonly record: string }
  )

interface RecallRow extends Recall {
  readonly asker: OwnerId
  readonly number: number
}

/** Arrivals of one node. */
export class ArrivalQueue {
  readonly #me: OwnerId
  #received: readonly Place[] = []

  constructor(me: OwnerId) {
    this.#me = me
  }

  /** Sends all statements at once. */
  async take(connection: Connection): Promise<Arrivals> {
    const [, rows, recalls] = await Promise.all([
      this.#confirm(connection),
      connection.query<ArrivalRow>(sql.arrivals, [this.#me]),
      connection.query<RecallRow>(sql.recalls, [this.#me]),
    ])
    if (rows.length === 0 && recalls.length === 0) return NO_ARRIVALS
    this.#received = rows
    return {
      due: rows.flatMap((row) => (row.kind === 'due' ? [{ destination: row.destination, dueAt: row.dueAt, revive: row.revive }] : [])),
      notices: rows.flatMap((row) => (row.kind === 'notices' ? [row.message] : [])),
      destinations: rows.flatMap((row) => (row.kind === 'destinations' ? [JSON.parse(row.record) as DestinationRecord] : [])),
      providers: rows.flatMap((row) => (row.kind === 'providers' ? [JSON.parse(row.record) as ProviderChange] : [])),
      recalls: recalls.map(({ asker, number, messages, destination, rests }) => ({
        asker,
        number,
        recall: { messages, destination, rests },
      })),
    }
  }

  /** Deletes what the last answer had. */
  async #confirm(connection: Connection): Promise<void> {
    const confirmed = this.#received
    const [first] = confirmed
    if (first !== undefined) await connection.query(sql.confirmArrivals, [texts(confirmed.map(({ row }) => row)), first.file])
    if (this.#received === confirmed) this.#received = []
  }
}
