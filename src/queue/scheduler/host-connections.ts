/**
 * Allows the connections of deliveries within the limits of their addresses (address-limits), and draws the consequences of an answer and of
 * silence for the destinations that wait for a host.
 */
import type { AttemptResult, Connecting } from '../../delivery/delivery-agent.ts'
import type { DestinationControl } from './destination-control.ts'
import type { Destination } from './destination.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { DueQueue } from './due-queue.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'clock' | 'table' | 'addresses' | 'hosts'>
interface Loops {
  readonly control: DestinationControl
  readonly due: DueQueue
  readonly scheduler: Pick<SchedulerLoop, 'dispatch'>
}

/** The connections of one delivery. */
export class DeliveryConnections {
  /** Addresses to which no connection was allowed. */
  readonly passedOver = new Set<string>()
  /** Addresses that sent no greeting. */
  readonly silent = new Set<string>()
  hasGreeting = false

  /** The address that stands for the hosts of a delivery that none of them has greeted; null for another delivery. */
  get silentHost(): string | null {
    return this.hasGreeting ? null : firstOf(this.silent)
  }
}

/** One address of several, the same one in whatever order they were tried. */
const firstOf = (addresses: Iterable<string>): string | null => [...addresses].toSorted()[0] ?? null

export class HostConnections {
  readonly #state: State
  readonly #loops: Loops

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** Begins a connection of a delivery; null when its address is passed over. */
  connecting(running: RunningDelivery, made: DeliveryConnections, address: string): Connecting | null {
    const { addresses, clock } = this.#state
    const passage = running.alone ? 'connects' : addresses.passage(address, { urgent: isUrgent(running), now: clock.monotonic() })
    if (passage !== 'connects') {
      made.passedOver.add(address)
      return null
    }
    addresses.begin(address)
    let isCounted = true
    const uncounted = () => {
      if (isCounted) addresses.end(address)
      isCounted = false
    }
    return {
      greeted: () => {
        uncounted()
        made.hasGreeting = true
        this.#answered(address)
      },
      ended: () => {
        if (!isCounted) return
        uncounted()
        made.silent.add(address)
        this.#wake(addresses.admitted(address))
      },
    }
  }

  /** A host has greeted: its limit ends, and destinations that are dead because of it are probed at once. */
  #answered(address: string): void {
    const { addresses, hosts, clock } = this.#state
    const { control, due } = this.#loops
    addresses.answered(address, clock.monotonic())
    for (const destination of hosts.membersAt(address)) {
      control.probeNow(destination)
      due.schedule(destination)
    }
    this.#wake(addresses.waitingAt(address))
  }

  #wake(destinations: readonly Destination[]): void {
    const { table } = this.#state
    for (const destination of destinations) {
      destination.hosts.endWait()
      table.stir(destination)
      this.#loops.due.schedule(destination)
    }
    if (destinations.length > 0) this.#loops.scheduler.dispatch()
  }

  /** Records the silence of the hosts that have not greeted a delivery. Destinations that wait for a silent host are dead then. */
  learn(made: DeliveryConnections, { siteStatus }: AttemptResult): void {
    const { addresses, clock } = this.#state
    if (siteStatus === undefined || made.silentHost === null) return
    const now = clock.monotonic()
    for (const address of made.silent) addresses.failed(address, siteStatus, now)
    for (const address of made.silent) {
      if (!addresses.isSilent(address, now)) continue
      for (const destination of addresses.waitingAt(address)) {
        const { waitsFor } = destination.hosts
        if (waitsFor.every((one) => addresses.isSilent(one, now))) this.#join(destination, waitsFor)
      }
    }
  }

  /** Lets the destination of a delivery wait, all of whose hosts were passed over. The mail is given back by the caller. */
  passedOver({ destination }: RunningDelivery, { passedOver }: DeliveryConnections): void {
    const { addresses, clock } = this.#state
    // An address may have got room, or may be silent since.
    const now = clock.monotonic()
    const passages = Map.groupBy(passedOver, (address) => addresses.passage(address, { urgent: false, now }))
    const waited = passages.get('waits') ?? []
    if (passages.has('connects') || destination.isReleased) return
    if (waited.length === 0) this.#join(destination, passedOver)
    else destination.hosts.waitFor((one) => addresses.wait(one, waited))
  }

  #join(destination: Destination, silent: Iterable<string>): void {
    const { addresses } = this.#state
    const address = firstOf(silent)
    const status = address === null ? null : addresses.statusOf(address)
    if (address !== null && status !== null) this.#loops.control.shareDeath(destination, { address, status })
  }
}

/** True for a delivery that is attempted at a silent host too. */
const isUrgent = ({ destination, job }: RunningDelivery): boolean =>
  destination.isAlone || destination.hosts.isProber || job.request.recipients.some(({ flushed }) => flushed)
