/** Counters of the metrics: they follow the events. */
import { releasedAt } from '../../mail/message.ts'
import type { LoginFailure } from '../../delivery/delivery-agent.ts'
import { FAILURE_CLASSES, failureClass } from '../../mail/failure-class.ts'
import type { DoubtResolution } from '../../store/membership/writing-events.ts'
import { onEvents, type Listen } from '../events.ts'
import type { MetricSet } from './metric-set.ts'

const DELAY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600, 21_600, 86_400]
const ATTEMPT_PARTS = ['before_queue_manager', 'in_queue_manager', 'connection_setup', 'transmission'] as const

/** Class and subject of an enhanced status code (RFC 3463), `4.4.1` → `4.4`, which have few enough values for a label. */
const statusGroup = (status: string): string => status.split('.').slice(0, 2).join('.')

// Each function creates metrics, in the order of docs/monitoring.md, and returns a listener that changes them.

function ofClients(set: MetricSet): Listen {
  const connections = set.counter('smtpd_connections_total', 'SMTP connections of clients.')
  const open = set.gauge('smtpd_connections', 'Open SMTP connections of clients.')
  const refused = set.counter(
    'smtpd_refused_total',
    'Refused commands of clients, by stage (`limit` for quotas and the limits of the queue) and class of the reply (4xx, 5xx).',
    ['stage', 'class'],
  )
  const contentActions = set.counter(
    'content_actions_total',
    'Actions of header_checks, body_checks and smtp_header_checks, by action and part.',
    ['action', 'part'],
  )
  const accessActions = set.counter(
    'access_actions_total',
    'Actions of access tables and policy servers that did not refuse the recipient, by action.',
    ['action'],
  )
  const messages = set.counter('accepted_messages_total', 'Messages accepted into the queue; “received” in pflogsumm.')
  const bytes = set.counter('accepted_bytes_total', 'Bytes of accepted messages.')
  return onEvents({
    connected: () => {
      connections.inc()
      open.inc()
    },
    disconnected: () => open.dec(),
    refused: ({ stage, reply }) =>
      refused.inc({ stage: reply.limit === undefined ? stage.toLowerCase() : 'limit', class: `${Math.trunc(reply.code / 100)}xx` }),
    'content-checked': ({ action, part }) => contentActions.inc({ action, part }),
    'access-action': ({ action }) => accessActions.inc({ action }),
    accepted: ({ message }) => {
      messages.inc()
      bytes.inc(message.size)
    },
  })
}

function ofAttempts(set: MetricSet): Listen {
  const all = set.counter(
    'attempts_total',
    'Delivery attempts, one for each recipient, by outcome (delivered, deferred, bounced, expired) and class and subject of the status (4.4).',
    ['outcome', 'status'],
  )
  const failures = set.counter('failures_total', 'Failed delivery attempts, one for each recipient, by class (docs/deliverability.md).', [
    'class',
  ])
  const delay = set.histogram('delivery_delay_seconds', 'Time from arrival to delivery, for each recipient.', DELAY_BUCKETS)
  const parts = set.histogram('attempt_seconds', 'Parts of delivery attempts, as delays=a/b/c/d in the log.', DELAY_BUCKETS, ['part'])
  const possiblySent = set.counter('possibly_sent_total', 'Delivery attempts that ended after the final dot without a reply.')
  const logins = set.counter(
    'login_failures_total',
    'Delivery attempts to a configured next hop without a login that it accepts, by reason.',
    ['reason'],
  )
  for (const name of FAILURE_CLASSES) failures.inc({ class: name }, 0)
  // Prometheus sees no increase in a series that begins with its first failure.
  for (const reason of ['refused', 'missing'] as const satisfies readonly LoginFailure[]) logins.inc({ reason }, 0)
  return onEvents({
    attempted: ({ request, result, attempts }) => {
      if (result.possiblySent === true) possiblySent.inc()
      if (result.login !== undefined) logins.inc({ reason: result.login })
      for (const { outcome, status, at, delays } of attempts) {
        all.inc({ outcome, status: statusGroup(status.status) })
        if (outcome === 'delivered') delay.observe(Math.max(0, at - releasedAt(request.message)) / 1000)
        else failures.inc({ class: failureClass(status).class })
        ATTEMPT_PARTS.forEach((part, i) => parts.observe({ part }, (delays[i] ?? 0) / 1000))
      }
    },
  })
}

/** Mail without a class is not counted, so that there are no series without classes. */
function ofClasses(set: MetricSet): Listen {
  const starts = set.counter('class_starts_total', 'Delivery attempts, one for each recipient, by class of mail (docs/classes.md).', [
    'class',
  ])
  const delay = set.histogram(
    'class_start_delay_seconds',
    'Time from the arrival of new mail, and from the due time of other mail, to the begin of the attempt, for each recipient, by class of mail.',
    DELAY_BUCKETS,
    ['class'],
  )
  return onEvents({
    attempted: ({ request, result }) => {
      const { class: name } = request.message
      if (name === undefined) return
      starts.inc({ class: name }, request.recipients.length)
      for (const { dueAt } of request.recipients) delay.observe({ class: name }, Math.max(0, result.times.startedAt - dueAt) / 1000)
    },
  })
}

const TOKEN_RESULTS = ['token', 'temporary', 'refused'] as const

