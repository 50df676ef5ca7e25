/** The flows of one destination where deliveries are shared fairly: one for each band and share with mail in memory. Passive. */
import type { Band, FairShares, MailClasses } from '../../../config/values/mail-classes.ts'
import { Flow, NO_SHARE } from './flow.ts'
import type { Job, JobCount } from './job-queue.ts'
import { ShareLine } from './share-line.ts'

/** `D` is the destination. */
export class SharedFlows<D> {
  readonly #destination: D
  readonly #shares: () => FairShares
  readonly #flows = new Map<string, Flow<D>>()
  readonly #counts = new Map<Band, JobCount>()
  /** Flows by class that were parked and have not begun a delivery since, in the order of the deliveries to this destination. */
  readonly #parked = new Map<string, ShareLine<D>>()

  constructor(destination: D, shares: () => FairShares) {
    this.#destination = destination
    this.#shares = shares
  }

  get all(): readonly Flow<D>[] {
    return [...this.#flows.values()]
  }

  /** The flow of a band and share, which is created when it is missing. */
  of(band: Band, share: string): Flow<D> {
    const key = keyOf(band, share)
    let flow = this.#flows.get(key)
    if (flow === undefined) this.#flows.set(key, (flow = new Flow(this.#destination, { band, share }, this.waitingOf(band))))
    return flow
  }

  /** Drops a flow without mail. A flow that goes on keeps its place until it begins a delivery, so that none passes it meanwhile. */
  drop(flow: Flow<D>): void {
    for (const line of this.#parked.values()) line.delete(flow)
    this.#flows.delete(keyOf(flow.band, flow.share))
  }

  /** Numbers of jobs and recipients of a band that wait. */
  waitingOf(band: Band): JobCount {
    let count = this.#counts.get(band)
    if (count === undefined) this.#counts.set(band, (count = { jobs: 0, recipients: 0 }))
    return count
  }

  get waiting(): JobCount {
    const sum = { jobs: 0, recipients: 0 }
    for (const { jobs, recipients } of this.#counts.values()) {
      sum.jobs += jobs
      sum.recipients += recipients
    }
    return sum
  }

  park(flow: Flow<D>, classes: MailClasses): void {
    flow.isParked = true
    this.#lineOf(flow, classes).add(flow)
  }

  /** The first parked flow of each class. */
  firstParked(): readonly Flow<D>[] {
    return [...this.#parked.values()].flatMap((line) => {
      for (const flow of line.inOrder()) if (flow.isParked) return [flow]
      return []
    })
  }

  /** Counts a delivery, for the part of its share at this destination. */
  begun(job: Job, classes: MailClasses): void {
    const flow = this.#flows.get(keyOf(job.band, job.share))
    const line = this.#lineOf(job, classes)
    if (flow === undefined) line.count(job, job.request.recipients.length)
    else line.begun(flow, job.request.recipients.length, true)
  }

  #lineOf({ band }: Pick<Job, 'band'>, classes: MailClasses): ShareLine<D> {
    const { name } = classes.ofBand(band)
    let line = this.#parked.get(name)
    if (line === undefined) this.#parked.set(name, (line = new ShareLine(this.#shares)))
    return line
  }
}

const keyOf = (band: Band, share: string): string => (share === NO_SHARE ? String(band) : `${band} ${share}`)
