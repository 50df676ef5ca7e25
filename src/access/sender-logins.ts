/** Users that own a sender address (Postfix smtpd_sender_login_maps). */
import { domainOf } from '../mail/address.ts'
import { withoutExtension } from './lookup-forms.ts'
import type { LookupTable } from '../rewriting/lookup-table.ts'

export interface SenderLogins {
  readonly table: LookupTable
  /** Domains, in lower case, whose addresses are also looked up by their local part alone. */
  readonly localDomains: ReadonlySet<string>
  /** Characters of recipient_delimiter; empty for none. */
  readonly delimiters: string
}

/**
 * Users that own the address: the value of user+extension@domain, user@domain, of user+extension or user for a local domain, or of
 * @domain, split at commas and blanks (Postfix mail_addr_find.c). Empty when no user owns it. Throws LookupFailed.
 */
export function ownersOf(address: string, { table, localDomains, delimiters }: SenderLogins): readonly string[] {
  if (address === '') return []
  const domain = domainOf(address)
  const local = address.slice(0, address.length - domain.length - 1)
  const find = (key: string, whole?: string): string | undefined => table.find(key.toLowerCase(), whole)
  const bare = withoutExtension(local, delimiters)
  const ofBare = (text: string): string | undefined => (bare === null ? undefined : find(`${bare}${text}`))
  const ofLocal = (): string | undefined => (localDomains.has(domain) ? (find(local) ?? ofBare('')) : undefined)
  const value = find(address, address) ?? ofBare(`@${domain}`) ?? ofLocal() ?? find(`@${domain}`)
  return value?.split(/[\s,]+/).filter((name) => name !== '') ?? []
}
