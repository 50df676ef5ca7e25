/**
 * Is a host ourselves? It is when we listen there: on that very address, or on all addresses of this machine and the
 * address is one of them. Another mail system on this machine, at a port that is not ours, is somebody else.
 */
import type { Endpoint } from './net.ts'
import { parseNextHop } from './next-hop.ts'

const ANY = new Set(['0.0.0.0', '::', '*'])

export function isOwnAddress({ address, port }: Endpoint, listening: readonly string[], own: readonly string[]): boolean {
  return listening.some((text) => {
    const at = parseNextHop(text, { port: 25, origin: 'recipient', mx: false })
    if (at === undefined || at.port !== port) return false
    return at.host === address || (ANY.has(at.host) && own.includes(address))
  })
}
