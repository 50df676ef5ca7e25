/** DMARC records (RFC 7489 §6.3, RFC 9989): the record of a domain, and the policy that it states. Pure. */
import { parseTags } from '../dkim/signature-field.ts'

export interface DmarcPolicy {
  /** Domain of the record: the domain of From, or a parent. */
  readonly domain: string
  readonly policy: 'none' | 'quarantine' | 'reject'
  /** Missing or invalid tag, which makes `policy` none. */
  readonly mistake?: string | undefined
  /** True when `d=` must equal the domain of From (`adkim=s`). */
  readonly strictDkim: boolean
  /** `psd=`: `y` at a public suffix, `n` at an organizational domain; undefined without the tag. */
  readonly psd?: 'y' | 'n' | undefined
}

export const dmarcName = (domain: string): string => `_dmarc.${domain}`

/** Maximum number of labels of a looked-up parent (RFC 9989 §4.10). */
const MOST_LABELS = 7

/** The domain of From and its parents, at most eight, in the order of the look-ups. */
export function dmarcDomains(domain: string): readonly string[] {
  const parents = domain.split('.').slice(1).slice(-MOST_LABELS)
  return [domain, ...parents.map((_, i) => parents.slice(i).join('.'))]
}

/** A policy, no record, or the reason why DMARC does not apply although there is one. */
export type DmarcRecord =
  | { readonly kind: 'found'; readonly policy: DmarcPolicy }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid'; readonly why: string }

const POLICIES: ReadonlySet<string> = new Set<DmarcPolicy['policy']>(['none', 'quarantine', 'reject'])
const isPolicy = (text: string | undefined): text is DmarcPolicy['policy'] => POLICIES.has(text ?? '')

/** Matches a list of URIs of which one has a scheme and a path. */
const ADDRESS = /(?:^|,)\s*[a-z][a-z0-9+.-]*:[^\s,]+/i

/**
 * The record for mail from `from` among the TXT records at `dmarcName(domain)`. Several records count as none. Without a valid `p`, or with
 * an invalid `sp`, the policy is none when the record has an address for reports; otherwise DMARC does not apply (RFC 7489 §6.6.3).
 */
export function dmarcRecord(from: string, domain: string, texts: readonly string[]): DmarcRecord {
  const records = texts.filter((one) => /^v=DMARC1\s*(?:;|$)/.test(one))
  const [text, ...others] = records
  if (text === undefined) return { kind: 'none' }
  if (others.length > 0) return { kind: 'invalid', why: `there are ${records.length} records, which count as none` }
  const tags = parseTags(text)
  if (tags === null) return { kind: 'invalid', why: 'it is no list of different tags' }
  const suffix = tags.get('psd')?.toLowerCase()
  const psd: DmarcPolicy['psd'] = suffix === 'y' || suffix === 'n' ? suffix : undefined
  const base = { domain, strictDkim: tags.get('adkim')?.toLowerCase() === 's', psd }
  const [p, sp] = [tags.get('p')?.toLowerCase(), tags.get('sp')?.toLowerCase()]
  if (isPolicy(p) && (sp === undefined || isPolicy(sp)))
    return { kind: 'found', policy: { ...base, policy: from === domain ? p : (sp ?? p) } }
  const mistake = p === undefined ? 'p= is missing' : isPolicy(p) ? `sp=${sp} is no policy` : `p=${p} is no policy`
  if (ADDRESS.test(tags.get('rua') ?? '')) return { kind: 'found', policy: { ...base, policy: 'none', mistake } }
  return { kind: 'invalid', why: `${mistake}, and there is no address for reports (rua=), so that DMARC does not apply` }
}
