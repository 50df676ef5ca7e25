/** Addresses of hosts for which one destination waits: for room (address-limits), or for an answer that ends its death (silent-host). */
import type { SilentHost } from './silent-host.ts'

/** A wait for one of several addresses. */
export interface AddressWait {
  readonly addresses: readonly string[]
  /** Ends it. */
  readonly leave: () => void
}

export class DestinationHosts<Destination> {
  readonly #destination: Destination
  #wait: AddressWait | null = null
  #silent: SilentHost<Destination> | null = null

  constructor(destination: Destination) {
    this.#destination = destination
  }

  /** The addresses for whose room it waits; empty when it waits for none. */
  get waitsFor(): readonly string[] {
    return this.#wait?.addresses ?? []
  }

  /** Ends its wait, and begins another one. */
  waitFor(begin: (destination: Destination) => AddressWait): void {
    this.endWait()
    this.#wait = begin(this.#destination)
  }

  endWait(): void {
    this.#wait?.leave()
    this.#wait = null
  }

  /** Shares the probes of a silent host. */
  share(host: SilentHost<Destination>): void {
    if (this.#silent === host) return
    this.unshare()
    this.#silent = host
    host.add(this.#destination)
  }

  unshare(): void {
    const host = this.#silent
    this.#silent = null
    host?.remove(this.#destination)
  }

  /** Ends both. */
  leave(): void {
    this.endWait()
    this.unshare()
  }

  /** True while another destination probes the host for it. */
  get isProbedByOther(): boolean {
    return this.#silent?.isProbedFor(this.#destination) === true
  }

  /** True while its own probe is that of the host. */
  get isProber(): boolean {
    return this.#silent?.isProbedBy(this.#destination) === true
  }

  probing(underWay: boolean): void {
    this.#silent?.probing(this.#destination, underWay)
  }
}
