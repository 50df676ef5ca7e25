/** Compiled settings of a relay: everything that a reload replaces. */
import { openChecks, type CheckTables } from '../checks/check-tables.ts'
import type { AccessTables } from '../access/access-tables.ts'
import { DoubleBounce } from '../config/double-bounce.ts'
import { noticeSettings, type NoticeSettings } from '../bounce/notice-writer.ts'
import type { Templates } from '../bounce/templates.ts'
import { DestinationPolicies } from '../config/destination-policies.ts'
import type { ClassBands } from '../config/values/mail-classes.ts'
import type { Config } from '../config/options.ts'
import type { ProviderDirectory } from '../config/provider-directory.ts'
import { parseSignedFields } from '../config/values/signed-fields.ts'
import { DeadEnds } from '../delivery/routing/dead-ends.ts'
import { Router } from '../delivery/routing/router.ts'
import { openRoutingTables, type RoutingTables } from '../delivery/routing/routing-tables.ts'
import type { AccessTokens } from '../oauth/access-tokens.ts'
import { SmtpAgent, type DeliverySecrets } from '../delivery/smtp/smtp-agent.ts'
import type { StsPolicies } from '../delivery/sts/sts-policies.ts'
import { HeaderChoice } from '../dkim/header-choice.ts'
import { loadDkimKeys, type DkimKeys } from '../dkim/keys.ts'
import { MessageSigning, signsAnywhere, type SigningResult } from '../dkim/message-signing.ts'
import { Signer } from '../dkim/signer.ts'
import type { Matching } from '../patterns/matching.ts'
import { Acceptor } from '../queue/intake/acceptor.ts'
import type { ContentCache } from '../queue/intake/content-cache.ts'
import type { Intake } from '../queue/intake/intake.ts'
import { ClassChoice, openClassMaps, type ClassMaps } from '../queue/intake/class-choice.ts'
import { openShareWeights, ShareWeights } from '../queue/intake/share-weights.ts'
import type { LookupTable } from '../rewriting/lookup-table.ts'
import { GenericMaps } from '../rewriting/generic.ts'
import { Rewriting } from '../rewriting/rewriting.ts'
import { openTables, type Tables } from '../rewriting/tables.ts'
import type { SessionRecordings } from '../sessions/session-recordings.ts'
import type { Membership } from '../store/membership/membership.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { Random } from '../system/random.ts'
import { signInThreadPool, type Signing } from '../system/signing.ts'
import type { Events } from '../telemetry/events.ts'
import type { TlsReports } from '../tls-reports/tls-reports.ts'
import type { ServerSecrets } from '../smtpd/server.ts'
import { arrivalChecks, headerChecks } from './check-rules.ts'

export interface RelaySettings {
  readonly config: Config
  readonly templates: Templates
  /** Passwords, and the private keys of TLS client certificates, for next hops. */
  readonly secrets?: DeliverySecrets | undefined
  /** Opened lookup tables for routes by sender; opened by the relay when absent. */
  readonly routingTables?: RoutingTables | undefined
  /** Opened lookup tables for addresses; opened by the relay when absent. */
  readonly tables?: Tables | undefined
  /** Keys of the DKIM tables; read by the relay when absent. */
  readonly dkimKeys?: DkimKeys | undefined
  /** Opened tables of actions for content; opened by the relay when absent. */
  readonly checks?: CheckTables | undefined
  /** Opened lookup tables of classes; opened by the relay when absent. */
  readonly classMaps?: ClassMaps | undefined
  /** Opened lookup tables of weights of shares; opened by the relay when absent. */
  readonly shareWeights?: LookupTable | undefined
  /** Opened access tables; opened by the relay when absent. */
  readonly access?: AccessTables | undefined
  /** Users and certificate of the SMTP server; read by the relay when absent. */
  readonly serverSecrets?: ServerSecrets | undefined
}

/** Compiled settings. A reload replaces them as a whole. */
export interface Rules {
  readonly config: Config
  readonly router: Router
  readonly policies: DestinationPolicies
  readonly notices: NoticeSettings
  readonly rewriting: Rewriting | null
  readonly generic: GenericMaps | null
  readonly deadEnds: DeadEnds
  readonly signing: MessageSigning | null
  readonly checks: CheckTables
  readonly classes: ClassChoice | null
  readonly secrets: DeliverySecrets | undefined
}

/** Ports of a relay that compiled settings use. */
interface RulePorts {
  readonly clock: Clock
  readonly net: Net
  readonly events: Events
  readonly sign?: Signing | undefined
}

