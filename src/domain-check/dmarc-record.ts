/** DMARC records (RFC 7489 §6.3, RFC 9989): the record of a domain, and the policy that it states. Pure. */
import { parseTags } from '../dkim/signature-field.ts'

export interface DmarcPolicy {
  /** Domain at which the record was found: that of From, or a parent. */
  readonly domain: string
  readonly policy: 'none' | 'quarantine' | 'reject'
  /** True when `d=` has to equal the domain of From (`adkim=s`). */
  readonly strictDkim: boolean
}

/** Name of the record of a domain. */
export const dmarcName = (domain: string): string => `_dmarc.${domain}`

/** Maximum number of domains that are asked (RFC 9989 §4.10). */
const MOST = 8

/** The domain of From and its parents, which are asked in this order. */
export function dmarcDomains(domain: string): readonly string[] {
  const labels = domain.split('.')
  return labels
    .slice(0, -1)
    .map((_, i) => labels.slice(i).join('.'))
    .slice(0, MOST)
}

const POLICIES: ReadonlySet<string> = new Set<DmarcPolicy['policy']>(['none', 'quarantine', 'reject'])

/**
 * The policy for mail from `from` in the TXT records at `dmarcName(domain)`; undefined when there is not exactly one record. A policy that is
 * not known counts as none.
 */
export function dmarcPolicy(from: string, domain: string, texts: readonly string[]): DmarcPolicy | undefined {
  const [text, ...others] = texts.filter((one) => /^v=DMARC1\s*(?:;|$)/.test(one))
  const tags = text === undefined || others.length > 0 ? null : parseTags(text)
  if (tags === null) return undefined
  const ofSubdomains = from === domain ? undefined : tags.get('sp')
  const written = (ofSubdomains ?? tags.get('p') ?? 'none').toLowerCase()
  const policy = POLICIES.has(written) ? (written as DmarcPolicy['policy']) : 'none'
  return { domain, policy, strictDkim: tags.get('adkim')?.toLowerCase() === 's' }
}
