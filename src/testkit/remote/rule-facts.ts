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

const CONDITIONS: { readonly [Key in keyof Where]: (wanted: NonNullable<Where[Key]>, facts: RuleFacts) => boolean } = {
  domain: (pattern, facts) => domainApplies(facts, pattern),
  mx: (pattern, { mx }) => matchesPattern(pattern, mx),
  recipient: (pattern, { recipients }) => recipients.some((address) => matchesPattern(pattern, address)),
  sender: (pattern, { sender }) => sender !== undefined && matchesPattern(pattern, sender),
  helo: (pattern, { helo }) => helo !== undefined && matchesPattern(pattern, helo),
  client: (pattern, { client }) => matchesPattern(pattern, client),
  sizeOver: (limit, { size }) => size !== undefined && size > limit,
  sizeUnder: (limit, { size }) => size !== undefined && size < limit,
  header: (wanted, { header }) => header?.(wanted.name).some((value) => matchesPattern(wanted.value, value)) ?? false,
}
const MEMBERS = Object.keys(CONDITIONS) as readonly (keyof Where)[]

function holds<Key extends keyof Where>(key: Key, where: Partial<Pick<Where, Key>>, facts: RuleFacts): boolean {
  const wanted = where[key]
  return wanted === undefined || CONDITIONS[key](wanted, facts)
}

/** True if a rule applies to this mail and this host. */
export const applies = (where: Partial<Where>, facts: RuleFacts): boolean => MEMBERS.every((key) => holds(key, where, facts))

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
