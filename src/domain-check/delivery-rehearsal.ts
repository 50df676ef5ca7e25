/**
 * Rehearses the delivery of a new message to a domain: the SMTP agent routes the message, finds the hosts, and opens sessions with all of
 * them, which end before MAIL. The outcome is therefore the outcome of a delivery that the hosts would accept.
 */
import { DestinationPolicies } from '../config/destination-policies.ts'
import type { Settings } from '../config/destination-settings.ts'
import type { NextHop } from '../config/values/next-hop.ts'
import type { Config } from '../config/options.ts'
import { verdictOfFailure } from '../delivery/classify.ts'
import { daneProblem } from '../delivery/dane/dane-problem.ts'
import type { TlsaAnswer } from '../delivery/dane/dane-decision.ts'
import { lookUpTlsa } from '../delivery/dane/dane-lookup.ts'
import type { RecipientOutcome } from '../delivery/delivery-agent.ts'
import type { HostSearch } from '../delivery/routing/host-finder.ts'
import type { Host } from '../delivery/routing/host-order.ts'
import { Router, type Route } from '../delivery/routing/router.ts'
import type { RoutingTables } from '../delivery/routing/routing-tables.ts'
import { SmtpAgent, type DeliverySecrets } from '../delivery/smtp/smtp-agent.ts'
import type { FailedSession, SmtpSession } from '../delivery/smtp/smtp-session.ts'
import type { StsPolicies } from '../delivery/sts/sts-policies.ts'
import type { TokensOf } from '../delivery/tls/sasl-credentials.ts'
import type { PeerCertificate } from '../delivery/tls/tls-connection.ts'
import type { AppliedSts } from '../delivery/tls/tls-policy.ts'
import { recipientId, type DeliveryRequest } from '../mail/message.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { TlsFacts } from '../mail/tls-facts.ts'
import { DAY, type Clock } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'

/** The configuration of deliveries, with the contents of its files. */
export interface DeliverySettings {
  readonly config: Config
  readonly secrets: DeliverySecrets
  readonly routingTables: RoutingTables
}

interface RehearsalDeps extends DeliverySettings {
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly sts: Pick<StsPolicies, 'rulesFor'>
  readonly tokens: TokensOf
  /** Provider of a destination as saved in the queue; null for none. */
  readonly providerOf: (destination: string) => Promise<string | null>
  readonly signal: AbortSignal
}

/** A session with one host, or the reason why there was none. */
export interface HostFacts {
  readonly host: Host
  /** False for a host that the delivery would not have reached. */
  readonly inTurn: boolean
  readonly tls: TlsFacts
  /** Status with which the host fails; absent when it is ready for MAIL. */
  readonly failure?: DeliveryStatus | undefined
  /** Reason why a policy that is only tested would refuse the host. */
  readonly problem?: string | undefined
  readonly certificate?: PeerCertificate | undefined
  /** Null where no TLSA records are looked up. */
  readonly tlsa: TlsaAnswer | null
}

interface HopFacts {
  readonly hop: NextHop
  readonly search: HostSearch
  readonly sts: AppliedSts | null
  readonly hosts: readonly HostFacts[]
}

export interface RehearsedDelivery {
  readonly route: Route
  /** Provider of the mail exchangers; null for none. */
  readonly provider: string | null
  readonly settings: Settings
  readonly hops: readonly HopFacts[]
  readonly outcome: RecipientOutcome['outcome']
  readonly status: DeliveryStatus
  /** `mx.example[192.0.2.1]:25`; null when no connection was made. */
  readonly relay: string | null
}

interface Session {
  readonly host: Host
  readonly session: SmtpSession | FailedSession
  readonly inTurn: boolean
}

interface Hop extends Omit<HopFacts, 'hosts'> {
  readonly sessions: Session[]
}

const POSTMASTER = 'postmaster'
const RECIPIENT = recipientId(1, 0)
/** In bytes, of the message that is not sent. */
const REHEARSED_SIZE = 1_000

