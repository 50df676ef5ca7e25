/** Expands recipients by virtual_alias_maps, and those of local domains by alias_maps (Postfix local(8)). */
import type { AddressMap } from './address-map.ts'
import { expandAlias, ExpansionFailed, type AliasRules } from './virtual-aliases.ts'

interface ExpansionRules extends AliasRules {
  readonly virtual: AddressMap | null
  readonly local: AddressMap | null
  /** The canonical form of a recipient address. */
  readonly canonical: (address: string) => string
  /** True when the address went through virtual_alias_maps before. Those of local aliases did not. */
  readonly isExpanded: boolean
}

export interface ExpandedRecipient {
  readonly addresses: readonly string[]
  /** Local aliases with an address that led to them. */
  readonly loops: readonly string[]
}

/**
 * The addresses of a canonical recipient address. The addresses of a local alias are rewritten as recipients, and may be aliases
 * themselves. An alias that names itself keeps its own address. Throws LookupFailed.
 */
export function expandRecipient(address: string, rules: ExpansionRules): ExpandedRecipient {
  const search = new Search(rules)
  search.visit(address, [])
  return { addresses: search.addresses, loops: search.loops }
}

class Search {
  readonly addresses: string[] = []
  readonly loops: string[] = []
  readonly #rules: ExpansionRules
  readonly #done = new Set<string>()

  constructor(rules: ExpansionRules) {
    this.#rules = rules
  }

  /** `path` has the local aliases that led to the address. */
  visit(address: string, path: readonly string[]): void {
    const { virtual, local, isExpanded } = this.#rules
    const expanded = virtual === null || (isExpanded && path.length === 0) ? [address] : expandAlias(address, virtual, this.#rules)
    for (const one of expanded) {
      if (local === null) this.#add(one)
      else this.#expandLocal(one, local, path)
    }
  }

  #expandLocal(address: string, local: AddressMap, path: readonly string[]): void {
    const key = address.toLowerCase()
    if (path.some((one) => one.toLowerCase() === key)) return void this.loops.push(path.at(-1) ?? address)
    const results = local.all(address)
    if (results === null) return this.#add(address)
    if (this.#done.has(key)) return
    const { limits, canonical, valid } = this.#rules
    const deeper = [...path, address]
    if (deeper.length > limits.virtual_alias_recursion_limit) return void this.loops.push(address)
    for (const result of results) {
      const one = canonical(valid(result, address))
      if (one.toLowerCase() === key) this.#add(address)
      else this.visit(one, deeper)
    }
    this.#done.add(key)
  }

  #add(address: string): void {
    this.addresses.push(address)
    const { limits } = this.#rules
    if (this.addresses.length > limits.virtual_alias_expansion_limit) {
      throw new ExpansionFailed('the aliases of a recipient exceed virtual_alias_expansion_limit; look for a loop in the tables')
    }
  }
}
