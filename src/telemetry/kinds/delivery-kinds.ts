/** Kinds of events of the queue manager, of deliveries and of their connections. */
import type { AttemptResult, Feedback } from '../../delivery/delivery-agent.ts'
import type { TlsPolicyFailure } from '../../delivery/tls/policy-failure.ts'
import type { TlsConnection } from '../../delivery/tls/tls-connection.ts'
import type { SigningResult } from '../../dkim/message-signing.ts'
import { about, line, logged, loggedEach, same, seconds, UNLOGGED, type UnloggedKind } from '../../events/event-kind.ts'
import { ATTEMPT, MESSAGE, type RecipientAttempt } from '../../events/event-members.ts'
import { loginText } from '../../events/published-kinds.ts'
import { hintOf } from '../../mail/login-refusal.ts'
import { releasedAt, type DeliveryRequest, type DestinationName, type Message, type RecipientId } from '../../mail/message.ts'
import type { Settled } from '../../store/recorded-outcomes.ts'
import type { Duration } from '../../system/clock.ts'
import { attemptLines, deferralLines, suspendedText, type Attempted, type Deferral } from './delivery-lines.ts'

function recipientAttempts({ request, result, attempts }: Attempted) {
  const addresses = new Map(request.recipients.map(({ id, address }) => [id, address]))
  return attempts.map((attempt) => ({ request, result, attempt, address: addresses.get(attempt.recipient) ?? '' }))
}

export const DELIVERY_KINDS = {
  /** No recipient of a destination is listed while too many of them fail. */
  'listing-braked': logged<{ readonly destination: DestinationName }>({
    level: 'warn',
    about: 'too many recipients of a destination were refused as unknown within an hour: none of them is put on the suppression list',
    record: same('destination'),
    lines: ({ destination }) =>
      line('qmgr', `warning: suppression list: too many recipients of ${destination} are refused as unknown; none of them is listed`),
  }),
  activated: logged<{ readonly message: Message; readonly recipientCount: number }>({
    level: 'info',
    about: 'a message entered the active queue',
    record: { ...MESSAGE, size: ({ message }) => message.size, recipient_count: ({ recipientCount }) => recipientCount },
    lines: ({ message, recipientCount }) =>
      line('qmgr', about(message, `from=<${message.sender}>, size=${message.size}, nrcpt=${recipientCount} (queue active)`)),
  }),
  attempted: loggedEach<Attempted, RecipientAttempt & { readonly result: Pick<AttemptResult, 'oauth'> }>({
    level: 'info',
    about:
      'a delivery attempt ended; one record for each recipient; `class` is that of a failure (docs/deliverability.md), null when delivered; `tls` is as in the format `postfix`, null when no host was chosen; `login` is `refused` or `missing` when a configured next hop accepts no mail for lack of it; `oauth` is the table of the login where an access token takes the place of a password; `hint` says what to do about a refusal that concerns the login',
    record: {
      ...ATTEMPT,
      oauth: ({ result }) => result.oauth ?? null,
      hint: ({ attempt }) => (attempt.outcome === 'delivered' ? null : hintOf(attempt.status)),
    },
    rows: recipientAttempts,
    lines: attemptLines,
  }),
  deferred: loggedEach<Deferral, Deferral & { readonly recipient: string }>({
    level: 'info',
    about: 'a recipient begins to wait for a dead destination, without an attempt; one record for each recipient',
    record: {
      ...MESSAGE,
      ...same('recipient', 'destination'),
      delay: ({ message, at }) => seconds(at - releasedAt(message)),
      status: ({ siteStatus }) => siteStatus.status,
      reason: ({ siteStatus }) => suspendedText(siteStatus),
    },
    rows: (event) => event.recipients.map((recipient) => ({ ...event, recipient })),
    lines: deferralLines,
  }),
  expired: logged<{
    readonly message: Message
    readonly forced: boolean
    readonly recipients: readonly RecipientId[]
    /** The request of mail that expires without an attempt, with the state of its recipients; null after an attempt. */
    readonly unattempted: { readonly request: DeliveryRequest; readonly settled: readonly Settled[] } | null
  }>({
    level: 'info',
    about: 'recipients expired, or were forced to by an operator',
    record: { ...MESSAGE, ...same('forced'), recipient_count: ({ recipients }) => recipients.length },
    lines: ({ message, forced }) =>
      line('qmgr', about(message, `from=<${message.sender}>, status=${forced ? 'force-expired' : 'expired'}, returned to sender`)),
  }),
}

const POLICY_NAMES = { sts: 'MTA-STS policy', dane: 'TLSA records' } as const

export const CONNECTION_KINDS = {
  /** Logged with `smtp_tls_loglevel` 1 (Postfix tls_log_summary). */
  'tls-established': logged<{ /** `mx.example[192.0.2.1]:25` */ readonly relay: string } & TlsConnection>({
    level: 'info',
    about: 'a TLS connection to a next hop; with `smtp_tls_loglevel` 1 only',
    record: same('relay', 'trust', 'reused', 'protocol', 'cipher', 'bits'),
    lines: ({ relay, trust, reused, protocol, cipher, bits }) =>
      line(
        'smtp',
        `${trust} TLS connection ${reused ? 'reused' : 'established'} to ${relay}: ${protocol} with cipher ${cipher} (${bits}/${bits} bits)`,
      ),
  }),
  /** A host did not meet the TLS policy of a domain. An enforced policy keeps mail from the host; one that is tested would. */
  'tls-policy-failed': logged<TlsPolicyFailure>({
    level: 'warn',
    about: 'a host did not meet the TLS policy of a domain; with `enforced`, no mail was sent to it',
    record: same('domain', 'policy', 'enforced', 'relay', 'reason'),
    lines: ({ domain, policy, enforced, relay, reason }) =>
      line('smtp', `warning: ${relay} ${enforced ? 'does' : 'would'} not get mail by the ${POLICY_NAMES[policy]} of ${domain}: ${reason}`),
  }),
  /** An authority gave an access token of a table `[oauth.NAME]`. */
  'oauth-token': logged<{
    readonly oauth: string
    /** Null where the token is not that of a single user. */
    readonly user: string | null
    readonly lifetime: Duration
  }>({
    level: 'info',
    about:
      'an access token of a table `[oauth.NAME]` came, with its `lifetime`; `user` is null where one token serves all users of the table',
    record: { ...same('oauth', 'user'), lifetime: ({ lifetime }) => seconds(lifetime) },
    lines: (event) => line('smtp', `${loginText(event)}: access token for ${Math.round(event.lifetime / 1000)} s`),
  }),
}

export const UNLOGGED_KINDS: {
  /** A message was signed with DKIM, or not, with the reason; only where a [dkim] table is configured. */
  readonly signed: UnloggedKind<SigningResult>
  readonly window: UnloggedKind<{
    readonly destination: DestinationName
    readonly window: number
    readonly inFlight: number
    readonly feedback: Feedback
  }>
} = { signed: UNLOGGED, window: UNLOGGED }
