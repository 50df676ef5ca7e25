/** Whether a domain can receive replies (Postfix reject_unknown_sender_domain): it has an MX record or an address. */
import type { Lookup, Net } from '../system/net.ts'

/** `unsure`: a look-up failed for now. `null-mx`: the domain states that it takes no mail (RFC 7505). */
type DomainState = 'known' | 'unknown' | 'null-mx' | 'unsure'

export async function stateOfDomain(domain: string, net: Pick<Net, 'lookupMx' | 'lookupAddresses'>): Promise<DomainState> {
  if (domain.startsWith('[')) return 'known'
  const mx = await net.lookupMx(domain)
  if (mx.kind === 'found') return mx.records.every(({ exchange }) => exchange === '') ? 'null-mx' : 'known'
  if (mx.kind === 'none' && mx.nxdomain) return 'unknown'
  const addresses = await Promise.all([net.lookupAddresses(domain, 4), net.lookupAddresses(domain, 6)])
  const lookups: readonly Lookup<unknown>[] = [mx, ...addresses]
  if (addresses.some(({ kind }) => kind === 'found')) return 'known'
  return lookups.some((lookup) => lookup.kind === 'failed') ? 'unsure' : 'unknown'
}
