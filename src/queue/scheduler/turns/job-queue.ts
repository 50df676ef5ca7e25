/**
 * Delivery requests of one band and share that wait in memory for one destination. New mail and retries alternate; within each of the two, the order is
 * first in, first out.
 */
import type { Band } from '../../../config/values/mail-classes.ts'
import type { DeliveryRequest } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'

/** A delivery request in the active queue, waiting or in delivery. */
export interface Job {
  readonly request: DeliveryRequest
  readonly band: Band
  /** Empty where deliveries are not shared fairly. */
  readonly share: string
  /** Time at which the request entered the active queue. */
  readonly activatedAt: QueueTime
}

/** Numbers of jobs that wait, and of their recipients. */
export interface JobCount {
  jobs: number
  recipients: number
}

export class JobQueue {
  /** Counts the jobs of several queues together. */
  readonly #sum: JobCount | null
  // Created at first use: most destinations have waiting mail in the store only.
  #fresh: Lane | null = null
  #retries: Lane | null = null
  #freshNext = true
  #recipients = 0

  constructor(sum: JobCount | null = null) {
    this.#sum = sum
  }

  /** Number of waiting jobs. */
  get size(): number {
    return (this.#fresh?.size ?? 0) + (this.#retries?.size ?? 0)
  }

  /** Number of recipients in the waiting jobs. */
  get recipients(): number {
    return this.#recipients
  }

  push(job: Job): void {
    if (this.size === 0) this.#freshNext = true
    this.#laneOf(job).push(job)
    this.#count(1, job.request.recipients.length)
  }

  /** Returns the next job without removing it. */
  peek(): Job | undefined {
    const [first, second] = this.#freshNext ? [this.#fresh, this.#retries] : [this.#retries, this.#fresh]
    return first?.peek() ?? second?.peek()
  }

  /** Removes a job at any position for its delivery. */
  take(job: Job): void {
    if (job === this.peek()) this.#freshNext = !job.request.fresh
    this.remove(job)
  }

  /** Removes a job at any position without a delivery: new mail and retries keep their turns. */
  remove(job: Job): void {
    this.#laneOf(job).remove(job)
    this.#count(-1, -job.request.recipients.length)
  }

  #count(jobs: number, recipients: number): void {
    this.#recipients += recipients
    if (this.#sum === null) return
    this.#sum.jobs += jobs
    this.#sum.recipients += recipients
  }

  /** Removes all jobs. */
  drain(): Job[] {
    const jobs: Job[] = []
    for (let job = this.peek(); job !== undefined; job = this.peek()) {
      this.take(job)
      jobs.push(job)
    }
    return jobs
  }

  #laneOf({ request }: Job): Lane {
    return request.fresh ? (this.#fresh ??= new Lane()) : (this.#retries ??= new Lane())
  }
}

/**
 * A first-in, first-out queue of jobs. A job that is removed from the middle leaves a gap, which `peek` skips. A Set is not
 * sufficient, because finding its first entry takes time proportional to the number of entries removed before.
 */
class Lane {
  readonly #waiting = new Set<Job>()
  #order: Job[] = []
  #head = 0

  get size(): number {
    return this.#waiting.size
  }

  push(job: Job): void {
    this.#waiting.add(job)
    this.#order.push(job)
  }

  peek(): Job | undefined {
    let job = this.#order[this.#head]
    while (job !== undefined && !this.#waiting.has(job)) job = this.#order[++this.#head]
    if (this.#head > 32 && this.#head * 2 > this.#order.length) {
      this.#order = this.#order.slice(this.#head)
      this.#head = 0
    }
    return job
  }

  remove(job: Job): void {
    this.#waiting.delete(job)
  }
}
