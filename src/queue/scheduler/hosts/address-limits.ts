/**
 * Limits of connections by address (IP, with the port unless that is 25): connections that have no greeting yet take at most a fifth of the delivery slots, unless the address
 * has greeted within the last minute. So an address that does not answer leaves the other slots to other mail. Passive; its memory is bounded.
 */
import type { DeliveryStatus } from '../../../mail/smtp-reply.ts'
import { byConnections, CONNECTING_SHOWN, type ConnectingAddress } from '../../../store/destination-status.ts'
import { MINUTE, type Duration } from '../../../system/clock.ts'
import type { AddressWait } from './destination-hosts.ts'

/** An answer or a failure is this long evidence of the state of a host. */
const RECENT: Duration = MINUTE
/** Number of deliveries in a row without a greeting after which an address is silent; as many fail before a new destination is dead. */
const SILENT_AFTER = 5
/** Number of addresses whose last answer or failures are kept. */
const KEPT = 10_000

export interface AddressFacts {
  /** Connections that have no greeting yet. */
  readonly connecting: number
  /** Maximum of such connections. */
  readonly limit: number
  /** Time of the last greeting; null when none is known. */
  readonly answeredAt: Duration | null
  /** Deliveries in a row without a greeting, and the time of the last one. */
  readonly failures: number
  readonly failedAt: Duration | null
  readonly now: Duration
}

/**
 * - `connects`: the connection may begin.
 * - `waits`: the delivery waits until the address has room or answers.
 * - `joins`: the address is silent, so the destination is dead without an attempt of its own, and shares the probes of the host.
 */
type Passage = 'connects' | 'waits' | 'joins'

export const connectingLimit = (slots: number): number => Math.max(1, Math.floor(slots / 5))

export const isSilent = ({ failures, failedAt, now }: Pick<AddressFacts, 'failures' | 'failedAt' | 'now'>): boolean =>
  failures >= SILENT_AFTER && failedAt !== null && now - failedAt <= RECENT

/**
 * Whether a connection begins. An `urgent` delivery (a probe, a message alone at its destination, one that an operator flushed) is attempted at
 * a silent address too, if there is room.
 */
export function passageOf(facts: AddressFacts, urgent: boolean): Passage {
  const { connecting, limit, answeredAt, now } = facts
  if (answeredAt !== null && now - answeredAt <= RECENT) return 'connects'
  const hasRoom = connecting < limit
  if (isSilent(facts)) return urgent && hasRoom ? 'connects' : 'joins'
  return hasRoom ? 'connects' : 'waits'
}

type Evidence = Pick<AddressFacts, 'answeredAt' | 'failures' | 'failedAt'> & {
  /** Status of the last delivery without a greeting. */
  readonly status: DeliveryStatus | null
}

const UNKNOWN: Evidence = { answeredAt: null, failures: 0, failedAt: null, status: null }

export class AddressLimits<Destination> {
  readonly #slots: () => number
  readonly #connecting = new Map<string, number>()
  /** In the order of the last answers and failures. */
  readonly #evidence = new Map<string, Evidence>()
  /** Destinations that wait for an address. */
  readonly #waiting = new Map<string, Set<Destination>>()

  /** `slots` returns the number of delivery slots. */
  constructor(slots: () => number) {
    this.#slots = slots
  }

  #facts(address: string, now: Duration): AddressFacts {
    const evidence = this.#evidence.get(address) ?? UNKNOWN
    return { ...evidence, connecting: this.#connecting.get(address) ?? 0, limit: connectingLimit(this.#slots()), now }
  }

  passage(address: string, { urgent, now }: { readonly urgent: boolean; readonly now: Duration }): Passage {
    return passageOf(this.#facts(address, now), urgent)
  }

  isSilent(address: string, now: Duration): boolean {
    return isSilent(this.#facts(address, now))
  }

  /** Status of the last delivery that the address did not greet; null when none is known. */
  statusOf(address: string): DeliveryStatus | null {
    return this.#evidence.get(address)?.status ?? null
  }

  /** The addresses with connections that have no greeting yet, at most CONNECTING_SHOWN. */
  get connecting(): readonly ConnectingAddress[] {
    const all = Array.from(this.#connecting, ([address, count]) => ({ address, count }))
    return all.toSorted(byConnections).slice(0, CONNECTING_SHOWN)
  }

  // --- connections

  begin(address: string): void {
    this.#connecting.set(address, (this.#connecting.get(address) ?? 0) + 1)
  }

  /** Ends a connection, or counts it no more because the host has greeted. */
  end(address: string): void {
    const left = (this.#connecting.get(address) ?? 1) - 1
    if (left > 0) this.#connecting.set(address, left)
    else this.#connecting.delete(address)
  }

  answered(address: string, now: Duration): void {
    this.#keep(address, { ...UNKNOWN, answeredAt: now })
  }

  /** Records a delivery that the address did not greet. */
  failed(address: string, status: DeliveryStatus, now: Duration): void {
    const { answeredAt, failures } = this.#evidence.get(address) ?? UNKNOWN
    this.#keep(address, { answeredAt, failures: failures + 1, failedAt: now, status })
  }

  #keep(address: string, evidence: Evidence): void {
    this.#evidence.delete(address)
    this.#evidence.set(address, evidence)
    if (this.#evidence.size <= KEPT) return
    for (const oldest of this.#evidence.keys()) {
      this.#evidence.delete(oldest)
      return
    }
  }

  // --- destinations that wait

  /** Begins the wait of a destination for any of these addresses. It must have ended its last one. */
  wait(destination: Destination, addresses: readonly string[]): AddressWait {
    for (const address of addresses) this.#waiting.set(address, (this.#waiting.get(address) ?? new Set()).add(destination))
    return { addresses, leave: () => this.#leave(destination, addresses) }
  }

  #leave(destination: Destination, addresses: readonly string[]): void {
    for (const address of addresses) {
      const there = this.#waiting.get(address)
      there?.delete(destination)
      if (there?.size === 0) this.#waiting.delete(address)
    }
  }

  /** All destinations that wait for the address. */
  waitingAt(address: string): readonly Destination[] {
    return [...(this.#waiting.get(address) ?? [])]
  }

  /** The destinations, in the order of their arrival, for which the address has room. All when nothing connects to it. */
  admitted(address: string): readonly Destination[] {
    const there = this.waitingAt(address)
    const connecting = this.#connecting.get(address) ?? 0
    return connecting === 0 ? there : there.slice(0, Math.max(0, connectingLimit(this.#slots()) - connecting))
  }
}
