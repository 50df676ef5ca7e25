/** Looks up addresses in the tables of a parameter, in the order of Postfix (canonical(5), virtual(5), mail_addr_find). */
import { addressesIn, type ListedAddress } from '../mail/address-list.ts'
import { quoteLocalPart, unquoteLocalPart, withNeededQuotes } from '../mail/address.ts'
import { partsOf, type ExtensionRules } from './address-keys.ts'
import { LookupFailed, type LookupTable } from './lookup-table.ts'

/** Facts of the relay that lookups use. */
export interface AddressRules extends ExtensionRules {
  /** Domain of addresses without one, in lower case. */
  readonly myorigin: string
  /** Domains, in lower case, whose addresses are also looked up by their local part alone. */
  readonly localDomains: ReadonlySet<string>
  /** Parent of domains without a dot; null to leave such domains. */
  readonly parent: string | null
}

export interface Found {
  readonly value: string
  readonly extension: string
}

interface Key {
  readonly text: string
  /** The extension of the address that the key does not have, with its delimiter. */
  readonly extension: string
  /** The address, for tables of patterns, which see no part of it alone (Postfix regexp_table(5)). */
  readonly whole: string | undefined
  /** True for a local part that needs quotes and is without them. */
  readonly lacksQuotes: boolean
}

/** A source route before a local part, which is ignored (RFC 5321 appendix C). */
const SOURCE_ROUTE = /^@[^:]*:/

/** Maximum number of lookups in succession for one address (Postfix cleanup_map11). */
const NESTING = 10

export class AddressMap {
  readonly #table: LookupTable
  readonly #rules: AddressRules
  readonly #propagates: boolean
  readonly #lists = new ParsedLists()

  /** `propagates`: an extension that no key has is added to the result (propagate_unmatched_extensions). */
  constructor(table: LookupTable, rules: AddressRules, propagates: boolean) {
    this.#table = table
    this.#rules = rules
    this.#propagates = propagates
  }

  get name(): string {
    return this.#table.name
  }

  /**
   * Looks up user+extension@domain, user@domain, local users by user+extension and user, then @domain. Local parts that need quotes are
   * looked up with them and then without.
   */
  find(address: string): Found | null {
    return this.#first(lastKeys(address, this.#rules))
  }

  /**
   * The addresses to which an address is mapped; null when no key matches. Local parts that need quotes are looked up with them only. Throws
   * LookupFailed when the value has none.
   */
  all(address: string): readonly string[] | null {
    const found = this.#first(lastKeys(address, this.#rules).filter(({ lacksQuotes }) => !lacksQuotes))
    if (found === null) return null
    const { value, extension } = found
    if (value.startsWith('@')) return [this.#moved(address, value, extension)]
    if (value === '<>' || value === '""') return ['']
    const listed = this.#lists.of(value)
    if (listed.length === 0) throw this.#failed(address, value)
    return listed.map((one) => {
      if (one.address === null) throw this.#failed(address, value)
      return this.#extended(this.#complete(one.address), extension)
    })
  }

  /** The address to which an address is mapped, by lookups until one has no result or gives the address itself. */
  one(address: string): string {
    let current = address
    for (let count = 0; count < NESTING; count++) {
      const [next] = this.all(current) ?? []
      if (next === undefined || next === current) return current
      const isSame = next.toLowerCase() === current.toLowerCase()
      current = next
      if (isSame) break
    }
    return current
  }

  #first(keys: readonly Key[]): Found | null {
    for (const { text, extension, whole } of keys) {
      const value = this.#table.find(text, whole)
      if (value !== undefined) return { value, extension }
    }
    return null
  }

  /** The user of `address`, without an unmatched extension, at the domain of `value`. */
  #moved(address: string, value: string, extension: string): string {
    const { local } = partsOf(address, this.#rules)
    const moved = `${local.slice(0, local.length - extension.length)}${value}`
    const direct = SOURCE_ROUTE.test(moved) ? unquoteLocalPart(moved.replace(SOURCE_ROUTE, '')) : moved
    return this.#extended(this.#complete(quoteLocalPart(direct)), extension)
  }

