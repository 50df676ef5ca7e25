/** Parts of addresses, and keys of their local parts, in the order of Postfix (mail_addr_find, split_addr). Pure. */
import { quoteLocalPart, unquoteLocalPart } from '../mail/address.ts'

/** Search for extensions of local parts. */
export interface ExtensionRules {
  /** Characters of recipient_delimiter; empty for none. */
  readonly delimiters: string
  /** Local parts without an extension, in lower case. */
  readonly whole: ReadonlySet<string>
}

interface AddressParts {
  /** Local part without quotes. */
  readonly local: string
  /** The domain in lower case with its `@`; empty without one. */
  readonly domain: string
  /** The local part without its extension; null when it has none. */
  readonly bare: string | null
}

/** A key of a lookup. `isWhole` keys are the subject itself: tables of patterns match them only. */
export interface LookupForm {
  readonly key: string
  readonly isWhole: boolean
}

export function partsOf(address: string, { delimiters, whole }: ExtensionRules): AddressParts {
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

/** The keys user+extension and user, each with `suffix` (a domain with its `@`, or `@`): with quotes where needed, then without. */
export const userForms = ({ local, bare }: AddressParts, suffix: string): readonly LookupForm[] => [
  ...quotedFirst(local, suffix).map((key) => ({ key, isWhole: true })),
  ...(bare === null ? [] : quotedFirst(bare, suffix).map((key) => ({ key, isWhole: false }))),
]

function quotedFirst(local: string, suffix: string): readonly string[] {
  const plain = local + suffix
  const quoted = quoteLocalPart(plain)
  return quoted === plain ? [plain] : [quoted, plain]
}
