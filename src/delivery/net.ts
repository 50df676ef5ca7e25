/**
 * The Net port: the network as deferd uses it. The daemon has the real one; worlds have theirs in memory.
 */
import type { Socket } from 'node:net'
import type { Duration } from '../mail/clock.ts'

/** Where a connection went or came from. */
export interface Endpoint {
  readonly address: string
  readonly port: number
}

export interface DialOptions extends Endpoint {
  /** The address to bind to; the system chooses when absent. */
  readonly localAddress?: string | undefined
  readonly timeout: Duration
}

export interface MxRecord {
  readonly preference: number
  /** Empty for a null MX (RFC 7505). */
  readonly exchange: string
}

/** The outcome of a look-up: records, none, or a failure with its kind. */
export type Lookup<T> =
  | { readonly kind: 'found'; readonly records: readonly T[] }
  /** NXDOMAIN or no record of this type. */
  | { readonly kind: 'none'; readonly nxdomain: boolean }
  /** `soft`: SERVFAIL, timeout, broken reply; `hard`: REFUSED, FORMERR, NOTIMP. */
  | { readonly kind: 'failed'; readonly soft: boolean; readonly reason: string }

export interface Net {
  /** Opens a connection to an address (never a name). Rejects with the system's error, whose `code` says what happened. */
  dial(options: DialOptions): Promise<Socket>
  lookupMx(domain: string): Promise<Lookup<MxRecord>>
  lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>>
  /** The names an address claims (PTR); a network that knows none may leave it out. */
  lookupNames?(address: string): Promise<Lookup<string>>
  /** The addresses of this machine, for telling that a mail exchanger is ourselves; none when absent. */
  ownAddresses?(): readonly string[]
  /** Calls `accept` with each connection that comes in. Resolves when the port is open; rejects with the system's error. */
  listen(at: Endpoint, accept: (socket: Socket) => void): Promise<Listener>
}

export interface Listener extends Endpoint {
  /** Stops listening; connections already made live on. */
  close(): Promise<void>
}
