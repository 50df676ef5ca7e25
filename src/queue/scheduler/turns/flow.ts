/** The mail of one band at one destination that waits in memory. Each flow with mail has one place in the order of turns. */
import type { Band } from '../../../config/values/mail-classes.ts'
import { JobQueue } from './job-queue.ts'

/** `D` is the destination. */
export class Flow<D> {
  readonly destination: D
  readonly band: Band
  readonly jobs = new JobQueue()
  /** True when its turn came and its destination had no room: it goes on before the others when there is room. */
  isParked = false

  constructor(destination: D, band: Band) {
    this.destination = destination
    this.band = band
  }
}
