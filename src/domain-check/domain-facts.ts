/** Gathers the facts of a check of one recipient domain. Changes nothing: no mail is sent, and no policy is stored. */
import { AccessTokens } from '../oauth/access-tokens.ts'
import type { DkimKeys } from '../dkim/keys.ts'
import { fetchPolicy, type Fetched } from '../delivery/sts/policy-fetch.ts'
import { policyFrom, StsPolicies } from '../delivery/sts/sts-policies.ts'
import { announcementIn, recordName, type StsAnnouncement } from '../delivery/sts/sts-record.ts'
import { tlsrptName, tlsrptRecord, type TlsrptRecord } from '../delivery/tls/tlsrpt-record.ts'
import { domainOf } from '../mail/address.ts'
import type { KnownDestination } from '../presentation/destination-state.ts'
import type { ProviderTable } from '../config/values/tables/provider-table.ts'
import type { ProviderState } from '../store/records/saved-providers.ts'
import type { StsPolicy } from '../store/records/sts-policy.ts'
import type { Clock, QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { asInsecure, type MxRecord, type Net, type SecureLookup } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import { rehearse, type DeliverySettings, type RehearsedDelivery } from './delivery-rehearsal.ts'
import { RememberingNet } from './remembering-net.ts'
import { gatherSender, type SenderFacts } from './sender-facts.ts'
import { gatherSources, type OurFacts } from './source-facts.ts'

export interface DomainCheckDeps extends DeliverySettings {
  readonly dkimKeys: DkimKeys
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  /** The policy of a domain that is stored in the queue. */
  readonly policyOf: (domain: string) => Promise<StsPolicy | undefined>
  /** Provider of a destination as saved in the queue; null for none. */
  readonly providerOf: (destination: string) => Promise<string | null>
  /** The suspension of a provider, and the reply rules that apply to it. */
  readonly providerState: (provider: string) => Promise<ProviderState>
  readonly destination: (name: string) => Promise<KnownDestination>
  /** Ends the sessions with hosts. */
  readonly signal: AbortSignal
}

/** A provider with the limits that all its destinations share. A limit of 0 is no limit. */
export interface ProviderFacts extends ProviderState, Pick<ProviderTable<unknown>, 'concurrencyLimit' | 'messageRateLimit'> {}

/** MTA-STS of the next hop. */
export interface StsFacts {
  readonly announced: StsAnnouncement
  /** The policy stored in the queue, expired or not. */
  readonly kept: StsPolicy | undefined
  /** The published policy, or the reason why it cannot be fetched; undefined without an announcement. */
  readonly published: StsPolicy | { readonly reason: string } | undefined
}

/** Facts about the domain of the next hop, whose mail exchangers are looked up. */
export interface ExchangerFacts {
  readonly domain: string
  readonly mx: SecureLookup<MxRecord>
  readonly sts: StsFacts
  readonly tlsrpt: TlsrptRecord
}

export interface DomainFacts {
  readonly domain: string
  readonly checkedAt: QueueTime
  readonly wall: WallView
  readonly delivery: RehearsedDelivery
  /** Null when no mail exchangers are looked up. */
  readonly exchangers: ExchangerFacts | null
  readonly destination: KnownDestination
  /** Null for a destination without a provider. */
  readonly provider: ProviderFacts | null
  readonly us: OurFacts
  readonly sender: SenderFacts
}

const NOTHING_KEPT = {
  keep: () => Promise.resolve(),
  note: () => Promise.resolve(),
  forget: () => Promise.resolve(false),
}

/** `domain` is in A-labels; `from` is the sender's address, or a domain. */
export async function gatherFacts(domain: string, from: string, deps: DomainCheckDeps): Promise<DomainFacts> {
  const { config, clock, random, policyOf, secrets } = deps
  const net = new RememberingNet(deps.net)
  const fetches = new Map<string, Promise<Fetched>>()
  const terms = () => ({ ca: secrets.tls?.policyHostCa, allowPrivate: config.smtp_allow_private_addresses })
  const fetch = (name: string): Promise<Fetched> => {
    // This connection uses deps.net: it carries no mail, so its address is not noted.
    const fetching = fetches.get(name) ?? fetchPolicy(name, { net: deps.net, clock, ...terms() })
    fetches.set(name, fetching)
    return fetching
  }
  const draw = (key: string): number => random.draw(key)
  const sts = new StsPolicies({
    net,
    clock,
    terms,
    store: NOTHING_KEPT,
    reader: { of: policyOf, all: () => Promise.resolve([]) },
    owns: () => false,
    draw,
    note: () => undefined,
    fetch,
  })
  const checkedAt = clock.now()
  const sender = from.includes('@') ? from : `postmaster@${from}`
  const accessTokens = AccessTokens.open({ net, clock, random }, secrets.oauth)
  const delivery = await rehearse(domain, sender, { ...deps, net, sts, tokens: (name) => accessTokens.of(name) })
  accessTokens.close()
  sts.close()
  const { destination } = delivery.route
  const local = [...net.localAddresses, ...[config.smtp_bind_address, config.smtp_bind_address6].filter((address) => address !== '')]
  const us = await gatherSources([...new Set(local)], config, net)
  const addresses = us.sources.map(({ address }) => address)
  return {
    domain,
    checkedAt,
    wall: clock.wall,
    delivery,
    exchangers: await exchangerFacts(delivery, { net, clock, policyOf, fetch, dnssec: config.smtp_dns_support_level === 'dnssec' }),
    destination: await deps.destination(destination),
    provider: await providerFacts(delivery, deps),
    us,
    sender: await gatherSender({ domain: domainOf(sender), addresses, keys: deps.dkimKeys }, net),
  }
}

async function providerFacts(
  { provider: name }: RehearsedDelivery,
  { config, providerState }: Pick<DomainCheckDeps, 'config' | 'providerState'>,
): Promise<ProviderFacts | null> {
  const table = name === null ? undefined : config.provider.get(name)
  if (name === null || table === undefined) return null
  const { concurrencyLimit, messageRateLimit } = table
  return { ...(await providerState(name)), concurrencyLimit, messageRateLimit }
}

interface ExchangerDeps extends Pick<DomainCheckDeps, 'net' | 'clock' | 'policyOf'> {
  readonly fetch: (domain: string) => Promise<Fetched>
  readonly dnssec: boolean
}

async function exchangerFacts({ hops }: RehearsedDelivery, deps: ExchangerDeps): Promise<ExchangerFacts | null> {
  const domain = hops.find(({ hop }) => hop.mx)?.hop.host
  if (domain === undefined) return null
  const { net, dnssec } = deps
  const mx = dnssec ? await net.lookupSecure(domain, 'MX') : asInsecure(await net.lookupMx(domain), domain)
  const [sts, tlsrpt] = await Promise.all([stsFacts(domain, deps), net.lookupTxt(tlsrptName(domain))])
  return { domain, mx, sts, tlsrpt: tlsrptRecord(tlsrpt) }
}

async function stsFacts(domain: string, { net, clock, policyOf, fetch }: ExchangerDeps): Promise<StsFacts> {
  const announced = announcementIn(await net.lookupTxt(recordName(domain)))
  const kept = await policyOf(domain)
  if (announced.kind !== 'id') return { announced, kept, published: undefined }
  const now = clock.now()
  return { announced, kept, published: policyFrom(await fetch(domain), { domain, id: announced.id, usedAt: now, now }) }
}
