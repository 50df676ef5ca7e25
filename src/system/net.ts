/** The Net port: connections, listeners and DNS lookups. The daemon uses SystemNet, the test kit MemoryNet. */
import type { Socket } from 'node:net'
import type { Duration } from './clock.ts'

/** An IP address without brackets, and a TCP port from 1 to 65,535; 0 where the system chooses. */
export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** Arguments of `dial`: the remote address and port. */
export interface DialOptions extends Endpoint {
  /** Local address to bind to; chosen by the system when absent. */
  readonly localAddress?: string | undefined
  readonly timeout: Duration
}

/** Arguments of `listen`: the local address and port. */
export interface ListenOptions extends Endpoint {
  /** True for `::` without the IPv4 addresses that it otherwise stands for too (RFC 3493 §5.3). */
  readonly ipv6Only?: boolean | undefined
}

/** An MX record (RFC 5321 §5.1). */
export interface MxRecord {
  readonly preference: number
  /** Empty for a null MX (RFC 7505). */
  readonly exchange: string
}

/** Outcome of a lookup: records, no records, or a failure with its kind. */
export type Lookup<T> =
  | { readonly kind: 'found'; readonly records: readonly T[] }
  /** NXDOMAIN, or the name has no record of this type. */
  | { readonly kind: 'none'; readonly nxdomain: boolean }
  /** `soft` is true for a failure that may be temporary, such as SERVFAIL, a timeout or a broken reply. */
  | { readonly kind: 'failed'; readonly soft: boolean; readonly reason: string }

/** A TLSA record (RFC 6698 §2.1). */
export interface TlsaRecord {
  readonly usage: number
  readonly selector: number
  readonly matchingType: number
  readonly data: Uint8Array
}

/** Types of records that can be looked up with their authenticity. */
export interface SecureRecords {
  readonly MX: MxRecord
  readonly A: string
  readonly AAAA: string
  readonly CNAME: string
  readonly TLSA: TlsaRecord
}

/** Outcome of a look-up whose answer tells whether a validating resolver found it authentic (DNSSEC). */
export type SecureLookup<T> =
  | {
      readonly kind: 'found'
      readonly records: readonly T[]
      readonly secure: boolean
      /** Name of the records: the end of the chain of CNAME records. */
      readonly name: string
    }
  | { readonly kind: 'none'; readonly nxdomain: boolean; readonly secure: boolean }
  | Extract<Lookup<T>, { readonly kind: 'failed' }>

/** The outcome of a look-up that does not tell authenticity. */
export function asInsecure<T>(answer: Lookup<T>, name: string): SecureLookup<T> {
  switch (answer.kind) {
    case 'found':
      return { ...answer, secure: false, name }
    case 'none':
      return { ...answer, secure: false }
    case 'failed':
      return answer
  }
}

/** All methods are required, so that a wrapper that lacks one does not compile. */
export interface Net {
  /** Connects to an IP address, or to a Unix socket when `address` is an absolute path. Rejects with the system's error and its `code`. */
  dial(options: DialOptions): Promise<Socket>
  lookupMx(domain: string): Promise<Lookup<MxRecord>>
  lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>>
  /**
   * Looks up the addresses of a host, of both families, as the programs of this machine do: by getaddrinfo(3), with /etc/hosts. The
   * reason of a failure is its code, such as EAI_AGAIN.
   */
  lookupHost(host: string): Promise<Lookup<string>>
  /** Looks up records with their authenticity. A bogus answer is a soft failure. */
  lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>>
  /** Looks up TXT records, each with its strings joined. */
  lookupTxt(name: string): Promise<Lookup<string>>
  /** Looks up the names of an address in /etc/hosts, else its PTR names, without verifying them. */
  lookupNames(address: string): Promise<Lookup<string>>
  /** Addresses of this machine. A mail exchanger with one of them may be this relay. */
  ownAddresses(): readonly string[]
  /** Opens a port and calls `accept` with each new connection. Resolves when the port is open; rejects with the system's error. */
  listen(at: ListenOptions, accept: (socket: Socket) => void): Promise<Listener>
}

/** An open port, with the address and port that the system assigned. */
export interface Listener extends Endpoint {
  /** Stops listening; open connections stay open. */
  close(): Promise<void>
}

/** Forwards every call to another Net. Base class of wrappers that replace some methods. */
export class ForwardingNet implements Net {
  protected readonly net: Net

  constructor(net: Net) {
    this.net = net
  }

  dial(options: DialOptions): Promise<Socket> {
    return this.net.dial(options)
  }

  lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    return this.net.lookupMx(domain)
  }

  lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    return this.net.lookupAddresses(host, family)
  }

  lookupHost(host: string): Promise<Lookup<string>> {
    return this.net.lookupHost(host)
  }

  lookupTxt(name: string): Promise<Lookup<string>> {
    return this.net.lookupTxt(name)
  }

  lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>> {
    return this.net.lookupSecure(name, type)
  }

  lookupNames(address: string): Promise<Lookup<string>> {
    return this.net.lookupNames(address)
  }

  ownAddresses(): readonly string[] {
    return this.net.ownAddresses()
  }

  listen(at: ListenOptions, accept: (socket: Socket) => void): Promise<Listener> {
    return this.net.listen(at, accept)
  }
}
