/** The name of a client: the one it claims in DNS, if that name leads back to it; everybody else is `unknown` (postfix smtpd_peer). */
import { isIPv6 } from 'node:net'
import type { Lookup, Net } from '../delivery/net.ts'
import { SECOND, sleep, type Clock, type Duration } from '../mail/clock.ts'

export const UNKNOWN = 'unknown'

/** The greeting waits for the name, so the name must not be waited for long. */
const PATIENCE: Duration = 5 * SECOND

/** Names end up in log lines and trace headers: letters, digits, hyphens, dots, and the underscores that exist. */
const NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/

const recordsOf = (lookup: Lookup<string>): readonly string[] => (lookup.kind === 'found' ? lookup.records : [])

export function peerName(address: string, net: Net, clock: Clock): Promise<string> {
  const tooLate = new AbortController()
  const late = sleep(clock, PATIENCE, tooLate.signal).then(() => UNKNOWN)
  return Promise.race([verifiedName(address, net), late]).finally(() => tooLate.abort())
}

async function verifiedName(address: string, net: Net): Promise<string> {
  const [claimed] = net.lookupNames === undefined ? [] : recordsOf(await net.lookupNames(address))
  const name = claimed?.toLowerCase().replace(/\.$/, '') ?? ''
  if (!NAME.test(name)) return UNKNOWN
  const addresses = recordsOf(await net.lookupAddresses(name, isIPv6(address) ? 6 : 4))
  return addresses.includes(address) ? name : UNKNOWN
}
