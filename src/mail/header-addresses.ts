/**
 * Rewrites the addresses of a header field (RFC 5322 §3.4) as Postfix does: an address without a domain gets the local one
 * (append_at_myorigin), a domain without a dot gets its parent (append_dot_mydomain), then address maps apply. Pure.
 */
import { textOf, withoutRoute } from './address-list.ts'
import { quoteLocalPart } from './address.ts'
import { isSpecial, parseList, tokenize, type ListNode, type Token } from './address-tokens.ts'

/** Whether a field names senders or recipients. */
export type AddressRole = 'sender' | 'recipient'

export interface Completion {
  /** Domain that completes addresses without a domain; null to leave such addresses unchanged. */
  readonly origin: string | null
  /** Parent that completes domains without a dot; null to leave such domains unchanged. */
  readonly parent: string | null
  /** True to keep source routes; they are removed when absent. */
  readonly keepsRoutes?: boolean | undefined
  /** Maps a complete address in its quoted form; absent without maps. */
  readonly map?: ((address: string, role: AddressRole) => string) | undefined
}

/** Fields with addresses (Postfix header_opts.c). */
const ROLES: ReadonlyMap<string, AddressRole> = new Map([
  ...fields('sender', 'From Sender Reply-To Errors-To Return-Receipt-To Disposition-Notification-To Mail-Followup-To'),
  ...fields('sender', 'Resent-From Resent-Sender'),
  ...fields('recipient', 'To Cc Bcc Apparently-To Resent-To Resent-Cc Resent-Bcc Resent-Reply-To'),
])

function fields(role: AddressRole, names: string): readonly (readonly [name: string, role: AddressRole])[] {
  return names.split(' ').map((name) => [name.toLowerCase(), role])
}

/** Role of the addresses in a field, by its name in lower case; undefined for a field without addresses. */
export const roleOf = (fieldName: string): AddressRole | undefined => ROLES.get(fieldName)

/** Line length at which an address begins a new line instead of being added (Postfix cleanup_fold_header). */
const LINE_LENGTH = 70

/** One address with a dot in its domain, perhaps with a name, as in most fields: nothing is missing. */
const ONE_COMPLETE_ADDRESS = /^(?:[ \t]*"[^"\\]*"[ \t]*<|[^"(),:;<>@[\\\]!%|]*<|[ \t]*)([\w.+=-]+@[\w-]+\.[\w.-]+)>?\s*$/

interface AddressField {
  readonly name: string
  /** Text after the colon, one character per octet. */
  readonly value: string
  readonly role: AddressRole
}

/** The field with rewritten addresses, folded, without its line end. Null when no address changes: the field is then kept as it is. */
export function rewriteField({ name, value, role }: AddressField, completion: Completion): string | null {
  const { map } = completion
  if (map === undefined) {
    if (ONE_COMPLETE_ADDRESS.test(value)) return null
  } else {
    const [, only] = ONE_COMPLETE_ADDRESS.exec(value) ?? []
    if (only !== undefined && map(only, role) === only) return null
  }
  const tokens = tokenize(value)
  if (tokens === null) return null
  const nodes = parseList(tokens)
  if (map === undefined && nodes.every((node) => node.kind !== 'address' || isComplete(node.tokens))) return null
  const texts = nodes.map((node) => textOfNode(node, (address) => rewrite(address, completion, role)))
  if (nodes.every((node, i) => node.kind !== 'address' || texts[i] === asWritten(node.tokens))) return null
  return fold(`${name}:`, members(nodes, texts))
}

/** True for an address with a dot in its domain and without a source route: nothing is missing. */
function isComplete(tokens: readonly Token[]): boolean {
  const at = tokens.findLastIndex((token) => isSpecial(token, '@'))
  return at > 0 && !isSpecial(tokens[0], '@') && tokens.slice(at).some((token) => isSpecial(token, '.'))
}

/** The address with its source route, with quotes where they are needed. */
function asWritten(tokens: readonly Token[]): string {
  const direct = withoutRoute(tokens)
  return textOf(tokens.slice(0, tokens.length - direct.length)) + quoteLocalPart(textOf(direct))
}

function rewrite(tokens: readonly Token[], completion: Completion, role: AddressRole): string {
  const { keepsRoutes, map } = completion
  const complete = keepsRoutes === true ? asWritten(tokens) : completed(withoutRoute(tokens), completion)
  return map === undefined || complete === '""' ? complete : mapOctets(complete, (address) => map(address, role))
}

function completed(tokens: readonly Token[], { origin, parent }: Completion): string {
  const text = textOf(tokens)
  const at = tokens.findLastIndex((token) => isSpecial(token, '@'))
  // a!b and a%b name a host in other ways, which are not rewritten.
  if (at < 0 && (text === '' || tokens.some((token) => isSpecial(token, '!%')))) return quoteLocalPart(text)
  const domain = at < 0 ? origin : textOf(tokens.slice(at + 1))
  const lacksParent = parent !== null && domain !== null && domain !== '' && !/[.:[]/.test(domain)
  return quoteLocalPart(`${text}${at < 0 && origin !== null ? `@${origin}` : ''}${lacksParent ? `.${parent}` : ''}`)
}

/** Applies a function of Unicode text to octets that are UTF-8. */
function mapOctets(octets: string, map: (text: string) => string): string {
  // oxlint-disable-next-line no-control-regex -- ASCII is exactly this range
  if (/^[\u0000-\u007f]*$/.test(octets)) return Buffer.from(map(octets)).toString('latin1')
  const text = Buffer.from(octets, 'latin1').toString()
  const mapped = map(text)
  return mapped === text ? octets : Buffer.from(mapped).toString('latin1')
}

function textOfNode(node: ListNode, address: (tokens: readonly Token[]) => string): string {
  if (node.kind === 'address') return address(node.tokens)
  if (node.kind === 'group') return ':'
  return node.kind === 'quoted' ? `"${node.text.replaceAll(/["\\]/g, String.raw`\$&`)}"` : node.text
}

/** True for a node that needs a space before another one like it. */
const isText = (node: ListNode | undefined): boolean => node !== undefined && node.kind !== 'special' && node.kind !== 'group'

/** The members of the list with their commas, one per address, with spaces between names and addresses (tok822_externalize). */
function members(nodes: readonly ListNode[], texts: readonly string[]): readonly string[] {
  const list: string[] = []
  let member = ''
  nodes.forEach((node, i) => {
    const next = nodes[i + 1]
    member += texts[i] ?? ''
    if (isSpecial(node, ',')) member = (list.push(member), '')
    else if (next !== undefined && (node.kind === 'group' || isSpecial(next, '<') || (isText(node) && isText(next)))) member += ' '
  })
  return member === '' ? list : [...list, member]
}

function fold(start: string, texts: readonly string[]): string {
  const lines: string[] = []
  let line = `${start} ${texts[0] ?? ''}`
  for (const text of texts.slice(1)) {
    if (line.length + 1 + text.length < LINE_LENGTH) line += ` ${text}`
    else {
      lines.push(line)
      line = text
    }
  }
  return [...lines, line].join('\r\n\t')
}
