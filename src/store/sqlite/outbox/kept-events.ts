/** Reads the kept events, on any connection. */
import type { Database } from 'better-sqlite3'
import type { EventSeq, KeptEvent } from '../../../events/kept-event.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { ParkedEvent } from '../../outbox/subscription.ts'
import { eventsIn, type EventLinesRow } from './event-lines.ts'
import * as sql from './outbox-queries.ts'

/** A parked event as its subscription has it. */
export interface ParkedRow extends Omit<ParkedEvent, 'event'> {
  readonly seq: EventSeq
}

export class KeptEvents {
  readonly #after
  readonly #before
  readonly #last
  readonly #epoch

  constructor(db: Database) {
    this.#after = db.prepare<[EventSeq], EventLinesRow>(sql.eventsAfter)
    this.#before = db.prepare<[QueueTime], EventLinesRow>(sql.eventsBefore)
    this.#last = db.prepare<[], EventSeq | null>(sql.lastEvent).pluck()
    this.#epoch = db.prepare<[], number>(sql.epoch).pluck()
  }

  get epoch(): number {
    return this.#epoch.get() ?? 0
  }

  /** Number of the newest event; 0 when there was none. */
  get last(): EventSeq {
    return this.#last.get() ?? 0
  }

  /** Number of the oldest event; that of the next event when none is kept. */
  get first(): EventSeq {
    return this.next(0)?.seq ?? this.last + 1
  }

  /**
   * The events with numbers above `seq`, at most `limit`, in order. They are read one row at a time: the connection is busy until the caller
   * has ended the loop.
   */
  *after(seq: EventSeq, limit: number): Generator<KeptEvent, void, void> {
    let rest = limit
    for (const row of this.#after.iterate(seq))
      for (const event of eventsIn(row)) {
        if (event.seq <= seq) continue
        if (rest-- === 0) return
        yield event
      }
  }

  /** The events of the first row that has one with a number above `seq`, those before it included. */
  rowAfter(seq: EventSeq): readonly KeptEvent[] {
    const row = this.#after.get(seq)
    return row === undefined ? [] : eventsIn(row)
  }

  /** The first event with a number above `seq`. */
  next(seq: EventSeq): KeptEvent | undefined {
    return this.rowAfter(seq).find((event) => event.seq > seq)
  }

  /** The event with a number; undefined when it is not kept. */
  find(seq: EventSeq): KeptEvent | undefined {
    const event = this.next(seq - 1)
    return event?.seq === seq ? event : undefined
  }

  parked(rows: readonly ParkedRow[]): ParkedEvent[] {
    return rows.flatMap(({ seq, ...row }) => {
      const event = this.find(seq)
      return event === undefined ? [] : [{ ...row, event }]
    })
  }

  /** Number of the event after the last one before a time; of the oldest event when none is before it. */
  firstSince(at: QueueTime): EventSeq {
    // Times ascend almost, so the search begins at the newest end.
    for (const row of this.#before.iterate(at)) {
      const event = eventsIn(row).findLast((one) => one.at < at)
      if (event !== undefined) return event.seq + 1
    }
    return this.next(0)?.seq ?? 1
  }
}
