/** Keys by which a client or an address is looked up in access tables (Postfix access(5)), most specific first. Pure. */
import { isIP } from 'node:net'
import { partsOf, userForms, type ExtensionRules, type LookupForm } from '../rewriting/address-keys.ts'

const whole = (key: string): LookupForm => ({ key, isWhole: true })
const part = (key: string): LookupForm => ({ key, isWhole: false })

/** The name of a client with its parent domains, then the address with its networks. */
export function clientForms(name: string, address: string): readonly LookupForm[] {
  return [whole(name), ...parents(name).map(part), whole(address), ...networks(address).map(part)]
}

/** user+extension@domain, user@domain, the domain with its parent domains, user+extension@ and user@. The null sender is `<>`. */
export function addressForms(address: string, rules: ExtensionRules): readonly LookupForm[] {
  if (address === '') return [whole('<>')]
  const parts = partsOf(address, rules)
  const domain = parts.domain.slice(1)
  const users = userForms(parts, '@').map(({ key }) => part(key))
  return [...userForms(parts, parts.domain), part(domain), ...parents(domain).map(part), ...users]
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
