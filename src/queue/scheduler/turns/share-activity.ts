/** Deliveries of shares in the last minute, and those in progress: for views. A share without either is forgotten. */
import type { Band } from '../../../config/values/mail-classes.ts'
import { MINUTE, seconds, type Duration } from '../../../system/clock.ts'
import type { Job } from './job-queue.ts'

const SLICE: Duration = seconds(5)
/** Number of entries from which those that have ended are looked for. */
const MANY = 1_000

/** A share of a band. */
export interface BandShare {
  readonly band: Band
  readonly share: string
  /** Recipients in delivery. */
  readonly inFlight: number
  /** Recipients whose deliveries have begun in the last minute. */
  readonly started: number
}

/** A share with deliveries, with the name of its class in place of the number, which a command does not know. */
export interface LiveShare extends Omit<BandShare, 'band'> {
  /** Name of the class; null for mail of a class that is not configured. */
  readonly class: string | null
}

interface Activity {
  readonly band: Band
  readonly share: string
  inFlight: number
  /** Recipients by number of the slice of time. */
  readonly starts: Map<number, number>
}

const sliceOf = (now: Duration): number => Math.floor(now / SLICE)

export class ShareActivity {
  readonly #all = new Map<string, Activity>()
  readonly #running = new Set<Job>()
  #tidyAt = MANY

  begun(job: Job, now: Duration): void {
    this.#running.add(job)
    const one = this.#of(job)
    const [slice, { length }] = [sliceOf(now), job.request.recipients]
    one.inFlight += length
    one.starts.set(slice, (one.starts.get(slice) ?? 0) + length)
    forgetBefore(one, slice)
    if (this.#all.size > this.#tidyAt) this.#tidy(now)
  }

  /** Has no effect on a delivery that was not counted. */
  ended(job: Job): void {
    if (this.#running.delete(job)) this.#of(job).inFlight -= job.request.recipients.length
  }

  /** The shares with deliveries, in no order. */
  at(now: Duration): readonly BandShare[] {
    this.#tidy(now)
    return Array.from(this.#all.values(), ({ band, share, inFlight, starts }) => ({
      band,
      share,
      inFlight,
      started: [...starts.values()].reduce((sum, count) => sum + count, 0),
    }))
  }

  #of({ band, share }: Job): Activity {
    const key = `${band} ${share}`
    let one = this.#all.get(key)
    if (one === undefined) this.#all.set(key, (one = { band, share, inFlight: 0, starts: new Map() }))
    return one
  }

  #tidy(now: Duration): void {
    for (const [key, one] of this.#all) {
      forgetBefore(one, sliceOf(now))
      if (one.inFlight === 0 && one.starts.size === 0) this.#all.delete(key)
    }
    this.#tidyAt = Math.max(MANY, 2 * this.#all.size)
  }
}

/** Forgets starts of more than a minute before a slice of time. */
function forgetBefore({ starts }: Activity, slice: number): void {
  for (const known of starts.keys()) if (known <= slice - MINUTE / SLICE) starts.delete(known)
}
