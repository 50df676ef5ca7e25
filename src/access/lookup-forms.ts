/** Keys by which a client or an address is looked up in access tables (Postfix access(5)), most specific first. Pure. */
import { isIP } from 'node:net'
import { domainOf } from '../mail/address.ts'

/** A key. `isWhole` keys are the subject itself: tables of patterns match them only. */
export interface LookupForm {
  readonly key: string
  readonly isWhole: boolean
}

const whole = (key: string): LookupForm => ({ key, isWhole: true })
const part = (key: string): LookupForm => ({ key, isWhole: false })

/** The name of a client with its parent domains, then the address with its networks. */
export function clientForms(name: string, address: string): readonly LookupForm[] {
  return [whole(name), ...parents(name).map(part), whole(address), ...networks(address).map(part)]
}

/**
 * user+extension@domain, user@domain, the domain with its parent domains, user+extension@ and user@. `delimiters` are the characters
 * of recipient_delimiter. The null sender is `<>`.
 */
export function addressForms(address: string, delimiters: string): readonly LookupForm[] {
  if (address === '') return [whole('<>')]
  const domain = domainOf(address)
  const local = address.slice(0, address.length - domain.length - 1)
  const bare = withoutExtension(local, delimiters)
  const forms = [whole(`${local}@${domain}`)]
  if (bare !== null) forms.push(part(`${bare}@${domain}`))
  forms.push(part(domain), ...parents(domain).map(part), part(`${local}@`))
  if (bare !== null) forms.push(part(`${bare}@`))
  return forms
}

/** The parent domains of a name, longest first. An address has none. */
function parents(name: string): readonly string[] {
  if (isIP(name) !== 0 || name.startsWith('[')) return []
  const labels = name.split('.')
  return labels.slice(1).map((_, i) => labels.slice(i + 1).join('.'))
}

/** The networks of an address: its octets or groups without the last, without the last two, and so on. */
function networks(address: string): readonly string[] {
  const separator = isIP(address) === 6 ? ':' : '.'
  const found: string[] = []
  for (let at = address.lastIndexOf(separator); at > 0; at = address.lastIndexOf(separator, at - 1)) found.push(address.slice(0, at))
  return found
}

/** The local part before its extension; null without one. */
export function withoutExtension(local: string, delimiters: string): string | null {
  const ends = Array.from(delimiters, (delimiter) => local.indexOf(delimiter)).filter((at) => at >= 0)
  const at = Math.min(...ends)
  return ends.length === 0 || at === 0 ? null : local.slice(0, at)
}
