/**
 * Refuses smtp_tls_wrappermode with a TLS level that allows delivery without TLS. A server that expects TLS at once cannot be asked
 * whether it offers TLS, so that no delivery would succeed (postconf(5), smtp_tls_wrappermode). Pure.
 */
import type { Config, DestinationSettings } from './options.ts'
import { isMandatory, parseTlsPolicy, type TlsLevel } from './tls-policy-map.ts'

type WrapperConfig = Pick<Config, 'smtp_tls_wrappermode' | 'smtp_tls_security_level' | 'smtp_tls_policy_maps'>

const text = (level: TlsLevel): string =>
  `smtp_tls_wrappermode = yes needs smtp_tls_security_level = "encrypt", "verify" or "secure", and the level is "${level}": set the level, or smtp_tls_wrappermode = "no"`

/** True when a policy raises the level of some next hop. Its other next hops are then refused at each delivery. */
function somePolicyIsMandatory({ smtp_tls_policy_maps }: WrapperConfig): boolean {
  try {
    return smtp_tls_policy_maps.some((line) => isMandatory(parseTlsPolicy(line)[1].level))
  } catch {
    // A malformed policy is a problem of its own.
    return true
  }
}

/** Throws an Error when the parameters of the relay make every delivery fail. */
export function assertWrapperLevel(config: WrapperConfig): void {
  const { smtp_tls_wrappermode: wrapper, smtp_tls_security_level: level } = config
  if (wrapper && !isMandatory(level) && !somePolicyIsMandatory(config)) throw new Error(text(level))
}

/** Throws an Error when the parameters of a destination's table make every delivery to the destination fail. */
export function assertTableWrapperLevel(heading: string, table: DestinationSettings, config: WrapperConfig): void {
  // LMTP does not use the parameter. An undefined level of the table is malformed, which is a problem of its own.
  const isMalformed = 'smtp_tls_security_level' in table && table.smtp_tls_security_level === undefined
  if (heading.startsWith('lmtp:') || isMalformed) return
  const wrapper = table.smtp_tls_wrappermode ?? config.smtp_tls_wrappermode
  const level = table.smtp_tls_security_level ?? config.smtp_tls_security_level
  if (wrapper && !isMandatory(level) && !somePolicyIsMandatory(config)) throw new Error(`destination."${heading}": ${text(level)}`)
}
