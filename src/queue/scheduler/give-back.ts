/** Returns leased mail to the store without an attempt. Due times, schedule steps and attempt counts do not change. */
import { type Duration, SECOND } from '../../system/clock.ts'
import type { DeliveryRequest, MessageId } from '../../mail/message.ts'
import type { Destination } from './destination.ts'
import type { Access } from './destination-health.ts'
import type { DueQueue } from './due-queue.ts'
import type { Expiry } from './expiry.ts'
import type { Job } from './turns/job-queue.ts'
import { idsOf } from './lifecycle.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<
  SchedulerState,
  'store' | 'clock' | 'events' | 'storeHealth' | 'active' | 'table' | 'shards' | 'arriving' | 'tasks' | 'policies'
>
interface Loops {
  readonly due: DueQueue
  readonly expiry: Expiry
  readonly scheduler: Pick<SchedulerLoop, 'dispatch' | 'checkRest'>
}

/** Time without claims in which an operation can change mail that was taken back for it. */
const REST: Duration = SECOND / 5

export class GiveBack {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** Returns requests that expiry has ignored while they were in memory. The active queue does not count them, or no longer counts them. */
  async unexpired(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void> {
    const { expiry } = this.#loops
    await this.requests(destination, requests)
    for (const { recipients } of requests) for (const { expiresAt } of recipients) expiry.expect(expiresAt)
  }

  /** Returns requests that the active queue does not count, or no longer counts. */
  async requests(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void> {
    const { store, storeHealth, active, arriving, policies } = this.#state
    const { due, scheduler } = this.#loops
    // An operation may have given them another class.
    const recalled = new Set(requests.filter(({ message: { id } }) => arriving.isRecalled(id) || active.wasRecalled(id)))
    for (const { message } of requests) if (arriving.returning(message.id)) due.rest(REST)
    destination.beginCommit()
    try {
      for (const [owner, leased] of Map.groupBy(requests, ({ lease }) => lease.owner)) {
        await storeHealth.retryUntilCommitted(() => store.giveBack(leased.flatMap(idsOf), owner))
      }
    } finally {
      destination.endCommit()
    }
    const { bands } = policies().classes
    for (const request of requests) {
      const { message, recipients } = request
      const known = recalled.has(request) ? undefined : [bands.of(message.class)]
      for (const { id, flushed, dueAt: kept } of recipients) {
        // A flush has made the recipient due, at a time that is not known here.
        const dueAt = flushed ? Math.min(kept, message.arrivedAt) : kept
        const [band] = known ?? []
        if (band === undefined) due.expect(destination.name, dueAt)
        else due.returned(destination, { ids: [id], dueAt, band })
      }
      scheduler.checkRest(message)
      due.admitNext()
    }
    due.schedule(destination)
    scheduler.dispatch()
  }

  /**
   * Gives all jobs that wait in memory for a destination back to the store. When the destination is dead, their recipients begin to
   * wait for it, which is reported once for each message.
   */
  async waiting(destination: Destination): Promise<void> {
    const { access } = destination
    const jobs = this.#state.table.withdraw(destination)
    if (jobs.length === 0) return
    if (destination.inFlight === 0) destination.probing(false)
    await this.unexpired(
      destination,
      jobs.map(({ request }) => request),
    )
    this.reportDeferred(jobs, access)
  }

  /** Gives the jobs of messages that wait in memory back to the store. */
  async ofMessages(messages: readonly MessageId[]): Promise<void> {
    await this.ofAny(this.#state.table.withdrawOf(messages).map(({ request }) => request))
  }

  /** Returns requests of any destinations, before or after they were in memory. */
  async ofAny(requests: readonly DeliveryRequest[]): Promise<void> {
    const { table } = this.#state
    const returning = [...Map.groupBy(requests, (request) => table.get(request.destination))].map(([destination, those]) => {
      if (destination.isIdle && !destination.claiming) destination.probing(false)
      return this.unexpired(destination, those)
    })
    await Promise.all(returning)
  }

  /** Reports mail that begins to wait for a destination, if that is dead, once for each message. */
  reportDeferred(jobs: readonly Job[], access: Access): void {
    if (access.kind !== 'dead') return
    const { clock, events } = this.#state
    const at = clock.now()
    const { siteStatus } = access
    for (const { request, activatedAt } of jobs) {
      const { message, destination } = request
      const recipients = request.recipients.map(({ address }) => address)
      events.emit({ kind: 'deferred', message, destination, recipients, at, activatedAt, siteStatus })
    }
  }

  /**
   * Returns the jobs of a dead, suspended or released destination that entered memory after its state changed, and those of one that another
   * node schedules. A probe is kept.
   */
  whereClosed(destination: Destination): void {
    const { access, mail, name } = destination
    const { waitingJobs } = mail
    if (waitingJobs === 0) return
    const isReleased = destination.isReleased || !this.#state.shards.schedules(name)
    if (access.kind === 'open' && !isReleased) return
    if (access.kind === 'dead' && !isReleased && access.probing && waitingJobs === 1) return
    this.#state.tasks.add(this.waiting(destination))
  }
}
