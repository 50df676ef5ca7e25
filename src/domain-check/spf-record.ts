/** Parses SPF records (RFC 7208 §4.5, §5, §6). Pure. */
import { isIP } from 'node:net'

/** Result of a mechanism that matches. */
type SpfQualifier = 'pass' | 'fail' | 'softfail' | 'neutral'

/** Prefix lengths of `a` and `mx`, for IPv4 and for IPv6 addresses. */
interface SpfPrefix {
  readonly ipv4: number
  readonly ipv6: number
}

interface SpfTermBase {
  readonly text: string
  readonly qualifier: SpfQualifier
}

/** `unsupported` terms are not evaluated: `exists`, `ptr`, and every domain with a macro. */
export type SpfTerm =
  | (SpfTermBase & { readonly kind: 'all' | 'unsupported' })
  | (SpfTermBase & { readonly kind: 'ip'; readonly address: string; readonly prefix: number })
  /** `domain` is undefined when the term has none, which means the domain of the record. */
  | (SpfTermBase & { readonly kind: 'a' | 'mx'; readonly domain: string | undefined; readonly prefix: SpfPrefix })
  | (SpfTermBase & { readonly kind: 'include'; readonly domain: string })

interface SpfRecord {
  readonly terms: readonly SpfTerm[]
  /** `redirect=`, which applies when no mechanism matches; undefined without it. `domain` is null when it has a macro. */
  readonly redirect: { readonly text: string; readonly domain: string | null } | undefined
}

/** An invalid record (permerror). `why` names the term. */
interface SpfMistake {
  readonly why: string
}

/** The SPF records among TXT records. */
export const spfRecords = (texts: readonly string[]): readonly string[] => texts.filter((text) => /^v=spf1(?: |$)/i.test(text))

const QUALIFIERS: Readonly<Record<string, SpfQualifier>> = { '': 'pass', '+': 'pass', '-': 'fail', '~': 'softfail', '?': 'neutral' }

export function parseSpf(record: string): SpfRecord | SpfMistake {
  const terms: SpfTerm[] = []
  let redirect: SpfRecord['redirect']
  for (const text of record.split(' ').slice(1)) {
    if (text === '') continue
    const modifier = /^([A-Za-z][\w.-]*)=(.*)$/.exec(text)
    if (modifier !== null) {
      if (modifier[1]?.toLowerCase() !== 'redirect') continue
      const domain = domainSpec(modifier[2] ?? '')
      if (redirect !== undefined || domain === undefined) return { why: `"${text}" is not valid` }
      redirect = { text, domain: domain === 'unsupported' ? null : domain }
      continue
    }
    const term = mechanism(text)
    if (term === undefined) return { why: `"${text}" is not valid` }
    terms.push(term)
  }
  return { terms, redirect }
}

function mechanism(text: string): SpfTerm | undefined {
  const [, sign = '', written = '', rest = ''] = /^([-+~?]?)([A-Za-z][A-Za-z0-9_-]*)(.*)$/.exec(text) ?? []
  const name = written.toLowerCase()
  const base = { text, qualifier: QUALIFIERS[sign] ?? 'pass' }
  switch (name) {
    case 'all':
      return rest === '' ? { ...base, kind: 'all' } : undefined
    case 'ip4':
    case 'ip6':
      return network(base, rest, name === 'ip4' ? 4 : 6)
    case 'a':
    case 'mx':
      return hosts(base, name, rest)
    case 'include': {
      const domain = rest.startsWith(':') ? domainSpec(rest.slice(1)) : undefined
      if (domain === undefined) return undefined
      return domain === 'unsupported' ? { ...base, kind: domain } : { ...base, kind: 'include', domain }
    }
    case 'exists':
    case 'ptr':
      return { ...base, kind: 'unsupported' }
    default:
      return undefined
  }
}

function network(base: SpfTermBase, rest: string, family: 4 | 6): SpfTerm | undefined {
  const [, address = '', bits] = /^:([^/]*)(?:\/(\d{1,3}))?$/.exec(rest) ?? []
  const most = family === 4 ? 32 : 128
  const prefix = Number(bits ?? most)
  return isIP(address) === family && prefix <= most ? { ...base, kind: 'ip', address, prefix } : undefined
}

function hosts(base: SpfTermBase, kind: 'a' | 'mx', rest: string): SpfTerm | undefined {
  const found = /^(?::([^/]*))?(?:\/(\d{1,2}))?(?:\/\/(\d{1,3}))?$/.exec(rest)
  if (found === null) return undefined
  const [, spec, ipv4 = '32', ipv6 = '128'] = found
  const prefix = { ipv4: Number(ipv4), ipv6: Number(ipv6) }
  if (prefix.ipv4 > 32 || prefix.ipv6 > 128) return undefined
  if (spec === undefined) return { ...base, kind, domain: undefined, prefix }
  const domain = domainSpec(spec)
  if (domain === undefined) return undefined
  return domain === 'unsupported' ? { ...base, kind: domain } : { ...base, kind, domain, prefix }
}

/** A domain in lower case; `unsupported` for a domain with a macro; undefined for any other text. */
function domainSpec(text: string): string | undefined {
  if (text.includes('%')) return 'unsupported'
  const name = text.replace(/\.$/, '').toLowerCase()
  return /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$/.test(name) ? name : undefined
}
