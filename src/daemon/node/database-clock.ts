/**
 * The clock of a queue that several nodes share, set from the time of the database, so that the instants stored by one node mean the same
 * to the others, even where the wall clock of a machine is wrong at the start of its node.
 */
import type { QueueTime, WallTime } from '../../system/clock.ts'
import type { ClockRecord, QueueClock } from '../../system/queue-clock.ts'

/** Times of the wall clock of this machine before and after the request for the time of the database. */
interface ClockReading {
  readonly sent: WallTime
  readonly database: QueueTime
  readonly answered: WallTime
  /** Uptime and boot of this machine at the answer. */
  readonly machine: Pick<ClockRecord, 'uptime' | 'boot'>
}

/** The record that makes QueueClock continue at the time of the database. The error is at most half the duration of the request. */
export const recordOf = ({ sent, database, answered, machine }: ClockReading): ClockRecord => ({
  time: database,
  offset: Math.round(database - (sent + answered) / 2),
  uptime: machine.uptime,
  boot: machine.boot,
})

/** Reads the time of the database. */
export async function readRecord(clock: QueueClock, ask: () => Promise<QueueTime>): Promise<ClockRecord> {
  const wall = (): WallTime => {
    const { time, offset } = clock.record()
    return time - offset
  }
  const sent = wall()
  const database = await ask()
  return recordOf({ sent, database, answered: wall(), machine: clock.record() })
}
