/**
 * The Net port in memory. Connections are pairs of MemorySockets. DNS and remote hosts are supplied as RemoteHosts, by the test
 * kit's remote network or by a test; their delays are on the Clock.
 */
import { isIPv6, type Socket } from 'node:net'
import { SECOND, sleep, type Duration, type Timers } from '../../system/clock.ts'
import type {
  DialOptions,
  Endpoint,
  Listener,
  ListenOptions,
  Lookup,
  MxRecord,
  Net,
  SecureLookup,
  SecureRecords,
} from '../../system/net.ts'
import type { Busy } from './time-driver.ts'
import { MemorySocket, systemError, type Network } from './memory-socket.ts'

/** Outcome of an attempt to connect. */
export type DialOutcome =
  | { readonly kind: 'open'; readonly accept: (socket: Socket) => void; readonly after?: Duration | undefined }
  /** The host does not answer, and the caller's timeout ends the attempt. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'closed'; readonly code: 'ECONNREFUSED' | 'EHOSTUNREACH' | 'ENETUNREACH'; readonly after?: Duration | undefined }

/** DNS and hosts outside of this machine. Their promises may take time on the Clock. */
export interface RemoteHosts {
  lookupMx(domain: string): Lookup<MxRecord> | Promise<Lookup<MxRecord>>
  lookupAddresses(host: string, family: 4 | 6): Lookup<string> | Promise<Lookup<string>>
  /** TXT records, each with its strings joined; none when absent. */
  lookupTxt?(name: string): Lookup<string> | Promise<Lookup<string>>
  /** Names of an address (PTR); none when absent. */
  lookupNames?(address: string): Lookup<string> | Promise<Lookup<string>>
  /** Records with their authenticity; none when absent. */
  lookupSecure?<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>>
  /** Addresses of a host in the hosts file of the machine; none when absent. */
  hostsFile?(host: string): readonly string[]
  dial(to: Endpoint, from: Endpoint): DialOutcome
}

interface MemoryListener {
  readonly accept: (socket: Socket) => void
  readonly ipv6Only: boolean
}

const FIRST_CLIENT_PORT = 49_152
const LAST_PORT = 65_535
/** Idle limit of connections from a test's own clients. */
const CLIENT_TIMEOUT: Duration = 30 * SECOND

const keyOf = (at: Endpoint): string => `${at.address} ${at.port}`

export class MemoryNet implements Net, Busy {
  readonly #clock: Timers
  readonly #remote: RemoteHosts
  readonly #network: Network
  readonly #listeners = new Map<string, MemoryListener>()
  #nextPort = FIRST_CLIENT_PORT
  /** Number of calls that wait for something other than the clock: none. */
  readonly inFlight = 0
  activity = 0

  constructor(clock: Timers, remote: RemoteHosts) {
    this.#clock = clock
    this.#remote = remote
    this.#network = { clock, noteActivity: () => this.activity++ }
  }

  async dial(options: DialOptions): Promise<Socket> {
    const to: Endpoint = { address: options.address, port: options.port }
    const from: Endpoint = { address: options.localAddress ?? '127.0.0.1', port: this.#clientPort() }
    return this.#connect(to, from, options.timeout)
  }

  /** Connects from any address, as if from another machine. Used by a test's clients. */
  dialFrom(from: string, to: Endpoint): Promise<Socket> {
    return this.#connect(to, { address: from, port: this.#clientPort() }, CLIENT_TIMEOUT)
  }

  isListening(at: Endpoint): boolean {
    return this.#listenerAt(at) !== undefined
  }

  lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    return this.#lookup(() => this.#remote.lookupMx(domain))
  }

  lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    return this.#lookup(() => this.#remote.lookupAddresses(host, family))
  }

  /** The hosts file of the machine, then DNS. */
  lookupHost(host: string): Promise<Lookup<string>> {
    return this.#lookup(async () => {
      const known = this.#remote.hostsFile?.(host) ?? []
      if (known.length > 0) return { kind: 'found', records: known }
      return asOneAnswer(await Promise.all([this.#remote.lookupAddresses(host, 4), this.#remote.lookupAddresses(host, 6)]))
    })
  }

  lookupTxt(name: string): Promise<Lookup<string>> {
    return this.#lookup(() => this.#remote.lookupTxt?.(name) ?? { kind: 'none', nxdomain: true })
  }

  lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>> {
    return this.#lookup(() => this.#remote.lookupSecure?.(name, type) ?? { kind: 'none', nxdomain: true, secure: false })
  }

  lookupNames(address: string): Promise<Lookup<string>> {
    return this.#lookup(() => this.#remote.lookupNames?.(address) ?? { kind: 'none', nxdomain: true })
  }

  /** No host of this network is the machine of the relay. */
  ownAddresses(): readonly string[] {
    return []
  }

  async listen(at: ListenOptions, accept: (socket: Socket) => void): Promise<Listener> {
    const place: Endpoint = { address: at.address, port: at.port === 0 ? this.#freePort(at.address) : at.port }
    const key = keyOf(place)
    if (this.#listeners.has(key)) throw systemError('EADDRINUSE', 'listen', place)
    this.#listeners.set(key, { accept, ipv6Only: at.ipv6Only === true })
    return {
      ...place,
      close: async () => {
        this.#listeners.delete(key)
      },
    }
  }

  async #connect(to: Endpoint, from: Endpoint, timeout: Duration): Promise<Socket> {
    this.#network.noteActivity()
    const outcome = this.#outcomeOf(to, from)
    if (outcome.kind === 'silent') return this.#timeOut(to, timeout)
    const delay = outcome.after ?? 0
    if (delay >= timeout) return this.#timeOut(to, timeout)
    if (delay > 0) await sleep(this.#clock, delay)
    if (outcome.kind === 'closed') throw systemError(outcome.code, 'connect', to)
    const { client, server } = MemorySocket.pair(this.#network, from, to)
    outcome.accept(server.asSocket)
    return client.asSocket
  }

  #outcomeOf(to: Endpoint, from: Endpoint): DialOutcome {
    const listener = this.#listenerAt(to)
    return listener === undefined ? this.#remote.dial(to, from) : { kind: 'open', accept: listener.accept }
  }

  /** The listener on the address, or on all addresses. `::` stands for all addresses of both families unless the listener is IPv6 only. */
  #listenerAt({ address, port }: Endpoint): MemoryListener | undefined {
    const own = this.#listeners.get(keyOf({ address, port })) ?? this.#listeners.get(keyOf({ address: anyOf(address), port }))
    if (own !== undefined || isIPv6(address)) return own
    const both = this.#listeners.get(keyOf({ address: '::', port }))
    return both?.ipv6Only === false ? both : undefined
  }

  async #timeOut(to: Endpoint, timeout: Duration): Promise<never> {
    await sleep(this.#clock, timeout)
    throw systemError('ETIMEDOUT', 'connect', to)
  }

  async #lookup<T>(query: () => T | Promise<T>): Promise<T> {
    this.#network.noteActivity()
    return query()
  }

  #clientPort(): number {
    const port = this.#nextPort
    this.#nextPort = port === LAST_PORT ? FIRST_CLIENT_PORT : port + 1
    return port
  }

  #freePort(address: string): number {
    let port = this.#clientPort()
    while (this.#listeners.has(keyOf({ address, port }))) port = this.#clientPort()
    return port
  }
}

/** The answers of both families as getaddrinfo(3) reports them. */
function asOneAnswer(answers: readonly Lookup<string>[]): Lookup<string> {
  const records = answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
  if (records.length > 0) return { kind: 'found', records }
  const failures = answers.filter((answer) => answer.kind === 'failed')
  if (failures.length === 0) return { kind: 'none', nxdomain: true }
  const soft = failures.some((answer) => answer.soft)
  return { kind: 'failed', soft, reason: soft ? 'EAI_AGAIN' : 'EAI_FAIL' }
}

/** The address of a listener that accepts on all addresses of the family. */
const anyOf = (address: string): string => (isIPv6(address) ? '::' : '0.0.0.0')
