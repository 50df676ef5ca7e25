/**
 * Claims mail from the store when it is due. Destinations are in a heap, ordered by the time of their next claim, and one alarm
 * is set for the earliest. A dead, suspended or saturated destination is not in the heap, so its backlog costs nothing. With fair shares, mail
 * of which more is due than memory has room for is claimed in the order of its shares (turns/share-backlog).
 */
import type { Band } from '../../config/values/mail-classes.ts'
import type { DeliveryRequest, DestinationName, RecipientId } from '../../mail/message.ts'
import type { Duration, QueueTime, Timer } from '../../system/clock.ts'
import { EarliestAlarm } from '../../system/earliest-alarm.ts'
import type { Destination } from './destination.ts'
import type { BandClaim, Claimed } from '../../store/queue-store.ts'
import { Backlogs } from './share-backlogs.ts'
import { DueHeap } from './due/due-heap.ts'
import { idsOf } from './lifecycle.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'active' | 'table' | 'shards' | 'arriving' | 'tasks' | 'policies'>

/** Maximum number of recipients per claim. */
const CLAIM_LIMIT = 100

/** Wait before due mail that no claim brings is claimed again. An operation, or another session, has locked its rows. */
const LOCKED_RETRY = 1_000

/** Number of recipients of a band and destination in a claim. A few times the window keeps all slots in use. */
const claimSize = (window: number): number => Math.min(CLAIM_LIMIT, Math.max(10, 4 * window))

const promised = (bands: readonly BandClaim[]): number => bands.reduce((sum, { limit }) => sum + limit, 0)

export class DueQueue {
  readonly #state: State
  readonly #scheduler: Pick<SchedulerLoop, 'claimed' | 'dispatch'>
  readonly #heap = new DueHeap()
  /** Destinations for which the active queue had no room. One of them is scheduled again each time a delivery ends. */
  readonly #withoutRoom = new Set<Destination>()
  readonly #backlogs: Backlogs
  readonly #alarm: EarliestAlarm
  /** Ends the rest; null outside of one. */
  #rest: Timer | null = null

