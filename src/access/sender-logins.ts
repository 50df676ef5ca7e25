/** Users that own a sender address (Postfix smtpd_sender_login_maps). */
import { domainOf } from '../mail/address.ts'
import type { LookupTable } from '../rewriting/lookup-table.ts'

export interface SenderLogins {
  readonly table: LookupTable
  /** Domains, in lower case, whose addresses are also looked up by their local part alone. */
  readonly localDomains: ReadonlySet<string>
}

/**
 * Users that own the address: the value of user@domain, of user for a local domain, or of @domain, split at commas and blanks.
 * Empty when no user owns it. Throws LookupFailed.
 */
export function ownersOf(address: string, { table, localDomains }: SenderLogins): readonly string[] {
  if (address === '') return []
  const domain = domainOf(address)
  const local = address.slice(0, address.length - domain.length - 1)
  const find = (key: string, whole?: string): string | undefined => table.find(key.toLowerCase(), whole)
  const value = find(address, address) ?? (localDomains.has(domain) ? find(local) : undefined) ?? find(`@${domain}`)
  return value?.split(/[\s,]+/).filter((name) => name !== '') ?? []
}
