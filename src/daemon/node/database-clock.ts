/**
 * The clock of a queue that several nodes share, from the time of the database: instants that one node stores mean the same at the others,
 * also where the wall clock of a machine is wrong at the start of its node.
 */
import type { QueueTime, WallTime } from '../../system/clock.ts'
import type { ClockRecord, QueueClock } from '../../system/queue-clock.ts'

/** Times of the wall clock of this machine before and after the request for the time of the database. */
export interface ClockReading {
  readonly sent: WallTime
  readonly database: QueueTime
  readonly answered: WallTime
  /** The machine at the answer. */
  readonly machine: Pick<ClockRecord, 'uptime' | 'boot'>
}

/** The record from which QueueClock continues at the time of the database. Wrong by half the time of the request at most. */
export const recordOf = ({ sent, database, answered, machine }: ClockReading): ClockRecord => ({
  time: database,
  offset: Math.round(database - (sent + answered) / 2),
  uptime: machine.uptime,
  boot: machine.boot,
})

/** Asks the database for its time. */
export async function readRecord(clock: QueueClock, ask: () => Promise<QueueTime>): Promise<ClockRecord> {
  const wall = (): WallTime => {
    const { time, offset } = clock.record()
    return time - offset
  }
  const sent = wall()
  const database = await ask()
  return recordOf({ sent, database, answered: wall(), machine: clock.record() })
}