  constructor(state: State, scheduler: Pick<SchedulerLoop, 'claimed' | 'dispatch'>) {
    this.#state = state
    this.#scheduler = scheduler
    this.#alarm = new EarliestAlarm(state.clock, () => scheduler.dispatch())
    this.#backlogs = new Backlogs(state, (name) => {
      const destination = state.table.known(name)
      if (destination === undefined) return
      this.schedule(destination)
      scheduler.dispatch()
    })
  }

  /**
   * Schedules a claim, because mail for the destination waits in the store that is due at `dueAt`: then, or at `claimAt`. Of any band
   * unless `bands` names some. Ignores destinations of other nodes.
   */
  expect(name: DestinationName, dueAt: QueueTime, bands = this.#state.policies().classes.bands.all, claimAt = dueAt): void {
    const { shards, table } = this.#state
    if (!shards.schedules(name)) return
    const destination = table.get(name)
    destination.mail.expect(dueAt, bands, claimAt)
    for (const band of bands) this.#backlogs.of(name, band)?.expect(dueAt)
    this.schedule(destination)
  }

  /** Schedules recipients of a band that were claimed and not attempted. They keep their places in a backlog. */
  returned(
    destination: Destination,
    { ids, dueAt, band }: { readonly ids: readonly RecipientId[]; readonly dueAt: QueueTime; readonly band: Band },
  ): void {
    const backlog = this.#backlogs.of(destination.name, band)
    if (backlog === undefined) return this.expect(destination.name, dueAt, [band])
    backlog.giveBack(ids)
    destination.mail.expect(dueAt, [band])
    this.schedule(destination)
  }

  /**
   * True when new mail of a band has to wait in the store, with fair shares: other mail waits there, or as much as a claim brings is in memory.
   * It would pass the mail of other shares.
   */
  holdsBack(destination: Destination, band: Band): boolean {
    const { name, mail, window } = destination
    if (this.#state.policies().shares === null) return false
    return this.#backlogs.of(name, band) !== undefined || mail.waitingOf(band).jobs >= claimSize(window)
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
    this.#backlogs.forget(destination.name)
  }

  /** Schedules all destinations again, after a change of the settings or an absence of the store. */
  scheduleAll(): void {
    if (this.#state.policies().shares === null) {
      for (const [name, band] of this.#backlogs.places) {
        this.#backlogs.end(name, band)
        this.expect(name, 0, [band])
      }
    }
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
      return destination.inFlight === 0 ? inOrder.slice(0, 1).flatMap((one) => this.#ofBand(destination, one, 1) ?? []) : []
    for (const { band } of inOrder) if (this.#hasMuch(destination, band)) this.#backlogs.begin(destination.name, band)
    let left = this.#state.active.roomForMessages
    return inOrder.flatMap((one) => {
      const claim = this.#ofBand(destination, one, Math.min(this.#limit(destination, one.band), left))
      left -= claim?.limit ?? 0
      return claim === null ? [] : [claim]
    })
  }

  /** A claim of up to `limit` recipients of a band; null for none. Takes those of a backlog out of it. */
  #ofBand({ name }: Destination, one: Omit<BandClaim, 'limit'>, limit: number): BandClaim | null {
    const backlog = this.#backlogs.of(name, one.band)
    if (backlog !== undefined) this.#backlogs.read(name, one.band)
    if (limit <= 0) return null
    if (backlog === undefined) return { ...one, limit }
    const recipients = backlog.take(limit)
    if (recipients.length > 0) return { ...one, limit: recipients.length, recipients }
    if (backlog.isReading) return null
    this.#backlogs.end(name, one.band)
    return { ...one, limit }
  }

  /** True when memory has so much mail of a band that mail in the store is a backlog. */
  #hasMuch({ window, mail }: Destination, band: Band): boolean {
    return mail.waitingOf(band).jobs >= Math.min(claimSize(window), 2 * window)
  }

  #limit(destination: Destination, band: Band): number {
    const { window, mail } = destination
    // More recipients would be leased too early.
    if (mail.waitingOf(band).jobs >= 2 * window) return 0
    const othersWait = this.#heap.size > 1
    return Math.min(claimSize(window), this.#state.table.room(destination, band, othersWait))
  }

  async #claim(destination: Destination, now: QueueTime, bands: readonly BandClaim[]): Promise<void> {
    const { store, storeHealth, active } = this.#state
    destination.beginClaim(bands.map(({ band }) => band))
    let requests: readonly DeliveryRequest[] = []
    try {
      const recipientLimit = destination.settings.destination_recipient_limit
      const answer = await store.claimDue({ destination: destination.name, now, bands, recipientLimit })
      requests = answer.requests
      this.#expectNext(destination, now, answer)
      this.#claimedOf(destination.name, bands, requests)
    } catch (error) {
      // The claim is repeated when the store has recovered.
      for (const { band, recipients = [], from = now } of bands) {
        this.#backlogs.of(destination.name, band)?.giveBack(recipients)
        this.expect(destination.name, from, [band])
      }
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

  /** Schedules what the claim at `now` has left in the store, where it has read all due mail of a band. */
  #expectNext({ name, access }: Destination, now: QueueTime, { requests, next }: Claimed): void {
    const mayBeLocked = requests.length === 0
    for (const { band, dueAt } of next) {
      const isDue = dueAt <= now
      // The destination may have left memory and be here again.
      this.expect(name, dueAt, [band], isDue && mayBeLocked ? this.#state.clock.now() + LOCKED_RETRY : dueAt)
      if (isDue && !mayBeLocked && access.kind === 'open') this.#backlogs.begin(name, band)
    }
  }

  /** Notes which recipients of backlogs were claimed. The others were held, removed or changed since they were read. */
  #claimedOf(name: DestinationName, bands: readonly BandClaim[], requests: readonly DeliveryRequest[]): void {
    const listed = bands.filter(({ recipients }) => recipients !== undefined)
    if (listed.length === 0) return
    const claimed = new Set(requests.flatMap(idsOf))
    for (const { band, recipients = [] } of listed) {
      const missed = recipients.filter((id) => !claimed.has(id)).length
      this.#backlogs.of(name, band)?.claimed({ claimed: recipients.length - missed, missed }, this.#state.clock.now())
      this.#expectRest(name, band)
    }
  }

  /** Schedules what is left of a backlog, also where it ended during the claim. */
  #expectRest(name: DestinationName, band: Band): void {
    const { table, clock, shards } = this.#state
    const backlog = this.#backlogs.of(name, band)
    if (backlog === undefined || !shards.schedules(name)) return
    const hasMore = backlog.size > 0 || backlog.isReading
    // Recipients that could not be claimed may still wait, because an operation had locked their rows: a claim of all due mail follows the order.
    const from = hasMore ? clock.now() : backlog.hasMissed ? 0 : backlog.unreadFrom
    if (from === Infinity) return this.#backlogs.end(name, band)
    table.get(name).mail.expect(from, [band])
    this.schedule(table.get(name))
  }

  /** Makes no claims and sets no alarm any more. */
  stop(): void {
    this.#backlogs.stop()
    this.#rest?.cancel()
    this.#alarm.stop()
  }

  /** Sets the alarm for the earliest destination. With `resting`, clears the alarm. */
  arm(resting: boolean): void {
    this.#alarm.replace(resting || this.#rest !== null ? null : (this.#heap.first()?.at ?? null))
  }
}
