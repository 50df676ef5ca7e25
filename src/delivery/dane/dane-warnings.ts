/** Sentences about a configuration of DANE that works, but not as its operator may expect. Pure. */
import { settingsUnder } from '../../config/destination-settings.ts'
import type { Config } from '../../config/options.ts'
import { parseTlsPolicy } from '../../config/tls-policy-map.ts'
import { isByDane } from '../../mail/tls-levels.ts'
import { daneProblem } from './dane-problem.ts'

const isLocal = (server: string): boolean => /^(?:127\.|\[?::1(?:\]|$))/.test(server)

function usesDane(config: Config): boolean {
  const levels = [null, ...config.destination.keys()].map((heading) => settingsUnder(config, heading).smtp_tls_security_level)
  const policies = config.smtp_tls_policy_maps.map((line) => parseTlsPolicy(line)[1].level)
  return [...levels, ...policies].some(isByDane)
}

/** `servers` are the name servers in effect. */
export function daneWarnings(config: Config, servers: readonly string[]): readonly string[] {
  const problem = daneProblem(config)
  const unused = usesDane(config) && problem !== undefined
  const remote = config.smtp_dns_support_level === 'dnssec' ? servers.filter((server) => !isLocal(server)) : []
  return [
    ...(unused ? [`the TLS levels dane and dane-only cannot be applied: ${problem}; dane is used as may, and dane-only defers mail`] : []),
    ...(remote.length > 0
      ? [
          `smtp_dns_support_level = dnssec trusts the answers of ${remote.join(', ')}, which can be forged on the way: run a validating resolver on this machine`,
        ]
      : []),
  ]
}
