/**
 * Parts of a relay that its deliveries use: connections, access tokens, MTA-STS policies, results of TLS, records of sessions. They outlive a
 * reload, and read the rules in effect at each use.
 */
import type { Config } from '../config/options.ts'
import { StsPolicies } from '../delivery/sts/sts-policies.ts'
import { AccessTokens } from '../oauth/access-tokens.ts'
import { EventRecorder } from '../outbox/event-recorder.ts'
import { TokenReports } from '../outbox/token-reports.ts'
import { Matching } from '../patterns/matching.ts'
import { ContentCache } from '../queue/intake/content-cache.ts'
import { SessionRecordings } from '../sessions/session-recordings.ts'
import { SOLE_MEMBERSHIP, type Membership } from '../store/membership/membership.ts'
import { TlsReports, type TlsReportSettings } from '../tls-reports/tls-reports.ts'
import type { RelayDeps } from './relay-deps.ts'
import type { Rules } from './rules.ts'

export interface DeliveryParts {
  readonly membership: Membership
  readonly matching: Matching
  /** Makes the events that programs get. */
  readonly recorder: EventRecorder
  readonly contents: ContentCache
  readonly sessions: SessionRecordings
  /** Undefined without a reader. */
  readonly sts: StsPolicies | undefined
  readonly tokens: AccessTokens
  readonly tokenReports: TokenReports
  readonly tlsReports: TlsReports
}

export function openDeliveryParts(deps: RelayDeps, rules: () => Rules): DeliveryParts {
  const { clock, random, net, store, events, secrets, membership = SOLE_MEMBERSHIP } = deps
  const recorder = new EventRecorder(clock)
  const tokenReports = new TokenReports({ outbox: store.outbox, recorder, events })
  const { answered } = tokenReports
  return {
    membership,
    matching: new Matching(clock),
    recorder,
    contents: new ContentCache(),
    sessions: new SessionRecordings({ clock, keepsDeliveries: () => rules().config.session_transcripts !== 'no' }),
    sts: openStsPolicies(deps, membership, rules),
    tokens: AccessTokens.open({ net, clock, random, grants: store.records.grants, answered }, secrets?.oauth),
    tokenReports,
    tlsReports: new TlsReports({
      store,
      clock,
      source: `${store.leaseTerms().owner} ${clock.now()}`,
      settings: () => tlsReportSettings(rules().config),
      note: (text, level) => events.emit({ kind: 'note', level, text }),
    }),
  }
}

function openStsPolicies(
  { net, clock, store, reader, random, events }: RelayDeps,
  membership: Membership,
  rules: () => Rules,
): StsPolicies | undefined {
  if (reader === undefined) return undefined
  return new StsPolicies({
    net,
    clock,
    store: store.records.stsPolicies,
    reader: reader.records.stsPolicies,
    terms: () => ({
      ca: rules().secrets?.tls?.policyHostCa,
      allowPrivate: rules().config.smtp_allow_private_addresses,
    }),
    owns: (domain) => membership.owns(domain),
    draw: (key) => random.draw(key),
    note: (text, level = 'info') => events.emit({ kind: 'note', level, text }),
  })
}

export const tlsReportSettings = (config: Config): TlsReportSettings => ({
  enabled: config.smtp_tlsrpt_enable,
  sender: config.smtp_tlsrpt_sender,
  organization: config.myorigin,
  hostname: config.myhostname,
  allowPrivate: config.smtp_allow_private_addresses,
  skipsResumed: config.smtp_tlsrpt_skip_reused_handshakes,
  noPolicy: config.tlsrpt_no_policy,
})
