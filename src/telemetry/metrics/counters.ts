/** Counters of the metrics: they follow the events. */
import type { LoginFailure } from '../../delivery/delivery-agent.ts'
import { FAILURE_CLASSES, failureClass } from '../../mail/failure-class.ts'
import type { DoubtResolution } from '../../store/membership/writing-events.ts'
import type { Listen, QueueEvent } from '../events.ts'
import type { MetricSet } from './metric-set.ts'

const DELAY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600, 21_600, 86_400]
const ATTEMPT_PARTS = ['before_queue_manager', 'in_queue_manager', 'connection_setup', 'transmission'] as const

/** Class and subject of an enhanced status code (RFC 3463), `4.4.1` → `4.4`, which have few enough values for a label. */
const statusGroup = (status: string): string => status.split('.').slice(0, 2).join('.')

function counters(set: MetricSet) {
  return {
    connections: set.counter('smtpd_connections_total', 'SMTP connections of clients.'),
    open: set.gauge('smtpd_connections', 'Open SMTP connections of clients.'),
    refused: set.counter('smtpd_refused_total', 'Refused commands of clients, by stage and class of the reply (4xx, 5xx).', [
      'stage',
      'class',
    ]),
    contentActions: set.counter(
      'content_actions_total',
      'Actions of header_checks, body_checks and smtp_header_checks, by action and part.',
      ['action', 'part'],
    ),
    accessActions: set.counter(
      'access_actions_total',
      'Actions of access tables and policy servers that did not refuse the recipient, by action.',
      ['action'],
    ),
    accepted: set.counter('accepted_messages_total', 'Messages accepted into the queue; “received” in pflogsumm.'),
    acceptedBytes: set.counter('accepted_bytes_total', 'Bytes of accepted messages.'),
    attempts: set.counter(
      'attempts_total',
      'Delivery attempts, one for each recipient, by outcome (delivered, deferred, bounced, expired) and class and subject of the status (4.4).',
      ['outcome', 'status'],
    ),
    failures: set.counter('failures_total', 'Failed delivery attempts, one for each recipient, by class (docs/deliverability.md).', [
      'class',
    ]),
    delay: set.histogram('delivery_delay_seconds', 'Time from arrival to delivery, for each recipient.', DELAY_BUCKETS),
    parts: set.histogram('attempt_seconds', 'Parts of delivery attempts, as delays=a/b/c/d in the log.', DELAY_BUCKETS, ['part']),
    possiblySent: set.counter('possibly_sent_total', 'Delivery attempts that ended after the final dot without a reply.'),
    logins: set.counter('login_failures_total', 'Delivery attempts to a configured next hop without a login that it accepts, by reason.', [
      'reason',
    ]),
    policyFailures: set.counter(
      'tls_policy_failures_total',
      'Hosts that did not meet the TLS policy of a domain, by policy (sts, dane) and mode (enforce; testing: mail was sent).',
      ['policy', 'mode'],
    ),
    tokenRequests: set.counter(
      'oauth_requests_total',
      'Requests for access tokens, by table and result (token; temporary: it is asked again; refused: something must be changed).',
      ['oauth', 'result'],
    ),
    signatures: set.counter('dkim_signatures_total', 'DKIM signatures of accepted messages and notices, by signing domain and algorithm.', [
      'domain',
      'algorithm',
    ]),
    unsigned: set.counter(
      'dkim_unsigned_total',
      'Messages without a new DKIM signature where a [dkim] table is configured, by reason (from: not exactly one From address; no-table; present: already signed, or all keys are marked with ?).',
      ['reason'],
    ),
    expired: set.counter('expired_recipients_total', 'Expired recipients, by whether an operator forced it.', ['forced']),
    removed: set.counter('removed_messages_total', 'Messages that left the queue.'),
    quarantined: set.counter('quarantined_messages_total', 'Messages moved to the corrupt queue because they could not be read.'),
    notices: set.counter('notices_total', 'Notices (DSNs) sent, by kind (failure, delay, success) and addressee (sender, postmaster).', [
      'kind',
      'to',
    ]),
    operations: set.counter('operations_total', 'Messages changed by operators, by operation.', ['operation']),
    deaths: set.counter('destination_deaths_total', 'Times that a destination became dead.'),
    storeUnavailable: set.counter('store_unavailable_total', 'Times that the store became unavailable because a commit failed.'),
    takeovers: set.counter('node_takeovers_total', 'Silent nodes that this node has taken over.'),
    fenced: set.counter('node_fenced_total', 'Times that this node was taken over by another one.'),
    inDoubt: set.counter(
      'commits_in_doubt_total',
      'Commits to PostgreSQL whose answer was lost, by what the look-up found (committed, not-committed, unknown).',
      ['resolution'],
    ),
    lost: set.counter('lost_messages_total', 'Acknowledged messages that were missing in PostgreSQL after a failover.'),
    reports: set.counter('log_reports_total', 'Log lines of level warning, error, fatal or panic.', ['level']),
  }
}

