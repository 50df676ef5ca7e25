/** What is known at a stage, and which rules are about it: pure. */
import { domainOf, domainMatches } from '../../mail/address.ts'
import type { Duration } from '../../mail/clock.ts'
import type { CountedBy, FaultStage, Where } from './rule.ts'

/** The facts of one moment of a conversation; what is not known yet is absent. */
export interface Circumstances {
  readonly stage: FaultStage
  /** Since the far side began, on the stopwatch: our wall clock may be set, theirs is another. */
  readonly age: Duration
  /** Tells one connection from another; 0 before there is one. */
  readonly connection: number
  readonly client: string
  /** The name of the host that was dialled, or its address. */
  readonly mx: string
  /** The domains it takes mail for, as far as DNS says so. */
  readonly domains: readonly string[]
  readonly helo?: string | undefined
  readonly sender?: string | undefined
  /** The one that is asked about at RCPT; later all that were accepted. */
  readonly recipients: readonly string[]
  /** How many recipients the transaction has already. */
  readonly accepted: number
  readonly size?: number | undefined
  readonly header?: ((name: string) => readonly string[]) | undefined
}

/** Does a text match a pattern with `*`, in any case? */
export function like(text: string, pattern: string): boolean {
  const parts = pattern.toLowerCase().split('*')
  const subject = text.toLowerCase()
  const first = parts[0] ?? ''
  if (parts.length === 1) return subject === first
  if (!subject.startsWith(first)) return false
  let from = first.length
  for (const part of parts.slice(1, -1)) {
    const at = subject.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  const last = parts.at(-1) ?? ''
  return subject.length - from >= last.length && subject.endsWith(last)
}

const isDomain = (domain: string, pattern: string): boolean =>
  pattern.startsWith('.') ? domainMatches(domain, pattern.toLowerCase()) : like(domain, pattern)

function aboutDomain(facts: Circumstances, pattern: string): boolean {
  // From RCPT on the recipients say whose mail it is; before, only the host does.
  const domains = facts.recipients.length > 0 ? facts.recipients.map(domainOf) : facts.domains
  return domains.some((domain) => isDomain(domain, pattern))
}

const agrees = (value: string | undefined, pattern: string | undefined): boolean =>
  pattern === undefined || (value !== undefined && like(value, pattern))

function sizeAgrees(size: number | undefined, where: Where): boolean {
  if (where.sizeOver === undefined && where.sizeUnder === undefined) return true
  if (size === undefined) return false
  return size > (where.sizeOver ?? -1) && size < (where.sizeUnder ?? Infinity)
}

/** Is the rule about this mail and this host? */
export function isAbout(where: Where, facts: Circumstances): boolean {
  const { domain, recipient, header } = where
  return (
    (domain === undefined || aboutDomain(facts, domain)) &&
    agrees(facts.mx, where.mx) &&
    agrees(facts.client, where.client) &&
    agrees(facts.helo, where.helo) &&
    agrees(facts.sender, where.sender) &&
    (recipient === undefined || facts.recipients.some((address) => like(address, recipient))) &&
    sizeAgrees(facts.size, where) &&
    (header === undefined || (facts.header?.(header.name) ?? []).some((value) => like(value, header.value)))
  )
}

/** The name under which something is counted. */
export function countedAs(per: CountedBy, facts: Circumstances): string {
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
