/**
 * The order in which hosts are tried: by preference, chance among equals, no address family crowding out the other,
 * nothing at or behind ourselves (RFC 5321 §5.1, postfix smtp_addr). Pure; chance comes in as a function.
 */
import { isIPv6 } from 'node:net'

/** One address of one host. */
export interface Host {
  /** The name as reasons and the log give it; the address itself when there is none. */
  readonly name: string
  readonly address: string
  readonly port: number
  readonly preference: number
  /** Of the best preference in its list. */
  readonly best: boolean
}

export interface Ordering {
  /** smtp_randomize_addresses */
  readonly randomize: boolean
  /** smtp_address_preference */
  readonly family: 'any' | 'ipv4' | 'ipv6'
  /** smtp_balance_inet_protocols */
  readonly balance: boolean
  /** smtp_mx_address_limit; 0 for none. */
  readonly limit: number
  /** Numbers in [0, 1). */
  readonly draw: () => number
}

/** A random order (Fisher–Yates). */
export function shuffled<T>(items: readonly T[], draw: () => number): T[] {
  const result = [...items]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(draw() * (i + 1))
    const [a, b] = [result[i], result[j]]
    if (a !== undefined && b !== undefined) [result[i], result[j]] = [b, a]
  }
  return result
}

/** By preference, best first; among equals chance decides, or else the order in which they came. */
export function byPreference<T extends { readonly preference: number }>(items: readonly T[], { randomize, draw }: Ordering): T[] {
  return (randomize ? shuffled(items, draw) : [...items]).toSorted((a, b) => a.preference - b.preference)
}

const familyOf = (host: Host): 'ipv4' | 'ipv6' => (isIPv6(host.address) ? 'ipv6' : 'ipv4')

/** Cuts the list to the limit without dropping a whole family, when both are there (smtp_balance_inet_protocols). */
function balanced(hosts: readonly Host[], limit: number): Host[] {
  const count = { ipv4: hosts.filter((host) => familyOf(host) === 'ipv4').length, ipv6: 0 }
  count.ipv6 = hosts.length - count.ipv4
  const half = Math.floor(limit / 2)
  const [first] = hosts
  if (first === undefined || hosts.length <= limit || count.ipv4 === 0 || count.ipv6 === 0) return [...hosts]
  const other = familyOf(first) === 'ipv4' ? 'ipv6' : 'ipv4'
  // The odd slot goes to the family of the first address; a family with less than its share leaves the rest to the other.
  const others = count[familyOf(first)] <= half ? limit - count[familyOf(first)] : Math.min(count[other], half)
  const left = { ipv4: limit - others, ipv6: limit - others, [other]: others }
  return hosts.filter((host) => left[familyOf(host)]-- > 0)
}

/** The addresses that one attempt tries, in order. */
export function inOrder(hosts: readonly Host[], ordering: Ordering): Host[] {
  const tie = (host: Host) => (ordering.family === 'any' || familyOf(host) === ordering.family ? 0 : 1)
  const sorted = byPreference(hosts, ordering).toSorted((a, b) => a.preference - b.preference || tie(a) - tie(b))
  if (ordering.limit === 0) return sorted
  return (ordering.balance ? balanced(sorted, ordering.limit) : sorted).slice(0, ordering.limit)
}

/** The hosts better than ourselves: from our own address on, mail would go round in a circle (RFC 5321 §5.1). */
export function beforeOurselves(
  hosts: readonly Host[],
  isOurs: (host: Host) => boolean,
): { readonly hosts: Host[]; readonly listed: boolean } {
  const ours = hosts.filter(isOurs).map((host) => host.preference)
  if (ours.length === 0) return { hosts: [...hosts], listed: false }
  const limit = Math.min(...ours)
  return { hosts: hosts.filter((host) => host.preference < limit), listed: true }
}
