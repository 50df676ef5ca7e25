/** Sends each DNS query once, so that all parts of a check use the same answers, and notes the local addresses of its connections. */
import type { Socket } from 'node:net'
import { ForwardingNet, type DialOptions, type Lookup, type MxRecord, type SecureLookup, type SecureRecords } from '../system/net.ts'

export class RememberingNet extends ForwardingNet {
  readonly #answers = new Map<string, Promise<unknown>>()
  /** Local addresses of the connections, in the order of first use. */
  readonly localAddresses = new Set<string>()

  override async dial(options: DialOptions): Promise<Socket> {
    const socket = await this.net.dial(options)
    if (socket.localAddress !== undefined) this.localAddresses.add(socket.localAddress)
    return socket
  }

  override lookupMx(domain: string): Promise<Lookup<MxRecord>> {
    return this.#once(`MX ${domain}`, () => this.net.lookupMx(domain))
  }

  override lookupAddresses(host: string, family: 4 | 6): Promise<Lookup<string>> {
    return this.#once(`${family} ${host}`, () => this.net.lookupAddresses(host, family))
  }

  override lookupHost(host: string): Promise<Lookup<string>> {
    return this.#once(`host ${host}`, () => this.net.lookupHost(host))
  }

  override lookupTxt(name: string): Promise<Lookup<string>> {
    return this.#once(`TXT ${name}`, () => this.net.lookupTxt(name))
  }

  override lookupSecure<T extends keyof SecureRecords>(name: string, type: T): Promise<SecureLookup<SecureRecords[T]>> {
    return this.#once(`secure ${type} ${name}`, () => this.net.lookupSecure(name, type))
  }

  override lookupNames(address: string): Promise<Lookup<string>> {
    return this.#once(`names ${address}`, () => this.net.lookupNames(address))
  }

  #once<T>(question: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(question)
    if (known !== undefined) return known as Promise<T>
    const answer = ask()
    this.#answers.set(question, answer)
    return answer
  }
}
