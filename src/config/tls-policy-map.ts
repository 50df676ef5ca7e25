/**
 * TLS levels of next hops: parses the entries of smtp_tls_policy_maps (Postfix TLS_README), `NEXTHOP LEVEL [match=NAME:NAME]`, and
 * refuses smtp_tls_wrappermode with a level that allows delivery without TLS. A server that expects TLS at once cannot be asked
 * whether it offers TLS, so that no delivery would succeed (postconf(5), smtp_tls_wrappermode). Pure.
 */
import type { Config, DestinationSettings } from './options.ts'
import { LEVEL_RULES, TLS_LEVELS, type TlsLevel } from '../mail/tls-levels.ts'

export interface TlsPolicy {
  readonly level: TlsLevel
  readonly match: readonly string[]
}

/** Parses an entry. Throws an Error that quotes a malformed entry. */
export function parseTlsPolicy(text: string): readonly [key: string, policy: TlsPolicy] {
  const [key, name, ...attributes] = text.trim().split(/\s+/)
  const level = TLS_LEVELS.find((known) => known === name)
  const match = attributes.flatMap((attribute) => (attribute.startsWith('match=') ? attribute.slice('match='.length).split(':') : []))
  if (key === undefined || level === undefined || attributes.some((attribute) => !attribute.startsWith('match='))) {
    throw new Error(
      `smtp_tls_policy_maps: ${JSON.stringify(text)} is not "NEXTHOP LEVEL [match=NAME:NAME]"; levels are ${TLS_LEVELS.join(', ')}`,
    )
  }
  return [key.toLowerCase(), { level, match: match.length > 0 ? match : LEVEL_RULES[level].names }]
}

type WrapperConfig = Pick<Config, 'smtp_tls_wrappermode' | 'smtp_tls_security_level' | 'smtp_tls_policy_maps'>

/** Names of the levels that make TLS mandatory, in quotes. */
const mandatoryLevels = (): string =>
  TLS_LEVELS.filter((level) => LEVEL_RULES[level].isMandatory)
    .map((level) => JSON.stringify(level))
    .join(' or ')

const wrapperProblem = (level: TlsLevel): string =>
  `smtp_tls_wrappermode = yes needs a smtp_tls_security_level of ${mandatoryLevels()}, and the level is "${level}": set the level, or smtp_tls_wrappermode = "no"`

/** True when a policy makes TLS mandatory for some next hop. For other next hops, each delivery is refused. */
function somePolicyIsMandatory({ smtp_tls_policy_maps }: WrapperConfig): boolean {
  try {
    return smtp_tls_policy_maps.some((line) => LEVEL_RULES[parseTlsPolicy(line)[1].level].isMandatory)
  } catch {
    // A malformed policy is a problem of its own.
    return true
  }
}

/** Throws an Error when the parameters of the relay make every delivery fail. */
export function assertWrapperLevel(config: WrapperConfig): void {
  const { smtp_tls_wrappermode: wrapper, smtp_tls_security_level: level } = config
  if (wrapper && !LEVEL_RULES[level].isMandatory && !somePolicyIsMandatory(config)) throw new Error(wrapperProblem(level))
}

/** Throws an Error when the parameters of a destination's table make every delivery to the destination fail. */
export function assertTableWrapperLevel(heading: string, table: DestinationSettings, config: WrapperConfig): void {
  // LMTP does not use the parameter. An undefined level of the table is malformed, which is a problem of its own.
  const isMalformed = 'smtp_tls_security_level' in table && table.smtp_tls_security_level === undefined
  if (heading.startsWith('lmtp:') || isMalformed) return
  const wrapper = table.smtp_tls_wrappermode ?? config.smtp_tls_wrappermode
  const level = table.smtp_tls_security_level ?? config.smtp_tls_security_level
  if (wrapper && !LEVEL_RULES[level].isMandatory && !somePolicyIsMandatory(config))
    throw new Error(`destination."${heading}": ${wrapperProblem(level)}`)
}