/** Facts of the queue that outlive a reload. */
export interface LastingRules {
  readonly providers: ProviderDirectory
  readonly bands: ClassBands
  readonly membership: Pick<Membership, 'hostnames'>
}

/** Compiles settings. Throws PolicyError for an invalid retry policy, ConfigError when a DKIM key cannot be used. */
export function compileRules(settings: RelaySettings, { providers, bands, membership }: LastingRules, ports: RulePorts): Rules {
  const { config, templates, secrets, tables, routingTables, dkimKeys, classMaps, checks = openChecks(config).checks } = settings
  const doubleBounce = new DoubleBounce(config, () => membership.hostnames())
  const router = new Router(config, routingTables ?? openRoutingTables(config).tables, doubleBounce)
  const shares = ShareWeights.of(config, settings.shareWeights ?? openShareWeights(config).table)
  const policies = new DestinationPolicies(config, providers, bands, shares)
  const opened = tables ?? openTables(config).tables
  const rewriting = Rewriting.of(config, opened)
  return {
    config,
    router,
    policies,
    notices: noticeSettings(config, templates, doubleBounce),
    rewriting,
    generic: GenericMaps.of(config, opened),
    deadEnds: new DeadEnds({ config, net: ports.net, clock: ports.clock, router, rewriting }),
    signing: signingOf(config, dkimKeys, ports),
    checks,
    classes: ClassChoice.of(config, classMaps ?? openClassMaps(config).maps),
    secrets,
  }
}

/** Parts of a relay that outlive a reload, for the agent of one configuration. */
interface AgentParts extends RulePorts {
  readonly random: Random
  readonly store: Pick<QueueStore, 'readChunk'>
  readonly membership: Pick<Membership, 'holds'>
  readonly contents: ContentCache
  readonly matching: Matching
  readonly sts: StsPolicies | undefined
  readonly tokens: AccessTokens
  readonly tlsReports: Pick<TlsReports, 'count'>
  readonly sessions: SessionRecordings
}

/** The SMTP client of one configuration. */
export function smtpAgent({ config, router, policies, generic, signing, checks, secrets }: Rules, parts: AgentParts): SmtpAgent {
  const { clock, random, net, store, membership, events, contents, matching, sts, tokens, tlsReports, sessions } = parts
  return new SmtpAgent({
    config,
    router,
    policies,
    net,
    clock,
    random,
    ...(secrets === undefined ? {} : { secrets }),
    changes: { generic, headerChecks: headerChecks(config, checks, events, matching) },
    signing,
    readChunk: (body, index) => store.readChunk(body, index),
    holds: () => membership.holds(),
    priorityOf: ({ class: name = config.default_class }) => config.class.get(name)?.priority ?? null,
    cachedContent: (message) => contents.get(message),
    note: (text, level = 'info') => events.emit({ kind: 'note', level, text }),
    secured: (relay, { trust, reused, protocol, cipher, bits }) =>
      events.emit({ kind: 'tls-established', relay, trust, reused, protocol, cipher, bits }),
    tokens: (name) => tokens.of(name),
    sts,
    sessions,
    policyFailed: (failure) => events.emit({ kind: 'tls-policy-failed', ...failure }),
    ...(config.smtp_tlsrpt_enable ? { tlsEnded: tlsReports.count } : {}),
  })
}

/** The acceptor of one configuration. */
export const acceptorOf = (
  { config, rewriting, signing, checks, classes }: Rules,
  { intake, clock, events, matching }: Pick<AgentParts, 'clock' | 'events' | 'matching'> & { readonly intake: Intake },
): Acceptor => new Acceptor({ intake, config, clock, events, rewriting, signing, classes, checks: arrivalChecks(config, checks, matching) })

/** Null without DKIM tables, and when no destination's mail is signed. Throws ConfigError when a key cannot be used. */
function signingOf(
  config: Config,
  loaded: DkimKeys | undefined,
  { clock, events, sign = signInThreadPool }: RulePorts,
): MessageSigning | null {
  const keys = loaded ?? loadDkimKeys(config)
  if (!signsAnywhere(config)) return null
  const note = (text: string): void => events.emit({ kind: 'note', level: 'warning', text })
  const signed = (result: SigningResult): void => events.emit({ kind: 'signed', ...result })
  return new MessageSigning({ signed, signer: new Signer(keys, sign, new HeaderChoice(parseSignedFields(config))), config, clock, note })
}
