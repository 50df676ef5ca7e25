/** Looks up addresses in the tables of a parameter, in the order of Postfix (canonical(5), virtual(5), mail_addr_find). */
import { addressesIn } from '../mail/address-list.ts'
import { quoteLocalPart, unquoteLocalPart } from '../mail/address.ts'
import { LookupFailed, type LookupTable } from './lookup-table.ts'

/** Facts of the relay that lookups use. */
export interface AddressRules {
  /** Characters of recipient_delimiter; empty for none. */
  readonly delimiters: string
  /** Domain of addresses without one, in lower case. */
  readonly myorigin: string
  /** Domains, in lower case, whose addresses are also looked up by their local part alone. */
  readonly localDomains: ReadonlySet<string>
  /** Parent of domains without a dot; null to leave such domains. */
  readonly parent: string | null
  /** Local parts without an extension, in lower case. */
  readonly whole: ReadonlySet<string>
}

/** The value for an address, and the extension of the address that the key did not have, with its delimiter. */
export interface Found {
  readonly value: string
  readonly extension: string
}

/** An address in its parts. */
interface Parts {
  /** Local part without quotes. */
  readonly local: string
  /** The domain in lower case with its `@`; empty without one. */
  readonly domain: string
  /** The local part without its extension; null when it has none. */
  readonly bare: string | null
}

interface Key {
  readonly text: string
  /** The extension of the address that the key does not have, with its delimiter. */
  readonly extension: string
  /** The address, for tables of patterns, which see no part of it alone (Postfix regexp_table(5)). */
  readonly whole: string | undefined
}

/** A source route before a local part, which is ignored (RFC 5321 appendix C). */
const SOURCE_ROUTE = /^@[^:]*:/

/** Maximum number of lookups in succession for one address (Postfix cleanup_map11). */
const NESTING = 10

export class AddressMap {
  readonly #table: LookupTable
  readonly #rules: AddressRules
  readonly #propagates: boolean

  /** `propagates`: an extension that no key has is added to the result (propagate_unmatched_extensions). */
  constructor(table: LookupTable, rules: AddressRules, propagates: boolean) {
    this.#table = table
    this.#rules = rules
    this.#propagates = propagates
  }

  get name(): string {
    return this.#table.name
  }

  /** Looks up user+extension@domain, user@domain, local users by user+extension and user, then @domain. */
  find(address: string): Found | null {
    for (const { text, extension, whole } of lastKeys(address, this.#rules)) {
      const value = this.#table.find(text, whole)
      if (value !== undefined) return { value, extension }
    }
    return null
  }

  /** The addresses to which an address is mapped; null when no key matches. Throws LookupFailed when the value has none. */
  all(address: string): readonly string[] | null {
    const found = this.find(address)
    if (found === null) return null
    const { value, extension } = found
    if (value.startsWith('@')) return [this.#moved(address, value, extension)]
    if (value === '<>' || value === '""') return ['']
    const listed = addressesIn(value)
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
  const users = [{ text: keyOf(local, domain), extension: '' }]
  if (bare !== null) users.push({ text: keyOf(bare, domain), extension: local.slice(bare.length) })
  const keys: Key[] = users.map(({ text, extension }, i) => ({ text: text + domain, extension, whole: i === 0 ? address : undefined }))
  const isLocal = domain !== '' && rules.localDomains.has(domain.slice(1))
  if (isLocal) keys.push(...users.map((user) => ({ ...user, whole: undefined })))
  if (domain !== '') keys.push({ text: domain, extension: '', whole: undefined })
  return keys
}

function partsOf(address: string, { delimiters, whole }: AddressRules): Parts {
  const plain = unquoteLocalPart(address)
  const at = plain.lastIndexOf('@')
  const [local, domain] = at < 0 ? [plain, ''] : [plain.slice(0, at), plain.slice(at).toLowerCase()]
  return { local, domain, bare: delimiters === '' || whole.has(local.toLowerCase()) ? null : withoutExtension(local, delimiters) }
}

/** The text before the first delimiter; null without one, and when the text would be empty. */
function withoutExtension(local: string, delimiters: string): string | null {
  if (delimiters.includes('-') && /^owner-|.-request$/i.test(local)) return null
  for (let at = 0; at < local.length; at++) {
    if (delimiters.includes(local.charAt(at))) return at === 0 ? null : local.slice(0, at)
  }
  return null
}

/** Local part of a key, in lower case, with quotes where they are needed. */
const keyOf = (local: string, domain: string): string =>
  (SIMPLE.test(local) ? local : quoteLocalPart(local + domain).slice(0, domain === '' ? undefined : -domain.length)).toLowerCase()

/** Local parts without quotes, as almost all are. */
const SIMPLE = /^[\w+=-]+$/