  #complete(address: string): string {
    const { myorigin, parent } = this.#rules
    const whole = /@(?=[^@"]*$)/.test(address) ? address : `${address}@${myorigin}`
    return parent !== null && /@[^.:[@]+$/.test(whole) ? `${whole}.${parent}` : whole
  }

  #extended(address: string, extension: string): string {
    if (extension === '' || !this.#propagates) return address
    const plain = unquoteLocalPart(address)
    const at = plain.lastIndexOf('@')
    return quoteLocalPart(plain.slice(0, at) + extension + plain.slice(at))
  }

  #failed(address: string, value: string): LookupFailed {
    return new LookupFailed(`${this.name}: the value ${JSON.stringify(value)} for ${address} is not an address; correct the table`)
  }
}

/** Addresses of values. Long lists are kept after they were parsed: 300,000 addresses take some seconds, and each mail looks them up. */
class ParsedLists {
  readonly #kept = new Map<string, readonly ListedAddress[]>()

  of(value: string): readonly ListedAddress[] {
    if (value.length < KEPT_LIST_LENGTH) return addressesIn(value)
    const kept = this.#kept.get(value)
    if (kept !== undefined) return kept
    const parsed = addressesIn(value)
    const [first] = this.#kept.keys()
    if (first !== undefined && this.#kept.size >= MOST_KEPT_LISTS) this.#kept.delete(first)
    this.#kept.set(value, parsed)
    return parsed
  }
}

/** In characters; shorter lists are not kept. */
const KEPT_LIST_LENGTH = 10_000
const MOST_KEPT_LISTS = 100

/** The keys of the address that was looked up last, by relay: the maps of a message look up the same address one after the other. */
const LAST = new WeakMap<AddressRules, { readonly address: string; readonly keys: readonly Key[] }>()

function lastKeys(address: string, rules: AddressRules): readonly Key[] {
  const last = LAST.get(rules)
  if (last?.address === address) return last.keys
  const keys = keysOf(address, rules)
  LAST.set(rules, { address, keys })
  return keys
}

/** The keys of an address, in the order in which they are looked up. */
function keysOf(address: string, rules: AddressRules): readonly Key[] {
  const { local, domain, bare } = partsOf(address, rules)
  const whole = SIMPLE.test(local) ? address : withNeededQuotes(address)
  const users: Key[] = formsOf(local, domain).map((form) => ({ ...form, extension: '', whole }))
  const extension = bare === null ? '' : local.slice(bare.length)
  if (bare !== null) users.push(...formsOf(bare, domain).map((form) => ({ ...form, extension, whole: undefined })))
  const keys = users.map((user) => ({ ...user, text: user.text + domain }))
  const isLocal = domain !== '' && rules.localDomains.has(domain.slice(1))
  if (isLocal) keys.push(...users.map((user) => ({ ...user, whole: undefined })))
  if (domain !== '') keys.push({ text: domain, extension: '', whole: undefined, lacksQuotes: false })
  return keys
}

/** Local part of keys, in lower case: with quotes where they are needed, and then without. */
function formsOf(local: string, domain: string): readonly Pick<Key, 'text' | 'lacksQuotes'>[] {
  const text = local.toLowerCase()
  const plain = { text, lacksQuotes: false }
  if (SIMPLE.test(local)) return [plain]
  const quoted = quoteLocalPart(text + domain).slice(0, domain === '' ? undefined : -domain.length)
  return quoted === text
    ? [plain]
    : [
        { text: quoted, lacksQuotes: false },
        { text, lacksQuotes: true },
      ]
}

/** Local parts without quotes, as almost all are. */
const SIMPLE = /^[\w+=-]+$/
