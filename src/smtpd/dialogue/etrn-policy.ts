/**
 * Decides whether a client may use ETRN (RFC 1985): smtpd_etrn_restrictions, then fast_flush_domains with subdomains (Postfix flush(8)).
 */
import { isIP } from 'node:net'
import type { Config } from '../../config/options.ts'
import { unbracket } from '../../mail/address.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import * as replies from './replies.ts'

export type EtrnSettings = Pick<Config, 'fast_flush_domains' | 'smtpd_etrn_restrictions'>

/** The client as the restrictions see it. */
interface EtrnClient {
  readonly inMynetworks: boolean
  readonly isAuthenticated: boolean
}

const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*$/i

/** The domain of an ETRN argument, in lower case; undefined when it is no host name and no address in brackets. */
export function etrnDomain(argument: string): string | undefined {
  const name = argument.replace(/^[@#]/, '')
  const isLiteral = name.startsWith('[') && isIP(unbracket(name)) !== 0
  return isLiteral || (HOST_NAME.test(name) && !/^[\d.]+$/.test(name)) ? name.toLowerCase() : undefined
}

/** Returns the reply that refuses ETRN, and undefined when the mail of the domain may be flushed. */
export function refuseEtrn(domain: string, client: EtrnClient, settings: EtrnSettings): SmtpReply | undefined {
  if (!isPermitted(client, settings)) return replies.etrnRejected(domain)
  return isFlushable(domain, settings) ? undefined : replies.etrnUnavailable(domain)
}

/** The first restriction that applies decides; without one, ETRN is permitted. */
function isPermitted({ inMynetworks, isAuthenticated }: EtrnClient, settings: EtrnSettings): boolean {
  for (const restriction of settings.smtpd_etrn_restrictions) {
    switch (restriction) {
      case 'permit_mynetworks':
        if (inMynetworks) return true
        break
      case 'permit_sasl_authenticated':
        if (isAuthenticated) return true
        break
      case 'permit':
        return true
      case 'reject':
        return false
    }
  }
  return true
}

/** True for a domain of fast_flush_domains. `domain` is in lower case. */
export function isFlushable(domain: string, { fast_flush_domains: flushable }: Pick<EtrnSettings, 'fast_flush_domains'>): boolean {
  return flushable.some((name) => domain === name.toLowerCase() || domain.endsWith(`.${name.toLowerCase()}`))
}