type Counters = ReturnType<typeof counters>

function countAttempts(count: Counters, { request, result, attempts }: Extract<QueueEvent, { kind: 'attempted' }>): void {
  if (result.possiblySent === true) count.possiblySent.inc()
  if (result.login !== undefined) count.logins.inc({ reason: result.login })
  for (const { outcome, status, at, delays } of attempts) {
    count.attempts.inc({ outcome, status: statusGroup(status.status) })
    if (outcome !== 'delivered') count.failures.inc({ class: failureClass(status).class })
    if (outcome === 'delivered') count.delay.observe(Math.max(0, at - request.message.arrivedAt) / 1000)
    ATTEMPT_PARTS.forEach((part, i) => count.parts.observe({ part }, (delays[i] ?? 0) / 1000))
  }
}

const RESULTS = ['token', 'temporary', 'refused'] as const

/** Counts a request for an access token. The first one of a table begins the series of all results. */
function countRequest({ tokenRequests }: Counters, oauth: string, result: (typeof RESULTS)[number]): void {
  for (const one of RESULTS) tokenRequests.inc({ oauth, result: one }, one === result ? 1 : 0)
}

/** Creates the counters. The result counts an event. */
export function openCounters(set: MetricSet): Listen {
  const count = counters(set)
  for (const name of FAILURE_CLASSES) count.failures.inc({ class: name }, 0)
  // Prometheus sees no increase in a series that begins with its first failure.
  for (const reason of ['refused', 'missing'] as const satisfies readonly LoginFailure[]) count.logins.inc({ reason }, 0)
  for (const policy of ['sts', 'dane']) for (const mode of ['enforce', 'testing']) count.policyFailures.inc({ policy, mode }, 0)
  for (const resolution of ['committed', 'not-committed', 'unknown'] as const satisfies readonly DoubtResolution[])
    count.inDoubt.inc({ resolution }, 0)
  return (event) => {
    switch (event.kind) {
      case 'connected':
        count.connections.inc()
        return count.open.inc()
      case 'disconnected':
        return count.open.dec()
      case 'refused':
        return count.refused.inc({ stage: event.stage.toLowerCase(), class: `${Math.trunc(event.reply.code / 100)}xx` })
      case 'accepted':
        count.accepted.inc()
        return count.acceptedBytes.inc(event.message.size)
      case 'attempted':
        return countAttempts(count, event)
      case 'expired':
        return count.expired.inc({ forced: String(event.forced) }, event.recipients.length)
      case 'removed':
        return count.removed.inc()
      case 'quarantined':
        return count.quarantined.inc()
      case 'notice-sent':
        return count.notices.inc({ kind: event.notice, to: event.to })
      case 'operated':
        return count.operations.inc({ operation: event.operation })
      case 'died':
        return count.deaths.inc()
      case 'tls-policy-failed':
        return count.policyFailures.inc({ policy: event.policy, mode: event.enforced ? 'enforce' : 'testing' })
      case 'oauth-token':
        return countRequest(count, event.oauth, 'token')
      case 'oauth-failed':
        return countRequest(count, event.oauth, event.result)
      case 'signed': {
        if (event.unsigned !== null) return count.unsigned.inc({ reason: event.unsigned })
        for (const algorithm of event.algorithms) count.signatures.inc({ domain: event.domain, algorithm })
        return undefined
      }
      case 'store-unavailable':
        return count.storeUnavailable.inc()
      case 'node-taken-over':
        return count.takeovers.inc()
      case 'fenced':
        return count.fenced.inc()
      case 'commit-in-doubt':
        return count.inDoubt.inc({ resolution: event.resolution })
      case 'mail-lost':
        return count.lost.inc(event.queueIds.length)
      case 'note':
        return event.level === 'info' ? undefined : count.reports.inc({ level: event.level })
      case 'access-action':
        return count.accessActions.inc({ action: event.action })
      case 'content-checked':
        return count.contentActions.inc({ action: event.action, part: event.part })
      case 'discarded':
      case 'client-failure':
      case 'activated':
      case 'deferred':
      case 'tls-established':
      case 'notice-dropped':
      case 'window':
      case 'revived':
      case 'suspended':
      case 'resumed':
      case 'node-joined':
      case 'shards-taken':
      case 'shards-released':
      case 'store-recovered':
        return undefined
    }
  }
}
