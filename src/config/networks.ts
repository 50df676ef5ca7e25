/** Lists of networks as operators write them: `127.0.0.0/8`, `[::1]/128`, `192.0.2.7`, `[2001:db8::]/32`. */
import { BlockList, isIP } from 'node:net'

export class Networks {
  readonly #list = new BlockList()

  /** Throws a sentence for the operator when an entry is no network; `parameter` is where it was given. */
  constructor(entries: readonly string[], parameter: string) {
    for (const entry of entries) this.#add(entry, parameter)
  }

  has(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  #add(entry: string, parameter: string): void {
    const [, bracketed, plain, bits] = /^(?:\[([^\]]+)\]|([^/[\]]+))(?:\/(\d{1,3}))?$/.exec(entry) ?? []
    const address = bracketed ?? plain ?? ''
    const family = isIP(address)
    const width = family === 6 ? 128 : 32
    const prefix = bits === undefined ? width : Number(bits)
    if (family === 0 || prefix > width)
      throw new Error(`${parameter}: expected a network such as 192.0.2.0/24 or [2001:db8::]/32, got ${entry}`)
    this.#list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The address of a peer without the prefix that a socket for both families puts before IPv4 addresses, and without a zone. */
export const peerAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
