/** Hosts (by address) because of which destinations are dead. The destinations of a host share its probes: one is made for all of them. */

export class SilentHost<Destination> {
  readonly #members = new Set<Destination>()
  readonly #freed: (members: Iterable<Destination>) => void
  readonly #emptied: () => void
  /** The destination whose probe is claimed or in delivery. */
  #prober: Destination | null = null

  constructor(calls: { readonly freed: (members: Iterable<Destination>) => void; readonly emptied: () => void }) {
    this.#freed = calls.freed
    this.#emptied = calls.emptied
  }

  get members(): Iterable<Destination> {
    return this.#members
  }

  add(destination: Destination): void {
    this.#members.add(destination)
  }

  remove(destination: Destination): void {
    this.#members.delete(destination)
    this.probing(destination, false)
    if (this.#members.size === 0) this.#emptied()
  }

  /** True while another destination probes the host. */
  isProbedFor(destination: Destination): boolean {
    return this.#prober !== null && this.#prober !== destination
  }

  isProbedBy(destination: Destination): boolean {
    return this.#prober === destination
  }

  /** Records the begin or the end of a probe. The next one is that of a member which has waited longer. */
  probing(destination: Destination, underWay: boolean): void {
    if (underWay) this.#prober ??= destination
    else if (this.#prober === destination) {
      this.#prober = null
      if (this.#members.delete(destination)) this.#members.add(destination)
      this.#freed(this.#members)
    }
  }
}

export class SilentHosts<Destination> {
  readonly #hosts = new Map<string, SilentHost<Destination>>()
  readonly #freed: (members: Iterable<Destination>) => void

  /** `freed` is called with the destinations of a host when its probe has ended. */
  constructor(freed: (members: Iterable<Destination>) => void) {
    this.#freed = freed
  }

  /** The host at an address, which is created when it is missing. */
  at(address: string): SilentHost<Destination> {
    let host = this.#hosts.get(address)
    if (host === undefined) {
      host = new SilentHost<Destination>({ freed: this.#freed, emptied: () => this.#hosts.delete(address) })
      this.#hosts.set(address, host)
    }
    return host
  }

  /** The destinations that are dead because of an address. */
  membersAt(address: string): readonly Destination[] {
    return [...(this.#hosts.get(address)?.members ?? [])]
  }
}
