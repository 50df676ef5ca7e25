/**
 * Finds the transport and the relayhost of a sender (sender_dependent_default_transport_maps, sender_dependent_relayhost_maps). Keys are
 * those of other lookups of addresses: the sender, without its extension, and its @domain; the null sender has the key <>.
 */
import type { NextHop } from '../../config/values/next-hop.ts'
import type { Config } from '../../config/options.ts'
import { parseSenderRelayhost, parseSenderTransport, type KnownTransport } from '../../config/sender-routes.ts'
import { domainMatches } from '../../mail/address.ts'
import { AddressMap } from '../../rewriting/address-map.ts'
import type { LookupTable } from '../../rewriting/lookup-table.ts'
import { addressRules } from '../../rewriting/lookup-rules.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { RoutingTables } from './routing-tables.ts'

/** Replacement of the route that mail of other senders takes. At least one of the members is defined. */
export interface SenderOverride {
  readonly transport: KnownTransport | undefined
  /** Replaces relayhost, for a transport without a next hop of its own. */
  readonly relayhost: readonly NextHop[] | undefined
}

/** Key of the null sender (postconf(5), empty_address_relayhost_maps_lookup_key). */
const NULL_SENDER = '<>'

/** Status of mail whose route is malformed in a table. The mail waits for a corrected table. */
export const MALFORMED = '4.3.5'

export class SenderRouting {
  readonly #relayhosts: SenderLookup<readonly NextHop[]> | undefined
  readonly #transports: SenderLookup<KnownTransport> | undefined
  readonly #relayDomains: readonly string[]

  constructor(config: Config, tables: RoutingTables) {
    this.#relayhosts = lookupIn(tables.get('sender_dependent_relayhost_maps'), config, (text) => parseSenderRelayhost(text, config))
    this.#transports = lookupIn(tables.get('sender_dependent_default_transport_maps'), config, (text) => parseSenderTransport(text, config))
    this.#relayDomains = config.relay_domains.map((domain) => domain.toLowerCase().replace(/^\.?/, '.'))
  }

  /** True when senders may choose the transport. */
  get hasTransports(): boolean {
    return this.#transports !== undefined
  }

  /** The override for mail of a sender to a recipient domain; undefined when the mail takes the route of other senders. */
  find(sender: string, domain: string): SenderOverride | undefined {
    if (this.#relayhosts === undefined && this.#transports === undefined) return undefined
    try {
      const found = this.#isRelayDomain(domain) ? undefined : this.#transports?.find(sender)
      const transport = found === undefined || isDefault(found) ? undefined : found
      const relayhost = this.#relayhosts?.find(sender)
      return transport === undefined && relayhost === undefined ? undefined : { transport, relayhost }
    } catch (error) {
      return { transport: { kind: 'error', status: MALFORMED, text: errorMessage(error) }, relayhost: undefined }
    }
  }

  /** relay_domains have relay_transport in Postfix, which default_transport does not replace. */
  #isRelayDomain(domain: string): boolean {
    return this.#relayDomains.some((parent) => domainMatches(`.${domain}`, parent))
  }
}

/** True for `smtp` without a next hop, the transport of all mail. */
const isDefault = (transport: KnownTransport): boolean => transport.kind === 'smtp' && transport.nexthops.length === 0

interface SenderLookup<T> {
  /** The value for a sender; undefined without one, and for DUNNO. Throws an Error when the value is malformed. */
  find(sender: string): T | undefined
}

/** A lookup in the table of a parameter; undefined without a table. */
function lookupIn<T>(table: LookupTable | undefined, config: Config, parse: (text: string) => T | null): SenderLookup<T> | undefined {
  if (table === undefined) return undefined
  const senders = new AddressMap(table, addressRules(config), false)
  const parsed = new Map<string, T | null>()
  return {
    find(sender) {
      const text = sender === '' ? table.find(NULL_SENDER, NULL_SENDER) : senders.find(sender)?.value
      if (text === undefined) return undefined
      const value = parsed.get(text) ?? parse(text)
      parsed.set(text, value)
      return value ?? undefined
    },
  }
}
