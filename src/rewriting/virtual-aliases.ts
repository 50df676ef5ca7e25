/** Expands recipients by virtual_alias_maps (Postfix virtual(5), cleanup_map1n). */
import type { Config } from '../config/options.ts'
import type { AddressMap } from './address-map.ts'
import { LookupFailed } from './lookup-table.ts'

export type AliasLimits = Pick<
  Config,
  'virtual_alias_expansion_limit' | 'virtual_alias_recursion_limit' | 'virtual_alias_address_length_limit'
>

/** An alias that exceeds a limit, mostly a loop. */
export class ExpansionFailed extends LookupFailed {
  override readonly name = 'ExpansionFailed'
}

/**
 * The addresses of an alias, found by lookups of each address until none has a match or it gives the address itself. The address
 * alone when it is no alias. `valid` returns the form of an address in envelopes. Throws LookupFailed, for a limit ExpansionFailed.
 */
export function expandAlias(address: string, map: AddressMap, rules: AliasRules): readonly string[] {
  const addresses = [address]
  const complete = new Set<string>()
  for (let at = 0; at < addresses.length; at++) {
    if (addresses.length > rules.limits.virtual_alias_expansion_limit) throw tooMany(address, map.name, 'virtual_alias_expansion_limit')
    expandOne(addresses, at, { map, rules, complete })
  }
  return addresses
}

export interface AliasRules {
  readonly limits: AliasLimits
  readonly valid: (result: string, original: string) => string
}

interface Expansion {
  readonly map: AddressMap
  readonly rules: AliasRules
  /** Addresses, in lower case, that are among their own results and are not looked up again. */
  readonly complete: Set<string>
}

/** Replaces one address of the list until it has no match. Further addresses of an alias are added to the list. */
function expandOne(addresses: string[], at: number, { map, rules, complete }: Expansion): void {
  for (let count = 0; ; count++) {
    const current = addresses[at] ?? ''
    if (complete.has(current.toLowerCase())) return
    if (count >= rules.limits.virtual_alias_recursion_limit) throw tooMany(current, map.name, 'virtual_alias_recursion_limit')
    const [first, ...others] = resultsOf(current, map, rules) ?? []
    if (first === undefined) return
    addresses[at] = first
    addresses.push(...others)
    if ([first, ...others].some((one) => one.toLowerCase() === current.toLowerCase())) complete.add(current.toLowerCase())
  }
}

function resultsOf(address: string, map: AddressMap, { limits, valid }: AliasRules): readonly string[] | null {
  const results = map.all(address)
  const limit = limits.virtual_alias_address_length_limit
  if (results?.some((result) => Buffer.byteLength(result) > limit) === true) {
    throw tooMany(address, map.name, 'virtual_alias_address_length_limit')
  }
  return results?.map((result) => valid(result, address)) ?? null
}

const tooMany = (address: string, name: string, limit: keyof AliasLimits): ExpansionFailed =>
  new ExpansionFailed(`${name}: the expansion of ${address} exceeds ${limit}; look for a loop in the table`)
