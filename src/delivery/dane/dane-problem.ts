/** Why DANE cannot be applied with a configuration. Pure. */
import type { Config } from '../../config/options.ts'

/** Parameters on which DANE depends. */
export type DaneConfig = Pick<
  Config,
  'smtp_dns_support_level' | 'smtp_host_lookup' | 'ignore_mx_lookup_error' | 'smtp_tls_dane_insecure_mx_policy' | 'tls_dane_digests'
>

/** The reason; undefined when DANE can be applied. */
export function daneProblem(config: DaneConfig): string | undefined {
  if (config.smtp_dns_support_level !== 'dnssec') return 'dnssec lookups are disabled (smtp_dns_support_level)'
  if (!config.smtp_host_lookup.includes('dns')) return 'dns lookups are disabled (smtp_host_lookup)'
  return config.ignore_mx_lookup_error ? 'MX lookup errors are ignored (ignore_mx_lookup_error)' : undefined
}
