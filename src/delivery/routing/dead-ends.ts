/**
 * Finds recipients whose mail this relay would return by itself. Recipients with the transport `error` or `retry` are refused at RCPT. Those of
 * strangers are also refused when their domain accepts no mail or has this relay as its mail exchanger: a notice would go to a sender that may
 * be forged.
 */
import type { Config } from '../../config/options.ts'
import { parseNextHop } from '../../config/values/next-hop.ts'
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import { LookupFailed } from '../../rewriting/lookup-table.ts'
import type { Rewriting } from '../../rewriting/rewriting.ts'
import { MINUTE, type Clock, type Duration } from '../../system/clock.ts'
import type { Net } from '../../system/net.ts'
import { HostFinder, QUERIES_PER_HOP, type HostSearch } from './host-finder.ts'
import type { Router } from './router.ts'
import { MALFORMED } from './sender-routing.ts'

interface DeadEndsDeps {
  readonly config: Config
  readonly net: Net
  readonly clock: Clock
  readonly router: Pick<Router, 'route' | 'hasErrors'>
  /** Null when no parameter asks for rewriting. */
  readonly rewriting: Pick<Rewriting, 'recipients' | 'isListed'> | null
}

/** A recipient, and the path that the client gave for it. */
interface GivenRecipient {
  readonly address: string
  readonly path: string
}

/** Status and text for a recipient that mail does not reach. */
interface DeadEnd {
  readonly status: string
  readonly text: string
}

/** Time for which the result of a search is used again. */
const KEPT_TIME: Duration = MINUTE
/** Status of a search whose look-ups failed for now. */
const LOOKUP_FAILED = '4.4.3'
/** Number of domains in memory. A full memory is emptied. */
const MOST_DOMAINS = 1000

export class DeadEnds {
  readonly #deps: DeadEndsDeps
  readonly #finder: HostFinder
  /** Names of this relay, in lower case. */
  readonly #names: ReadonlySet<string>
  readonly #searches = new Map<string, { readonly until: Duration; readonly search: Promise<HostSearch> }>()

  constructor(deps: DeadEndsDeps) {
    const { config, net } = deps
    this.#deps = deps
    this.#finder = new HostFinder({ net, config, draw: () => 0 })
    this.#names = new Set([config.myhostname.toLowerCase(), config.smtp_helo_name.toLowerCase()])
  }

  /** True for a recipient that a table replaces, or names as it is. Throws LookupFailed. */
  isAlias(address: string): boolean {
    return this.#deps.rewriting?.isListed(address) ?? false
  }

  /**
   * Returns the reply that refuses a recipient from which no mail is delivered; undefined when some of its addresses may get mail, and when
   * that is not known. `path` is the recipient as the client gave it. Recipients of own clients are refused by their transport only.
   */
  refusalOf(recipient: GivenRecipient, sender: string, isOwn: boolean): undefined | Promise<SmtpReply | undefined> {
    return isOwn && !this.#deps.router.hasErrors ? undefined : this.#refusalOf(recipient, sender, isOwn)
  }

  async #refusalOf({ address, path }: GivenRecipient, sender: string, isOwn: boolean): Promise<SmtpReply | undefined> {
    let first: DeadEnd | undefined
    for (const one of this.#addressesOf(address)) {
      const end = await this.#endOf(one, sender, isOwn)
      if (end === undefined) return undefined
      first ??= end
    }
    if (first === undefined) return undefined
    const { status, text } = first
    return { code: status.startsWith('4') ? 450 : 550, status, text: `<${path}>: Recipient address rejected: ${text}` }
  }

  /** The addresses that replace a recipient; none when a table cannot be used, which the end of the content reports. */
  #addressesOf(address: string): readonly string[] {
    const { rewriting } = this.#deps
    if (rewriting === null) return [address]
    try {
      return rewriting.recipients([{ address }]).map((recipient) => recipient.address)
    } catch (error) {
      if (error instanceof LookupFailed) return []
      throw error
    }
  }

  async #endOf(address: string, sender: string, isOwn: boolean): Promise<DeadEnd | undefined> {
    const route = this.#deps.router.route(address, sender)
    // While a table cannot be used, mail waits.
    if (route.transport === 'error')
      return route.status === MALFORMED ? undefined : { status: route.status.replace('.0.0', '.1.1'), text: route.text }
    if (isOwn) return undefined
    // Next hops of the configuration are another server's, which decides itself.
    if (route.transport === 'discard' || route.nexthops.some(({ origin }) => origin !== 'recipient')) return undefined
    const search = await this.#search(route.domain)
    if (search.kind === 'found' || (!search.final && route.fallback.length > 0)) return undefined
    if (this.#names.has(route.domain)) return ofOwnName(search.status)
    return search.status.startsWith('5') ? { status: search.status, text: search.reason } : undefined
  }

  #search(domain: string): Promise<HostSearch> {
    const now = this.#deps.clock.monotonic()
    const known = this.#searches.get(domain)
    if (known !== undefined && now < known.until) return known.search
    if (this.#searches.size >= MOST_DOMAINS) this.#searches.clear()
    const search = this.#find(domain)
    this.#searches.set(domain, { until: now + KEPT_TIME, search })
    return search
  }

  async #find(domain: string): Promise<HostSearch> {
    const { smtp_tcp_port: port, smtp_mx_address_limit: limit } = this.#deps.config
    const hop = parseNextHop(domain, { port, origin: 'recipient', mx: true })
    if (hop === undefined) return { kind: 'failed', status: '5.1.3', reason: 'bad destination', final: true }
    return this.#finder.find(hop, limit, { left: QUERIES_PER_HOP })
  }
}

/** Mail for this relay's own name is delivered by an alias or a route only (Postfix: User unknown in local recipient table). */
const ofOwnName = (status: string): DeadEnd =>
  status === LOOKUP_FAILED ? { status, text: 'Temporary lookup failure' } : { status: '5.1.1', text: 'User unknown' }
