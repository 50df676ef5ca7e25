/**
 * The Net port in memory: names and doors are somebody else's decision (the far side's, or a table in a test), the
 * connections are pairs of MemorySockets. Nothing takes time here unless the decision says so, and then it is the
 * Clock's time.
 */
import type { Socket } from 'node:net'
import { SECOND, sleep, type Clock, type Duration } from '../mail/clock.ts'
import type { DialOptions, Endpoint, Listener, Lookup, MxRecord, Net } from '../delivery/net.ts'
import type { Busy } from './idle.ts'
import { MemorySocket, systemError, type Wire } from './memory-socket.ts'

/** What becomes of an attempt to connect. */
export type Door =
  | { readonly kind: 'open'; readonly accept: (socket: Socket) => void; readonly after?: Duration | undefined }
  /** Nobody answers: the dialler's own timeout ends it. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'closed'; readonly code: 'ECONNREFUSED' | 'EHOSTUNREACH' | 'ENETUNREACH'; readonly after?: Duration | undefined }

/** Everything beyond our own machine: who is where, and who opens. Answers may take their time on the Clock. */
export interface Outside {
  lookupMx(domain: string): Lookup<MxRecord> | Promise<Lookup<MxRecord>>
  lookupAddresses(host: string, family: 4 | 6): Lookup<string> | Promise<Lookup<string>>
  door(to: Endpoint, from: Endpoint): Door
}

const FIRST_CLIENT_PORT = 49_152
const LAST_PORT = 65_535
/** How long a client of a test waits for a connection. */
const PATIENCE: Duration = 30 * SECOND

const keyOf = (at: Endpoint): string => `${at.address} ${at.port}`

export class MemoryNet implements Net, Busy {
  readonly #clock: Clock
  readonly #outside: Outside
  readonly #wire: Wire
  readonly #listeners = new Map<string, (socket: Socket) => void>()
  #nextPort = FIRST_CLIENT_PORT
  /** Nothing in here waits for anything but the clock. */
  readonly inFlight = 0
  activity = 0

  constructor(clock: Clock, outside: Outside) {
    this.#clock = clock
    this.#outside = outside
    this.#wire = { clock, stir: () => this.activity++ }
  }

  async dial(options: DialOptions): Promise<Socket> {
    const to: Endpoint = { address: options.address, port: options.port }
    const from: Endpoint = { address: options.localAddress ?? '127.0.0.1', port: this.#clientPort() }
    return this.#connect(to, from, options.timeout)
  }

  /** A connection from any address, as if from another machine: what a test's own client uses. */
  dialFrom(from: string, to: Endpoint): Promise<Socket> {
    return this.#connect(to, { address: from, port: this.#clientPort() }, PATIENCE)
  }

  lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    return this.#ask(() => this.#outside.lookupMx(domain))
  }

  lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    return this.#ask(() => this.#outside.lookupAddresses(host, family))
  }

  async listen(at: Endpoint, accept: (socket: Socket) => void): Promise<Listener> {
    const place: Endpoint = { address: at.address, port: at.port === 0 ? this.#freePort(at.address) : at.port }
    const key = keyOf(place)
    if (this.#listeners.has(key)) throw systemError('EADDRINUSE', 'listen', place)
    this.#listeners.set(key, accept)
    return {
      ...place,
      close: async () => {
        this.#listeners.delete(key)
      },
    }
  }

  async #connect(to: Endpoint, from: Endpoint, timeout: Duration): Promise<Socket> {
    this.#wire.stir()
    const door = this.#doorAt(to, from)
    if (door.kind === 'silent') return this.#timeOut(to, timeout)
    const delay = door.after ?? 0
    if (delay >= timeout) return this.#timeOut(to, timeout)
    if (delay > 0) await sleep(this.#clock, delay)
    if (door.kind === 'closed') throw systemError(door.code, 'connect', to)
    const { client, server } = MemorySocket.pair(this.#wire, from, to)
    door.accept(server.asSocket)
    return client.asSocket
  }

  #doorAt(to: Endpoint, from: Endpoint): Door {
    const accept = this.#listeners.get(keyOf(to)) ?? this.#listeners.get(keyOf({ address: anyOf(to.address), port: to.port }))
    return accept === undefined ? this.#outside.door(to, from) : { kind: 'open', accept }
  }

  async #timeOut(to: Endpoint, timeout: Duration): Promise<never> {
    await sleep(this.#clock, timeout)
    throw systemError('ETIMEDOUT', 'connect', to)
  }

  async #ask<T>(question: () => T | Promise<T>): Promise<T> {
    this.#wire.stir()
    return question()
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

/** What a listener on every address of the family is bound to. */
const anyOf = (address: string): string => (address.includes(':') ? '::' : '0.0.0.0')
