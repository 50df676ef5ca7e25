/**
 * Orders hosts by preference, at random among equal ones. Where the address limit cuts the list, IPv4 and IPv6 addresses both stay.
 * This relay is removed, with all hosts of its preference or a worse one (RFC 5321 §5.1, Postfix smtp_addr.c). Pure; random numbers
 * are an argument.
 */
import { isIPv6 } from 'node:net'

/** Authenticity of the names of a host (DNSSEC). */
export interface HostDns {
  /** False when the host comes from an MX record that is not authentic; true also without MX records. */
  readonly mxSecure: boolean
  /** True when the address is authentic. */
  readonly secure: boolean
  /** Name at the end of the CNAME records of the host; its own name without them. */
  readonly canonical: string
}

/** One address of one host. */
export interface Host {
  /** Host name for reasons and the log; the address when there is no name. */
  readonly name: string
  readonly address: string
  readonly port: number
  readonly preference: number
  /** True when the host has the best preference in its list. */
  readonly best: boolean
  /** Authenticity of the host's names, with smtp_dns_support_level = dnssec; absent for addresses without a name. */
  readonly dns?: HostDns | undefined
}

export interface Ordering {
  /** smtp_randomize_addresses */
  readonly randomize: boolean
  /** smtp_address_preference */
  readonly family: 'any' | 'ipv4' | 'ipv6'
  /** smtp_balance_inet_protocols */
  readonly balance: boolean
  /** smtp_mx_address_limit; 0 for no limit. */
  readonly limit: number
  /** Returns random numbers in [0, 1). */
  readonly draw: () => number
}

/** Shuffles items (Fisher–Yates). */
export function shuffled<T>(items: readonly T[], draw: () => number): T[] {
  const result = [...items]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(draw() * (i + 1))
    const [a, b] = [result[i], result[j]]
    if (a !== undefined && b !== undefined) [result[i], result[j]] = [b, a]
  }
  return result
}

/** Sorts by preference, best first. Equal items are shuffled with `randomize`, and keep their order otherwise. */
export function byPreference<T extends { readonly preference: number }>(items: readonly T[], { randomize, draw }: Ordering): T[] {
  return (randomize ? shuffled(items, draw) : [...items]).toSorted((a, b) => a.preference - b.preference)
}

const familyOf = (host: Host): 'ipv4' | 'ipv6' => (isIPv6(host.address) ? 'ipv6' : 'ipv4')

/** Truncates the list to the limit without dropping a whole address family (smtp_balance_inet_protocols). */
function balanced(hosts: readonly Host[], limit: number): Host[] {
  const count = { ipv4: hosts.filter((host) => familyOf(host) === 'ipv4').length, ipv6: 0 }
  count.ipv6 = hosts.length - count.ipv4
  const half = Math.floor(limit / 2)
  const [first] = hosts
  if (first === undefined || hosts.length <= limit || count.ipv4 === 0 || count.ipv6 === 0) return [...hosts]
  const other = familyOf(first) === 'ipv4' ? 'ipv6' : 'ipv4'
  // With an odd limit, the family of the first address gets the extra place. Places that one family does not need are used for
  // the other.
  const others = count[familyOf(first)] <= half ? limit - count[familyOf(first)] : Math.min(count[other], half)
  const left = { ipv4: limit - others, ipv6: limit - others, [other]: others }
  return hosts.filter((host) => left[familyOf(host)]-- > 0)
}

/** The addresses for one attempt, in the order in which they are tried. */
export function inOrder(hosts: readonly Host[], ordering: Ordering): Host[] {
  const tie = (host: Host) => (ordering.family === 'any' || familyOf(host) === ordering.family ? 0 : 1)
  const sorted = byPreference(hosts, ordering).toSorted((a, b) => a.preference - b.preference || tie(a) - tie(b))
  if (ordering.limit === 0) return sorted
  return (ordering.balance ? balanced(sorted, ordering.limit) : sorted).slice(0, ordering.limit)
}

/** The hosts of better preference than this relay. Mail sent to any other host could loop (RFC 5321 §5.1). */
export function betterThanRelay(
  hosts: readonly Host[],
  isRelay: (host: Host) => boolean,
): { readonly hosts: Host[]; readonly listed: boolean } {
  const own = hosts.filter(isRelay).map((host) => host.preference)
  if (own.length === 0) return { hosts: [...hosts], listed: false }
  const limit = Math.min(...own)
  return { hosts: hosts.filter((host) => host.preference < limit), listed: true }
}
