/**
 * The DeliveryAgent of the daemon: SMTP and LMTP over the Net port, and what needs no network: `discard:`, `error:` and
 * aliases. A request is routed by its first recipient, because all its recipients have the same destination.
 */
import type { Socket } from 'node:net'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import type { Clock } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import { EXPANDED, LOOPING, type DeliveryRequest, type Message } from '../../mail/message.ts'
import type { SessionRecordings } from '../../sessions/session-recordings.ts'
import { Attempt, type AttemptDeps } from './attempt.ts'
import { ConnectionCache } from './connection-cache.ts'
import type { AttemptResult, Delivery, DeliveryAgent, DeliveryOptions, RecipientOutcome } from '../delivery-agent.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import { EightBitWarnings } from './eight-bit-warnings.ts'
import type { CachedContent, ReadChunk } from './message-content.ts'
import { DaneAnchors } from '../dane/dane-anchors.ts'
import { HostFinder } from '../routing/host-finder.ts'
import { checkNodemailer } from './client-connection.ts'
import type { OauthClients } from '../../oauth/access-tokens.ts'
import type { Net } from '../../system/net.ts'
import type { Rehearsal } from './rehearsal.ts'
import type { MessageSigning } from '../../dkim/message-signing.ts'
import { NO_CHANGES, type HeaderChanges } from './outgoing-mail.ts'
import type { Route, Router } from '../routing/router.ts'
import { NO_TOKENS, SaslCredentials, type TokensOf } from '../tls/sasl-credentials.ts'
import type { TlsConnection } from '../tls/tls-connection.ts'
import { TlsPolicies, type TlsFiles } from '../tls/tls-policy.ts'
import { TlsSessionCache } from '../tls/tls-session-cache.ts'
import type { StsPolicies } from '../sts/sts-policies.ts'
import type { TlsStage } from '../tls/tls-stage.ts'
import type { TlsPolicyFailure } from '../tls/policy-failure.ts'

/** Contents of files named in the configuration. daemon/delivery-secrets.ts reads them. */
export interface DeliverySecrets {
  /** smtp_sasl_password_maps */
  readonly passwords?: string | undefined
  /** Clients of the `[oauth.NAME]` tables, by name; none when absent. */
  readonly oauth?: OauthClients | undefined
  readonly tls?: TlsFiles | undefined
}

export interface SmtpAgentDeps {
  readonly config: Config
  readonly router: Router
  readonly policies: DestinationPolicies
  readonly net: Net
  readonly clock: Clock
  readonly random: Random
  readonly readChunk: ReadChunk
  /** True while this node may begin connections and mail transactions; see Membership.holds. Always true when absent. */
  readonly holds?: (() => boolean) | undefined
  /** Returns the content of a message while it is in memory; see ContentCache. */
  readonly cachedContent?: ((message: Message) => CachedContent | undefined) | undefined
  /** Required when the configuration names key or password files. */
  readonly secrets?: DeliverySecrets | undefined
  /** Access tokens; required when the configuration has `[oauth.NAME]` tables. */
  readonly tokens?: TokensOf | undefined
  /** MTA-STS policies; absent where none are followed. */
  readonly sts?: Pick<StsPolicies, 'rulesFor'> | undefined
  /** Called when a host does not meet the TLS policy of a domain. */
  readonly policyFailed?: ((failure: TlsPolicyFailure) => void) | undefined
  /** Called at the end of the TLS stage of each session with a mail exchanger. */
  readonly tlsEnded?: ((stage: TlsStage) => void) | undefined
  /** Changes of headers; none when absent. */
  readonly changes?: HeaderChanges | undefined
  /** Signs again where the header changes; null or absent without DKIM tables. */
  readonly signing?: MessageSigning | null | undefined
  /** The priority of the class of a message, from -9 to 9; none has one when absent. */
  readonly priorityOf?: ((message: Message) => number | null) | undefined
  /** Records sessions; absent where none are. */
  readonly sessions?: SessionRecordings | undefined
  readonly note: (text: string, level?: 'info' | 'warning') => void
  /** Called for each TLS connection when smtp_tls_loglevel is 1; `relay` is the host as in the log. */
  readonly secured: (relay: string, connection: TlsConnection) => void
  /** Ends each session before MAIL, and tries all hosts; absent for deliveries. */
  readonly rehearsal?: Rehearsal | undefined
}

