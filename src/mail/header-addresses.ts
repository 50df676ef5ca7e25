/**
 * Completes the addresses of a header field (RFC 5322 §3.4): an address without a domain gets the local one (Postfix
 * append_at_myorigin), a domain without a dot gets its parent (append_dot_mydomain). Pure.
 */
import { addressSpans, type AddressSpan } from './address-list.ts'

export interface Completion {
  /** Domain that completes addresses without a domain; null to leave such addresses unchanged. */
  readonly origin: string | null
  /** Parent that completes domains without a dot; null to leave such domains unchanged. */
  readonly parent: string | null
}

/** Fields with addresses (Postfix header_opts.c), in lower case. */
const ADDRESS_FIELDS: ReadonlySet<string> = new Set(
  ['From', 'Sender', 'Reply-To', 'Errors-To', 'Return-Receipt-To', 'Disposition-Notification-To', 'To', 'Cc', 'Bcc', 'Apparently-To']
    .flatMap((name) => [name, `Resent-${name}`])
    .map((name) => name.toLowerCase()),
)

export const hasAddresses = (fieldName: string): boolean => ADDRESS_FIELDS.has(fieldName.toLowerCase())

/** Line length at which an address begins a new line instead of being added (Postfix cleanup_fold_header). */
const LINE_LENGTH = 70

/** One address with a dot in its domain, perhaps with a name, as in most fields: nothing is missing. */
const ONE_COMPLETE_ADDRESS = /^(?:[^"(),:;<>@[\\\]!%|]*<|[ \t]*)[\w.+=-]+@[\w-]+\.[\w.-]+>?\s*$/

/**
 * The field with complete addresses, folded, without its line end. Null when no address changes: the field is then kept as it is.
 * `value` is the text after the colon, one character per octet.
 */
export function completeField(name: string, value: string, completion: Completion): string | null {
  if (ONE_COMPLETE_ADDRESS.test(value)) return null
  const spans = addressSpans(value)
  if (spans === null) return null
  const missing = spans.map((span) => missingPart(span, completion))
  if (missing.every((part) => part === '')) return null
  return fold(name, parts(value, spans, missing))
}

function missingPart({ domain, isRoute }: AddressSpan, { origin, parent }: Completion): string {
  // a!b and a%b name a host in other ways, which are not rewritten.
  if (domain === null) return origin === null || isRoute ? '' : `@${origin}`
  return parent === null || domain === '' || /[.:]/.test(domain) ? '' : `.${parent}`
}

/** The members of the list, one per address, with what they lack. Groups and names stay with their first address. */
function parts(value: string, spans: readonly AddressSpan[], missing: readonly string[]): readonly string[] {
  const members: string[] = []
  let from = 0
  spans.forEach(({ end, memberEnd }, i) => {
    members.push(unfolded(`${value.slice(from, end)}${missing[i] ?? ''}${value.slice(end, memberEnd)}`))
    from = memberEnd + (/^\s*,/.exec(value.slice(memberEnd))?.[0].length ?? 0)
  })
  const rest = unfolded(value.slice(from))
  return rest === '' ? members : [...members, rest]
}

const unfolded = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

function fold(name: string, members: readonly string[]): string {
  const lines: string[] = []
  let line = `${name}: ${members[0] ?? ''}`
  for (const member of members.slice(1)) {
    if (line.length + member.length + 2 < LINE_LENGTH) line += `, ${member}`
    else {
      lines.push(`${line},`)
      line = member
    }
  }
  return [...lines, line].join('\r\n\t')
}
