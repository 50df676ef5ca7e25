/** The mail of one band and share at one destination that waits in memory. Each flow with mail has one place in the order of turns. */
import type { Band } from '../../../config/values/mail-classes.ts'
import { JobQueue, type JobCount } from './job-queue.ts'

/** The share of all mail where deliveries are not shared fairly, and of mail without a share. */
export const NO_SHARE = ''

/** `D` is the destination. */
export class Flow<D> {
  readonly destination: D
  readonly band: Band
  readonly share: string
  readonly jobs: JobQueue
  /** True when its turn came and its destination had no room: it goes on before the others when there is room. */
  isParked = false

  /** `count` is that of all flows of the band at the destination. */
  constructor(destination: D, { band, share }: { readonly band: Band; readonly share: string }, count: JobCount | null = null) {
    this.destination = destination
    this.band = band
    this.share = share
    this.jobs = new JobQueue(count)
  }
}