export class SmtpAgent implements DeliveryAgent {
  readonly #router: Router
  readonly #clock: Clock
  readonly #cache: ConnectionCache
  readonly #quitting = new Set<Socket>()
  readonly #deps: AttemptDeps

  /** Throws an error for the operator when nodemailer, TLS policies or passwords are unusable. */
  constructor({
    router,
    random,
    secrets = {},
    tokens = NO_TOKENS,
    holds = () => true,
    changes = NO_CHANGES,
    signing = null,
    priorityOf = () => null,
    policyFailed = () => undefined,
    ...others
  }: SmtpAgentDeps) {
    const { config, net, clock, note, rehearsal } = others
    checkNodemailer()
    this.#router = router
    this.#clock = clock
    this.#cache = new ConnectionCache(clock)
    const finder = new HostFinder({ net, config, draw: random.stream('hosts of equal preference') })
    if (config.smtp_sasl_password_maps !== '' && secrets.passwords === undefined) throw new Error('smtp_sasl_password_maps was not read')
    this.#deps = {
      ...others,
      finder,
      cache: this.#cache,
      quitting: this.#quitting,
      tickets: new TlsSessionCache(),
      anchors: new DaneAnchors(),
      tls: new TlsPolicies(config, secrets.tls ?? {}),
      passwords: new SaslCredentials(secrets.passwords ?? '', config, tokens),
      holds,
      changes,
      signing,
      priorityOf,
      policyFailed,
      eightBitWarnings: new EightBitWarnings((text) => note(text, 'warning')),
      inspects: rehearsal !== undefined,
    }
  }

  async deliver(request: DeliveryRequest, options: DeliveryOptions): Promise<Delivery> {
    if (request.destination === EXPANDED) return this.#offline(request, 'delivered', ALIAS_EXPANDED)
    if (request.destination === LOOPING) return this.#offline(request, 'bounced', ALIAS_LOOP)
    const route = this.#router.route(request.recipients[0]?.address ?? '', request.message.sender)
    switch (route.transport) {
      case 'smtp':
      case 'lmtp':
        return new Attempt(this.#deps, route, request, options).run()
      case 'discard':
        return this.#offline(request, 'delivered', { status: '2.0.0', reason: discardText(route), stage: 'route' })
      case 'error': {
        const outcome = route.status.startsWith('4') || this.#deps.config.soft_bounce ? 'deferred' : 'bounced'
        const status = outcome === 'deferred' ? route.status.replace(/^5/, '4') : route.status
        return this.#offline(request, outcome, { status, reason: route.text, stage: 'route' })
      }
    }
  }

  async close(): Promise<void> {
    this.#cache.close()
    // Connections on which QUIT was sent are closed without waiting for the server.
    for (const socket of this.#quitting) socket.destroySoon()
  }

  /** Returns the same outcome for every recipient, without a connection. */
  #offline(request: DeliveryRequest, outcome: RecipientOutcome['outcome'], status: DeliveryStatus): AttemptResult {
    const now = this.#clock.now()
    return {
      outcomes: new Map(request.recipients.map(({ id }) => [id, { outcome, status }])),
      feedback: 'positive',
      relay: null,
      connectionUse: 1,
      times: { startedAt: now, transmittingAt: now, endedAt: now },
    }
  }
}

/** Status of an alias whose addresses are recipients of the message. */
const ALIAS_EXPANDED: DeliveryStatus = { status: '2.0.0', reason: 'alias expanded', stage: 'route' }

/** Status of an alias that leads back to itself. */
const ALIAS_LOOP: DeliveryStatus = { status: '5.4.6', reason: 'mail forwarding loop: the alias leads back to itself', stage: 'route' }

const discardText = ({ text }: Extract<Route, { transport: 'discard' }>): string =>
  `delivered via discard service${text === '' ? '' : `: ${text}`}`
