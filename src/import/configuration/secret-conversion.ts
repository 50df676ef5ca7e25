/** Converts the logins for next hops to a file, and the TLS policies of next hops to a list. */
import type { PostfixParameters } from './main-cf.ts'
import { entriesOf, lookupSources, staticValue } from './lookup-sources.ts'
import { addTable, type TableContext } from './table-conversion.ts'

const OWNER_ONLY = 0o600

/** Writes the logins of smtp_sasl_password_maps to a file that only its owner may read. */
export function convertLogins(parameters: PostfixParameters, context: TableContext): void {
  const name = 'smtp_sasl_password_maps'
  const { draft, files } = context
  const value = parameters.get(name)
  if (value === '') return
  if (!parameters.isYes('smtp_sasl_auth_enable')) return draft.note(`${name} = ${value}: not used, as smtp_sasl_auth_enable is not yes`)
  const { sources } = lookupSources(value, files)
  for (const source of sources) {
    if (source.kind === 'missing') draft.note(`${name}: ${source.text} is left out: ${source.why}`)
    if (source.kind === 'file' && source.warning !== null) draft.note(`${name}: ${source.warning}`)
  }
  const logins = new Map(entriesOf(sources))
  const login = staticValue(sources)
  // A login for all next hops is given to the relayhosts only: deferd sends no password to hosts without an entry.
  if (login !== null) for (const hop of parameters.words('relayhost')) logins.set(hop, login)
  if (logins.size === 0) return draft.note(`${name} = ${value}: no logins were found`)
  const path = sources.find((source) => source.kind === 'file')?.path ?? 'sasl_passwd'
  const text = [...logins].map(([hop, pair]) => `${hop} ${pair}\n`).join('')
  draft.set(name, addTable(path, text, draft, OWNER_ONLY))
}

/** Levels that deferd lacks, with the next stricter level. */
const STRICTER: Readonly<Record<string, string>> = { fingerprint: 'secure' }

/** The level in deferd. A change of the level is noted in a comment. */
export function tlsLevel(level: string, what: string, { draft }: Pick<TableContext, 'draft'>): string {
  const meant = STRICTER[level]
  if (meant !== undefined)
    draft.note(
      `${what} = ${level}: deferd has no fingerprints; with ${meant}, mail waits unless the certificate is of a known authority (smtp_tls_CAfile) and has the name of the next hop, or one of match=NAME; encrypt sends without a look at it`,
    )
  return meant ?? level
}

/** Writes smtp_tls_policy_maps as a list. */
export function convertTlsPolicies(value: string, context: TableContext): void {
  const name = 'smtp_tls_policy_maps'
  const { draft, files } = context
  const { sources } = lookupSources(value, files)
  for (const source of sources) if (source.kind === 'missing') draft.note(`${name}: ${source.text} is left out: ${source.why}`)
  const policies = [...entriesOf(sources)].map(([hop, policy]) => {
    const [level = '', ...attributes] = policy.split(/\s+/)
    // Fingerprints are no names of certificates.
    const kept = level === 'fingerprint' ? [] : attributes.filter((attribute) => attribute.startsWith('match='))
    if (kept.length < attributes.length)
      draft.note(`${name}: ${hop}: ${attributes.filter((one) => !kept.includes(one)).join(' ')} is left out`)
    return [hop, tlsLevel(level, `${name}: ${hop}`, context), ...kept].join(' ')
  })
  if (policies.length > 0) draft.set(name, policies)
}
