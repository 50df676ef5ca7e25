/**
 * Address ranges to which no DNS record may direct mail: this machine, private networks, link-local addresses (which include the
 * metadata services of clouds), multicast, and IPv6 forms that contain an IPv4 address (RFC 6890, RFC 6052, RFC 4291).
 */
import { BlockList, isIP } from 'node:net'

const IPV4: readonly (readonly [network: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

const IPV6: readonly (readonly [network: string, bits: number])[] = [
  ['::', 96], // unspecified, loopback, IPv4-compatible
  ['64:ff9b:1::', 48], // NAT64 for local use
  ['2002::', 16], // 6to4
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
]

const blocked = new BlockList()
for (const [network, bits] of IPV4) {
  // The rule also covers ::ffff:a.b.c.d, because BlockList applies IPv4 rules to IPv4-mapped addresses.
  blocked.addSubnet(network, bits, 'ipv4')
  blocked.addSubnet(`64:ff9b::${network}`, 96 + bits, 'ipv6')
}
for (const [network, bits] of IPV6) blocked.addSubnet(network, bits, 'ipv6')

/** True when mail may be sent to an address that DNS alone has supplied. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && !blocked.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
