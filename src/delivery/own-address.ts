/**
 * Is a host ourselves? It is when we listen there: on that very address, or on all addresses of this machine and the
 * address is one of them. Another mail system on this machine, at a port that is not ours, is somebody else.
 */
import type { Endpoint } from './net.ts'
import { parseNextHop } from './next-hop.ts'

const ANY = new Set(['0.0.0.0', '::', '*'])

/** A test for hosts. `listening` as in smtpd_listen; `own` is only called when we listen on all addresses of that port. */
export function ourselves(listening: readonly string[], own: () => readonly string[]): (host: Endpoint) => boolean {
  const ours = listening.flatMap((text) => parseNextHop(text, { port: 25, origin: 'recipient', mx: false }) ?? [])
  return ({ address, port }) => {
    const here = ours.filter((at) => at.port === port)
    return here.some((at) => at.host === address) || (here.some((at) => ANY.has(at.host)) && own().includes(address))
  }
}
