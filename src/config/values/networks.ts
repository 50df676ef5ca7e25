/**
 * Lists of networks in Postfix's syntax: `127.0.0.0/8`, `[::1]/128`, `192.0.2.7`, `[2001:db8::]/32`. The first entry that matches
 * decides: `!192.0.2.7` excludes. `cidr:/path` is a table of cidr_table(5), and `/path` a file with entries in this syntax.
 */
import { readFileSync } from 'node:fs'
import { BlockList, SocketAddress, isIP, isIPv6 } from 'node:net'
import { errorMessage } from '../../system/caught-error.ts'

/** Successive entries that all include, or all exclude. */
interface Run {
  readonly includes: boolean
  readonly list: BlockList
}

export class Networks {
  readonly #runs: Run[] = []

  /** Throws an Error that names `parameter` when an entry is not a network. */
  constructor(entries: readonly string[], parameter: string) {
    for (const entry of entries) this.#add(entry, parameter)
  }

  has(address: string): boolean {
    const family = isIP(address)
    if (family === 0) return false
    return this.#runs.find(({ list }) => list.check(address, family === 6 ? 'ipv6' : 'ipv4'))?.includes ?? false
  }

  #add(entry: string, parameter: string): void {
    const [, not = '', rest = ''] = /^(!*)(.*)$/s.exec(entry) ?? []
    const includes = not.length % 2 === 0
    const table = /^cidr:(\/.*)$/.exec(rest)?.[1]
    if (table !== undefined)
      this.#addLines(
        readLines(table, parameter).map((line) => line.split(/\s+/, 1)[0] ?? ''),
        includes,
        parameter,
      )
    else if (rest.startsWith('/'))
      this.#addLines(
        readLines(rest, parameter).flatMap((line) => line.split(/[,\s]+/)),
        includes,
        parameter,
      )
    else this.#addNetwork(rest, includes, parameter)
  }

  #addLines(entries: readonly string[], includes: boolean, parameter: string): void {
    for (const entry of entries) {
      const excludes = entry.startsWith('!')
      this.#addNetwork(excludes ? entry.slice(1) : entry, includes !== excludes, parameter)
    }
  }

  #addNetwork(entry: string, includes: boolean, parameter: string): void {
    const [, bracketed, plain, bits] = /^(?:\[([^\]]+)\]|([^/[\]]+))(?:\/(\d{1,3}))?$/.exec(entry) ?? []
    const address = bracketed ?? plain ?? ''
    const family = isIP(address)
    const width = family === 6 ? 128 : 32
    const prefix = bits === undefined ? width : Number(bits)
    if (family === 0 || prefix > width)
      throw new Error(`${parameter}: expected a network such as 192.0.2.0/24 or [2001:db8::]/32, got ${entry}`)
    let run = this.#runs.at(-1)
    if (run?.includes !== includes) {
      run = { includes, list: new BlockList() }
      this.#runs.push(run)
    }
    run.list.addSubnet(address, prefix, family === 6 ? 'ipv6' : 'ipv4')
  }
}

function readLines(path: string, parameter: string): readonly string[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    return lines.map((line) => line.replace(/^\s*#.*/, '').trim()).filter((line) => line !== '')
  } catch (cause) {
    throw new Error(`${parameter}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

/** Address of a peer without the `::ffff:` prefix that a dual-stack socket adds to IPv4 addresses, and without a zone. */
export const peerAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')

/** Normal form of an address, without the prefix of an IPv4-mapped address and without a zone. */
export function canonicalAddress(address: string): string {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  return peerAddress(new SocketAddress({ address: address.replace(/%.*$/, ''), family }).address)
}
