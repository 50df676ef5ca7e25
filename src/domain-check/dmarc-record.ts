/** DMARC records (RFC 7489 §6.3, RFC 9989): the record of a domain, and the policy that it states. Pure. */
import { parseTags } from '../dkim/signature-field.ts'

export interface DmarcPolicy {
  /** Domain at which the record was found: that of From, or a parent. */
  readonly domain: string
  readonly policy: 'none' | 'quarantine' | 'reject'
  /** True when `d=` has to equal the domain of From (`adkim=s`). */
  readonly strictDkim: boolean
  /** `psd=`: `y` at a public suffix, `n` at an organizational domain; undefined where the record does not tell. */
  readonly psd?: 'y' | 'n' | undefined
}

/** Name of the record of a domain. */
export const dmarcName = (domain: string): string => `_dmarc.${domain}`

/** Maximum number of labels of the parents that are asked (RFC 9989 §4.10). */
const LABELS = 7

/** The domain of From and its parents, which are asked in this order, at most eight. */
export function dmarcDomains(domain: string): readonly string[] {
  const parents = domain.split('.').slice(1).slice(-LABELS)
  return [domain, ...parents.map((_, i) => parents.slice(i).join('.'))]
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
  const suffix = tags.get('psd')?.toLowerCase()
  const psd = suffix === 'y' || suffix === 'n' ? suffix : undefined
  return { domain, policy, strictDkim: tags.get('adkim')?.toLowerCase() === 's', psd }
}
