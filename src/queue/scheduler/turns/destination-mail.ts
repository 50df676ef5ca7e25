/** The mail of one destination by band and share: what waits in memory, what is in delivery, and when mail in the store is due. Passive. */
import type { Band, MailClasses, TurnPolicies } from '../../../config/values/mail-classes.ts'
import type { MessageId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { Job, JobCount } from './job-queue.ts'
import { ClassTags } from './class-tags.ts'
import { Flow, NO_SHARE } from './flow.ts'
import { placesLeft, RunningDeliveries } from './running-deliveries.ts'
import { SharedFlows } from './shared-flows.ts'

/** Reserves keep one place of a window free. */
const ONE_PLACE = 0

interface DueMail {
  readonly band: Band
  readonly from: QueueTime
  /** Time of the claim, for mail that is claimed after it is due. */
  readonly claimAt?: QueueTime
}

const claimTimeOf = ({ from, claimAt = from }: DueMail): QueueTime => claimAt

const earliest = (times: readonly QueueTime[]): QueueTime | null => (times.length === 0 ? null : Math.min(...times))

/** Shared by all destinations, of which a relay can have a million. */
const NONE: readonly never[] = []

const orNone = <T>(all: readonly T[]): readonly T[] => (all.length === 0 ? NONE : all)

/** `D` is the destination. */
export class DestinationMail<D> {
  readonly #destination: D
  readonly #policies: () => TurnPolicies
  /** Flows of bands that have had mail in memory, where deliveries are not shared fairly. */
  #flows: readonly Flow<D>[] = NONE
  /** Flows of shares; null where deliveries are not shared fairly, and before the first mail in memory. */
  #shared: SharedFlows<D> | null = null
  #inTransfer: readonly MessageId[] = NONE
  // Created at first use: most destinations have waiting mail in the store only.
  #running: RunningDeliveries | null = null
  /** Due times of the earliest mail in the store, one for each band. */
  #due: readonly DueMail[] = NONE
  /** Start tags of the deliveries to this destination; null without several classes. */
  #tags: ClassTags | null = null

  constructor(destination: D, policies: () => TurnPolicies) {
    this.#destination = destination
    this.#policies = policies
  }

  get #classes(): MailClasses {
    return this.#policies().classes
  }

  // --- in memory

  get #fair(): SharedFlows<D> | null {
    const { shares } = this.#policies()
    return shares === null ? null : (this.#shared ??= new SharedFlows(this.#destination, () => this.#policies().shares ?? shares))
  }

  get flows(): readonly Flow<D>[] {
    return this.#shared === null ? this.#flows : [...this.#flows, ...this.#shared.all]
  }

  flowOf({ band, share }: Pick<Job, 'band' | 'share'>): Flow<D> {
    const fair = this.#fair
    if (fair !== null) return fair.of(band, share)
    let flow = this.#flows.find((one) => one.band === band)
    if (flow === undefined) this.#flows = [...this.#flows, (flow = new Flow(this.#destination, { band, share: NO_SHARE }))]
    return flow
  }

  /** Forgets a flow of a share, which has no mail. */
  drop(flow: Flow<D>): void {
    this.#shared?.drop(flow)
  }

  /** Numbers of jobs and recipients of a band that wait for a slot. */
  waitingOf(band: Band): Readonly<JobCount> {
    const fair = this.#fair
    if (fair !== null) return fair.waitingOf(band)
    const { size, recipients } = this.flowOf({ band, share: NO_SHARE }).jobs
    return { jobs: size, recipients }
  }

  /** Number of jobs that wait for a slot. */
  get waitingJobs(): number {
    return this.#flows.reduce((sum, { jobs }) => sum + jobs.size, this.#shared?.waiting.jobs ?? 0)
  }

  get waitingRecipients(): number {
    return this.#flows.reduce((sum, { jobs }) => sum + jobs.recipients, this.#shared?.waiting.recipients ?? 0)
  }

  /** Removes all jobs that wait, and the flows of shares. */
  drain(): Job[] {
    const jobs = this.flows.flatMap((flow) => flow.jobs.drain())
    this.#shared = null
    return jobs
  }

  /** Parks a flow whose turn came when there was no room. */
  park(flow: Flow<D>): void {
    if (this.#shared === null) flow.isParked = true
    else this.#shared.park(flow, this.#classes)
  }

  /**
   * The parked flows in the order in which they go on: classes by their part of the deliveries to this destination; of a class with fair shares,
   * the flow of the share whose turn it is.
   */
  get parked(): readonly Flow<D>[] {
    const parked =
      this.#shared === null ? this.#flows.filter(({ isParked, jobs }) => isParked && jobs.size > 0) : this.#shared.firstParked()
    if (this.#tags === null || parked.length < 2) return parked
    const classes = this.#classes
    const order = this.#tags.inOrder(classes.all)
    return parked.toSorted((a, b) => order.indexOf(classes.ofBand(a.band)) - order.indexOf(classes.ofBand(b.band)))
  }

  // --- in delivery

  /** Messages of the deliveries in progress. */
  get inTransfer(): readonly MessageId[] {
    return this.#inTransfer
  }

  get inFlight(): number {
    return this.#inTransfer.length
  }

  /** True when a delivery of the band may begin in a window. */
  fits(band: Band, window: number): boolean {
    if (this.inFlight >= window) return false
    const classes = this.#classes
    return !classes.compete || this.#running === null || this.#running.leavesRoomTo(band, classes, () => placesLeft(window, ONE_PLACE))
  }

  begin(job: Job): void {
    const { request, band } = job
    this.#inTransfer = [...this.#inTransfer, request.message.id]
    ;(this.#running ??= new RunningDeliveries()).begin(band)
    const classes = this.#classes
    if (classes.compete) (this.#tags ??= new ClassTags()).begun(classes.ofBand(band), request.recipients.length)
    this.#fair?.begun(job, classes)
  }

  end({ request, band }: Job): void {
    this.#inTransfer = orNone(this.#inTransfer.toSpliced(this.#inTransfer.indexOf(request.message.id), 1))
    this.#running?.end(band)
  }

  // --- in the store

  /** Due time of the earliest mail in the store; null when none is known. */
  get nextDueAt(): QueueTime | null {
    return earliest(this.#due.map(({ from }) => from))
  }

  /** Time of the next claim; null when no mail in the store is known. */
  get nextClaimAt(): QueueTime | null {
    return earliest(this.#due.map(claimTimeOf))
  }

  /** Records that mail in the store is due from `dueAt` on, of these bands, and is claimed at `claimAt` at the earliest. */
  expect(dueAt: QueueTime, bands: readonly Band[], claimAt: QueueTime = dueAt): void {
    this.#due = [...this.#without(bands), ...bands.map((band) => this.#earlier({ band, from: dueAt }, claimAt))]
  }

  #earlier({ band, from }: DueMail, claimAt: QueueTime): DueMail {
    const known = this.#due.find((one) => one.band === band)
    const due = Math.min(from, known?.from ?? Infinity)
    const claim = Math.min(claimAt, known === undefined ? Infinity : claimTimeOf(known))
    return claim === due ? { band, from: due } : { band, from: due, claimAt: claim }
  }

  /** The bands whose mail is to be claimed, with the time from which on it is due. */
  dueAt(now: QueueTime): readonly DueMail[] {
    return this.#due.filter((one) => claimTimeOf(one) <= now)
  }

  /** Forgets the due times of bands: their mail is claimed, and the answer has new ones. */
  claiming(bands: readonly Band[]): void {
    this.#due = this.#without(bands)
  }

  #without(bands: readonly Band[]): readonly DueMail[] {
    return orNone(this.#due.filter(({ band }) => !bands.includes(band)))
  }
}
