/** Facts about a stage of a session, and the matching of rules against them. Pure. */
import { domainOf, domainMatches } from '../../mail/address.ts'
import { matchesPattern } from '../../patterns/filter-pattern.ts'
import type { Duration } from '../../system/clock.ts'
import type { CountedBy, FaultStage, Where } from './rule.ts'

/** Facts at one stage of a session. Facts that are not known yet are absent. */
export interface RuleFacts {
  readonly stage: FaultStage
  /** Milliseconds since the remote network started, on the monotonic clock, so that changes of the relay's wall clock have no effect. */
  readonly age: Duration
  /** Serial number of the connection; 0 before a connection is open. */
  readonly connection: number
  readonly client: string
  /** Name of the host to which the client connects, or its address. */
  readonly mx: string
  /** Domains for which the host accepts mail, according to DNS. */
  readonly domains: readonly string[]
  readonly helo?: string | undefined
  readonly sender?: string | undefined
  /** Recipient of the current RCPT. After RCPT, all accepted recipients. */
  readonly recipients: readonly string[]
  /** Number of recipients accepted in the transaction so far. */
  readonly accepted: number
  readonly size?: number | undefined
  readonly header?: ((name: string) => readonly string[]) | undefined
}

const isDomain = (domain: string, pattern: string): boolean =>
  pattern.startsWith('.') ? domainMatches(domain, pattern.toLowerCase()) : matchesPattern(pattern, domain)

function domainApplies(facts: RuleFacts, pattern: string): boolean {
  // From RCPT on, the recipients' domains are compared; before, the domains of the host.
  const domains = facts.recipients.length > 0 ? facts.recipients.map(domainOf) : facts.domains
  return domains.some((domain) => isDomain(domain, pattern))
}

const agrees = (value: string | undefined, pattern: string | undefined): boolean =>
  pattern === undefined || (value !== undefined && matchesPattern(pattern, value))

function sizeAgrees(size: number | undefined, where: Where): boolean {
  if (where.sizeOver === undefined && where.sizeUnder === undefined) return true
  if (size === undefined) return false
  return size > (where.sizeOver ?? -1) && size < (where.sizeUnder ?? Infinity)
}

/** True if a rule applies to this mail and this host. */
export function applies(where: Where, facts: RuleFacts): boolean {
  const { domain, recipient, header } = where
  return (
    (domain === undefined || domainApplies(facts, domain)) &&
    agrees(facts.mx, where.mx) &&
    agrees(facts.client, where.client) &&
    agrees(facts.helo, where.helo) &&
    agrees(facts.sender, where.sender) &&
    (recipient === undefined || facts.recipients.some((address) => matchesPattern(recipient, address))) &&
    sizeAgrees(facts.size, where) &&
    (header === undefined || (facts.header?.(header.name) ?? []).some((value) => matchesPattern(header.value, value)))
  )
}

export function countedAs(per: CountedBy, facts: RuleFacts): string {
  switch (per) {
    case 'rule':
      return ''
    case 'recipient':
      return facts.recipients.join(' ')
    case 'sender':
      return facts.sender ?? ''
    case 'triplet':
      return [facts.client, facts.sender ?? '', ...facts.recipients].join(' ')
    case 'client':
      return facts.client
    case 'mx':
      return facts.mx
  }
}