function requestFor(
  domain: string,
  sender: string,
  { clock, destination }: Pick<RehearsalDeps, 'clock'> & { readonly destination: string },
) {
  const now = clock.now()
  const request: DeliveryRequest = {
    lease: { owner: 0, until: now },
    message: { id: 1, createdAt: now, arrivedAt: now, sender, size: REHEARSED_SIZE, contentId: 0, smtputf8: false },
    destination,
    recipients: [
      {
        id: RECIPIENT,
        address: `${POSTMASTER}@${domain}`,
        dueAt: now,
        expiresAt: now + DAY,
        steps: 0,
        attempts: 0,
        last: null,
        warnings: 0,
        flushed: false,
      },
    ],
    fresh: true,
    forcedExpire: false,
  }
  return request
}

export async function rehearse(domain: string, sender: string, deps: RehearsalDeps): Promise<RehearsedDelivery> {
  const router = new Router(deps.config, deps.routingTables)
  const route = router.route(`${POSTMASTER}@${domain}`, sender)
  const known = await deps.providerOf(route.destination)
  const first = await rehearseUnder(known, { domain, sender, router, route }, deps)
  // The delivery starts again under the settings of the provider that the mail exchangers show.
  const second = 'other' in first ? await rehearseUnder(first.other, { domain, sender, router, route }, deps) : first
  if ('other' in second) throw new Error(`the mail exchangers of ${domain} changed during the check: repeat it`)
  return second
}

interface Addressed {
  readonly domain: string
  readonly sender: string
  readonly router: Router
  readonly route: Route
}

/** Rehearses with the settings of a provider. `other` is the provider that the mail exchangers show instead. */
async function rehearseUnder(
  provider: string | null,
  { domain, sender, router, route }: Addressed,
  deps: RehearsalDeps,
): Promise<RehearsedDelivery | { readonly other: string | null }> {
  const { config, secrets, net, clock, random, sts, tokens, signal } = deps
  const policies = new DestinationPolicies(config, { of: () => provider })
  const hops: Hop[] = []
  let shown = provider
  const agent = new SmtpAgent({
    config,
    router,
    policies,
    net,
    clock,
    random,
    secrets,
    tokens,
    sts,
    readChunk: () => Promise.reject(new Error('a rehearsal has no content')),
    note: () => undefined,
    secured: () => undefined,
    rehearsal: {
      searched: (hop, search, applied) => void hops.push({ hop, search, sts: applied, sessions: [] }),
      tried: (host, session, inTurn) => void hops.at(-1)?.sessions.push({ host, session, inTurn }),
    },
  })
  try {
    const request = requestFor(domain, sender, { clock, destination: route.destination })
    const admits = (found: string | null): boolean => (shown = found) === provider
    const result = await agent.deliver(request, { keepConnection: false, signal, admits })
    if (typeof result === 'string') return { other: shown }
    const outcome = result.outcomes.get(RECIPIENT)
    if (outcome === undefined) throw new Error(`the delivery to ${domain} had no outcome`)
    const { settings } = policies.for(route.destination)
    const facts = await Promise.all(hops.map((hop) => hopFacts(hop, { route, settings }, deps)))
    return { route, provider, settings, hops: facts, outcome: outcome.outcome, status: outcome.status, relay: result.relay }
  } finally {
    await agent.close()
  }
}

interface Under {
  readonly route: Route
  readonly settings: Settings
}

async function hopFacts({ sessions, ...hop }: Hop, under: Under, deps: RehearsalDeps): Promise<HopFacts> {
  return { ...hop, hosts: await Promise.all(sessions.map((session) => hostFacts(session, hop.hop, under, deps))) }
}

async function hostFacts(
  { host, session, inTurn }: Session,
  hop: NextHop,
  { route, settings }: Under,
  { config, net }: RehearsalDeps,
): Promise<HostFacts> {
  const tlsa = route.transport === 'smtp' && daneProblem(config) === undefined ? await lookUpTlsa(host, net) : null
  const { problem, certificate } = session.tlsConnection ?? {}
  const common = { host, inTurn, tls: session.tls, tlsa, problem, certificate }
  if (!('failure' in session)) return common
  const { smtp_skip_5xx_greeting: skip5xxGreeting, smtp_sasl_auth_soft_bounce: softAuth } = settings
  const terms = { softBounce: config.soft_bounce, skip5xxGreeting, softAuth, tlsOptional: false }
  const policy = { ...terms, configured: hop.origin !== 'recipient', domain: route.domain, best: host.best }
  return { ...common, failure: verdictOfFailure(session.failure, host, policy).status }
}