function ofKeys(set: MetricSet): Listen {
  const policyFailures = set.counter(
    'tls_policy_failures_total',
    'Hosts that did not meet the TLS policy of a domain, by policy (sts, dane) and mode (enforce; testing: mail was sent).',
    ['policy', 'mode'],
  )
  const tokens = set.counter(
    'oauth_requests_total',
    'Requests for access tokens, by table and result (token; temporary: it is asked again; refused: something must be changed).',
    ['oauth', 'result'],
  )
  const signatures = set.counter(
    'dkim_signatures_total',
    'DKIM signatures of accepted messages and notices, by signing domain and algorithm.',
    ['domain', 'algorithm'],
  )
  const unsigned = set.counter(
    'dkim_unsigned_total',
    'Messages without a new DKIM signature where a [dkim] table is configured, by reason (from: not exactly one From address; no-table; present: already signed, or all keys are marked with ?).',
    ['reason'],
  )
  for (const policy of ['sts', 'dane']) for (const mode of ['enforce', 'testing']) policyFailures.inc({ policy, mode }, 0)
  // The first request of a table begins the series of all results.
  const countRequest = (oauth: string, result: (typeof TOKEN_RESULTS)[number]): void => {
    for (const one of TOKEN_RESULTS) tokens.inc({ oauth, result: one }, one === result ? 1 : 0)
  }
  return onEvents({
    'tls-policy-failed': ({ policy, enforced }) => policyFailures.inc({ policy, mode: enforced ? 'enforce' : 'testing' }),
    'oauth-token': ({ oauth }) => countRequest(oauth, 'token'),
    'oauth-failed': ({ oauth, result }) => countRequest(oauth, result),
    signed: (result) => {
      if (result.unsigned !== null) return unsigned.inc({ reason: result.unsigned })
      for (const algorithm of result.algorithms) signatures.inc({ domain: result.domain, algorithm })
    },
  })
}

const RUN_RESULTS = ['done', 'failed', 'skipped'] as const

function ofSchedules(set: MetricSet): Listen {
  const runs = set.counter(
    'schedule_runs_total',
    'Runs of the [schedule.NAME] tables, by table and result (done, failed; skipped: an earlier run went on, or its time had passed).',
    ['schedule', 'result'],
  )
  // The first run of a table begins the series of all results.
  const countRun = (schedule: string, result: (typeof RUN_RESULTS)[number]): void => {
    for (const one of RUN_RESULTS) runs.inc({ schedule, result: one }, one === result ? 1 : 0)
  }
  return onEvents({
    'schedule-done': ({ schedule }) => countRun(schedule, 'done'),
    'schedule-failed': ({ schedule }) => countRun(schedule, 'failed'),
    'schedule-skipped': ({ schedule }) => countRun(schedule, 'skipped'),
  })
}

function ofTheQueue(set: MetricSet): Listen {
  const expired = set.counter('expired_recipients_total', 'Expired recipients, by whether an operator forced it.', ['forced'])
  const removed = set.counter('removed_messages_total', 'Messages that left the queue.')
  const quarantined = set.counter('quarantined_messages_total', 'Messages moved to the corrupt queue because they could not be read.')
  const notices = set.counter(
    'notices_total',
    'Notices (DSNs) sent, by kind (failure, delay, success) and addressee (sender, postmaster).',
    ['kind', 'to'],
  )
  const cancelled = set.counter('cancelled_recipients_total', 'Recipients that the submitters of their messages cancelled.')
  const operations = set.counter('operations_total', 'Messages changed by operators, by operation.', ['operation'])
  const deaths = set.counter('destination_deaths_total', 'Times that a destination became dead.')
  const unavailable = set.counter('store_unavailable_total', 'Times that the store became unavailable because a commit failed.')
  return onEvents({
    expired: ({ forced, recipients }) => expired.inc({ forced: String(forced) }, recipients.length),
    removed: () => removed.inc(),
    quarantined: () => quarantined.inc(),
    'notice-sent': ({ notice, to }) => notices.inc({ kind: notice, to }),
    operated: ({ operation }) => operations.inc({ operation }),
    cancelled: ({ recipients }) => cancelled.inc(recipients.length),
    died: () => deaths.inc(),
    'store-unavailable': () => unavailable.inc(),
  })
}

function ofNodes(set: MetricSet): Listen {
  const takeovers = set.counter('node_takeovers_total', 'Silent nodes that this node has taken over.')
  const fenced = set.counter('node_fenced_total', 'Times that this node was taken over by another one.')
  const inDoubt = set.counter(
    'commits_in_doubt_total',
    'Commits to PostgreSQL whose answer was lost, by what the look-up found (committed, not-committed, unknown).',
    ['resolution'],
  )
  const lost = set.counter('lost_messages_total', 'Acknowledged messages that were missing in PostgreSQL after a failover.')
  const reports = set.counter('log_reports_total', 'Log lines of level warning, error, fatal or panic.', ['level'])
  for (const resolution of ['committed', 'not-committed', 'unknown'] as const satisfies readonly DoubtResolution[])
    inDoubt.inc({ resolution }, 0)
  return onEvents({
    'node-taken-over': () => takeovers.inc(),
    fenced: () => fenced.inc(),
    'commit-in-doubt': ({ resolution }) => inDoubt.inc({ resolution }),
    'mail-lost': ({ queueIds }) => lost.inc(queueIds.length),
    note: ({ level }) => (level === 'info' ? undefined : reports.inc({ level })),
  })
}

/** Creates the counters. The result counts an event. */
export function openCounters(set: MetricSet): Listen {
  const listeners = [ofClients, ofAttempts, ofClasses, ofKeys, ofSchedules, ofTheQueue, ofNodes].map((open) => open(set))
  return (event, at) => {
    for (const listener of listeners) listener(event, at)
  }
}
