/**
 * Claims mail from the store when it is due. Destinations are in a heap, ordered by the time of their next claim, and one alarm
 * is set for the earliest. A dead, suspended or saturated destination is not in the heap, so its backlog costs nothing.
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { DeliveryRequest, DestinationName } from '../../mail/message.ts'
import type { Duration, QueueTime, Timer } from '../../system/clock.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { Destination } from './destination.ts'
import type { BandClaim } from '../../store/queue-store.ts'
import { DueHeap } from './due/due-heap.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'active' | 'table' | 'shards' | 'arriving' | 'tasks' | 'policies'>

/** Maximum number of recipients per claim. */
const CLAIM_LIMIT = 100

const promised = (bands: readonly BandClaim[]): number => bands.reduce((sum, { limit }) => sum + limit, 0)

export class DueQueue {
  readonly #state: State
  readonly #scheduler: Pick<SchedulerLoop, 'claimed' | 'dispatch'>
  readonly #heap = new DueHeap()
  /** Destinations for which the active queue had no room. One of them is scheduled again each time a delivery ends. */
  readonly #withoutRoom = new Set<Destination>()
  readonly #alarm: EarliestAlarm
  /** Ends the rest; null outside of one. */
  #rest: Timer | null = null

  constructor(state: State, scheduler: Pick<SchedulerLoop, 'claimed' | 'dispatch'>) {
    this.#state = state
    this.#scheduler = scheduler
    this.#alarm = new EarliestAlarm(state.clock, () => scheduler.dispatch())
  }

  /**
   * Schedules a claim at `dueAt`, because mail for the destination waits in the store; of any band unless `bands` names some. Ignores
   * destinations of other nodes.
   */
  expect(name: DestinationName, dueAt: QueueTime, bands: readonly Band[] = this.#state.policies().classes.bands.all): void {
    const { shards, table } = this.#state
    if (!shards.schedules(name)) return
    const destination = table.get(name)
    destination.mail.expect(dueAt, bands)
    this.schedule(destination)
  }

  /** Updates the destination's time in the heap. */
  schedule(destination: Destination): void {
    if (destination.isReleased) return
    this.#heap.set(destination.name, this.#state.shards.schedules(destination.name) ? destination.wakesAt : null)
  }

  /** Ends the claims for a destination that is given to another node. */
  forget(destination: Destination): void {
    this.#heap.set(destination.name, null)
    this.#withoutRoom.delete(destination)
  }

  scheduleAll(): void {
    for (const destination of this.#state.table.all) this.schedule(destination)
  }

  /** Schedules one destination that had no room in the active queue, because there may be room now. */
  admitNext(): void {
    for (const destination of this.#withoutRoom) {
      this.#withoutRoom.delete(destination)
      this.schedule(destination)
      return
    }
  }

  /** Makes no claims for a time. */
  rest(time: Duration): void {
    this.#rest?.cancel()
    this.#rest = this.#state.clock.after(time, () => {
      this.#rest = null
      this.#scheduler.dispatch()
    })
  }

  /** Sends a claim for every destination that is due and has room. */
  claim(): void {
    if (this.#rest !== null) return
    const { clock, active, table, arriving, tasks } = this.#state
    const now = clock.now()
    for (let first = this.#heap.first(); first !== undefined && first.at <= now; first = this.#heap.first()) {
      const destination = table.get(first.name)
      const { wakesAt } = destination
      // Another destination probes the same host, or has probed it since.
      if (wakesAt === null || wakesAt > now) {
        this.#heap.set(first.name, wakesAt)
        continue
      }
      const bands = this.#bands(destination, now)
      if (bands.length > 0) {
        active.promise(promised(bands))
        tasks.add(arriving.claiming(this.#claim(destination, now, bands)))
      } else if (destination.isIdle) {
        this.#withoutRoom.add(destination)
      }
      // Removes the destination from the heap. After a claim, the answer schedules the destination again. Without a claim, the end
      // of one of its deliveries does or, if it has none, the end of any delivery.
      this.#heap.set(first.name, null)
    }
  }

  /** The bands whose mail is due, each with the number of recipients to claim, the greatest weight first; one recipient for a probe. */
  #bands(destination: Destination, now: QueueTime): readonly BandClaim[] {
    const { classes } = this.#state.policies()
    const due = destination.mail.dueAt(now)
    const inOrder = due.length < 2 ? due : due.toSorted((a, b) => classes.ofBand(b.band).weight - classes.ofBand(a.band).weight)
    if (destination.access.kind === 'dead')
      return destination.inFlight === 0 ? inOrder.slice(0, 1).map((one) => ({ ...one, limit: 1 })) : []
    let left = this.#state.active.roomForMessages
    return inOrder.flatMap((one) => {
      const limit = Math.min(this.#limit(destination, one.band), left)
      left -= limit
      return limit > 0 ? [{ ...one, limit }] : []
    })
  }

  #limit(destination: Destination, band: Band): number {
    const { window, mail } = destination
    // A few times the window keeps all slots in use. More recipients would be leased too early.
    if (mail.flowOf(band).jobs.size >= 2 * window) return 0
    const othersWait = this.#heap.size > 1
    return Math.min(CLAIM_LIMIT, Math.max(10, 4 * window), this.#state.table.room(destination, band, othersWait))
  }

  async #claim(destination: Destination, now: QueueTime, bands: readonly BandClaim[]): Promise<void> {
    const { store, storeHealth, active } = this.#state
    destination.beginClaim(bands.map(({ band }) => band))
    let requests: readonly DeliveryRequest[] = []
    try {
      const recipientLimit = destination.settings.destination_recipient_limit
      const answer = await store.claimDue({ destination: destination.name, now, bands, recipientLimit })
      // The destination may have left memory and be here again.
      for (const { band, dueAt } of answer.next) this.expect(destination.name, dueAt, [band])
      requests = answer.requests
    } catch (error) {
      // The claim is repeated when the store has recovered.
      for (const { band, from = now } of bands) this.expect(destination.name, from, [band])
      storeHealth.failed(error)
    }
    destination.endClaim()
    active.redeem(promised(bands))
    if (requests.length === 0) {
      destination.probing(false)
      // No delivery results from this claim, so the next destination is scheduled here and not at a delivery's end.
      this.admitNext()
    }
    this.#scheduler.claimed(destination, requests)
  }

  /** Makes no claims and sets no alarm any more. */
  stop(): void {
    this.#rest?.cancel()
    this.#alarm.stop()
  }

  /** Sets the alarm for the earliest destination. With `resting`, clears the alarm. */
  arm(resting: boolean): void {
    this.#alarm.replace(resting || this.#rest !== null ? null : (this.#heap.first()?.at ?? null))
  }
}
