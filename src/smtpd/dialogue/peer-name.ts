/**
 * Looks up the verified name of a client: its name in /etc/hosts or its PTR name, if that name resolves to the client's address, else
 * `unknown` (Postfix smtpd_peer).
 */
import { isIPv6 } from 'node:net'
import type { Lookup, Net } from '../../system/net.ts'
import { SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'

export const UNKNOWN = 'unknown'

/** Time limit of both lookups. The greeting waits for them. */
const TIMEOUT: Duration = 5 * SECOND

/** Form of a name that may appear in log lines and Received fields. Underscores are included, because they occur in practice. */
const NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/

const recordsOf = (lookup: Lookup<string>): readonly string[] => (lookup.kind === 'found' ? lookup.records : [])

export function peerName(address: string, net: Net, clock: Clock): Promise<string> {
  const lookedUp = new AbortController()
  const timedOut = sleep(clock, TIMEOUT, lookedUp.signal).then(() => UNKNOWN)
  return Promise.race([verifiedName(address, net), timedOut]).finally(() => lookedUp.abort())
}

async function verifiedName(address: string, net: Net): Promise<string> {
  const [claimed] = recordsOf(await net.lookupNames(address))
  const name = claimed?.toLowerCase().replace(/\.$/, '') ?? ''
  if (!NAME.test(name)) return UNKNOWN
  const answer = await net.lookupAddresses(name, isIPv6(address) ? 6 : 4)
  // A name of /etc/hosts need not be in DNS. A failure of DNS ends the look-up: getaddrinfo(3) would keep a thread busy with it.
  const addresses = answer.kind === 'none' ? await net.lookupHost(name) : answer
  return recordsOf(addresses).includes(address) ? name : UNKNOWN
}
