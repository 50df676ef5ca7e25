/**
 * Metrics for Prometheus. Counters follow the events; gauges are computed at each scrape. To limit the number of label values,
 * only the TOP destinations have labels of their own.
 */
import { FAILURE_CLASSES, failureClass } from '../mail/failure-class.ts'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { DestinationState, LiveDestination } from '../store/destination-status.ts'
import type { LoginFailure } from '../delivery/delivery-agent.ts'
import type { NodesView } from '../store/membership/node-table.ts'
import { isSynchronous, type DatabaseState } from '../store/postgres/database-state.ts'
import type { DoubtResolution } from '../store/postgres/writing/writing-events.ts'
import type { SubscriptionView } from '../store/outbox/subscription.ts'
import type { QueueStore } from '../store/queue-store.ts'
import { SHARDS } from '../store/membership/shards.ts'
import { balanceOf } from '../store/queue-balance.ts'
import { completeTally } from '../store/queue-tally.ts'
import type { Listen, QueueEvent } from './events.ts'
import type { QueueName } from '../mail/message.ts'
import { VERSION } from '../system/version.ts'

/** Sources of the gauges. */
export interface MetricSources {
  readonly clock: Clock
  readonly tally: QueueStore['tally']
  readonly destinations: () => readonly LiveDestination[]
  /** The nodes that share the queue, at the last beat; null without other nodes, as when absent. */
  readonly nodes?: () => NodesView | null
  /** The database of the queue, as seen last; null when it was not seen, and for a queue in a folder. */
  readonly database?: () => DatabaseState | null
  /** The subscriptions to events, with times of the clock. */
  readonly subscriptions?: () => Promise<readonly SubscriptionView[]>
}

export interface Metrics {
  readonly listen: Listen
  /** Records the duration of a commit that was made to measure it. */
  readonly committed: (took: Duration) => void
  /** Records the duration of a transaction of PostgreSQL. */
  readonly transacted: (took: Duration) => void
  readonly contentType: string
  /** The metrics of deferd, for docs/monitoring.md. */
  readonly texts: readonly MetricText[]
  /** Renders the metrics as Prometheus text. */
  render(): Promise<string>
}

/** Documentation of a metric. */
export interface MetricText {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

/** Number of destinations with labels: those with the most recipients waiting or in delivery. */
const TOP = 20
const QUEUES: readonly QueueName[] = ['incoming', 'active', 'deferred', 'hold', 'corrupt']
/**
 * Maximum time that a scrape waits for the counts. The first count of a large queue takes longer; the gauges have no values until
 * it has ended.
 */
const COUNT_TIMEOUT: Duration = 1_000
/** A signal that never aborts. */
const NEVER = new AbortController().signal

const DELAY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600, 21_600, 86_400]
const COMMIT_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5]
const ATTEMPT_PARTS = ['before_queue_manager', 'in_queue_manager', 'connection_setup', 'transmission'] as const

/** Creates the metrics of one registry and records their help texts. */
class MetricSet {
  readonly registry = new Registry()
  readonly texts: MetricText[] = []

  counter<Label extends string = never>(name: `${string}_total`, help: string, labels: readonly Label[] = []): Counter<Label> {
    return new Counter(this.#described('counter', name, help, labels))
  }

  gauge<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Gauge<Label> {
    return new Gauge(this.#described('gauge', name, help, labels))
  }

  histogram<Label extends string = never>(
    name: `${string}_seconds`,
    help: string,
    buckets: number[],
    labels: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ ...this.#described('histogram', name, help, labels), buckets })
  }

  #described<Label extends string>(type: MetricText['type'], suffix: string, help: string, labels: readonly Label[]) {
    const name = `deferd_${suffix}`
    this.texts.push({ name, type, help, labels })
    return { name, help, labelNames: [...labels], registers: [this.registry] }
  }
}

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

function counting(set: MetricSet): Listen {
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

function queueGauges(set: MetricSet, { clock, tally, destinations }: MetricSources): () => Promise<void> {
  const messages = set.gauge('queue_messages', 'Messages by queue.', ['queue'])
  const recipients = set.gauge('queue_recipients', 'Recipients without a final outcome, by queue.', ['queue'])
  const oldest = set.gauge('queue_oldest_seconds', 'Age of the oldest message, by queue.', ['queue'])
  const waiting = set.gauge('destination_queued_recipients', `Recipients that wait in the queue, for the ${TOP} destinations with most.`, [
    'destination',
  ])
  const balance = set.gauge(
    'balance_recipients',
    'Recipients since the queue was created: accepted = delivered + returned + deleted + waiting.',
    ['term'],
  )
  const closed = set.gauge(
    'closed_destination_recipients',
    `Recipients that wait for dead or suspended destinations, among the ${TOP} destinations with most.`,
    ['state'],
  )
  const count = async () => {
    const counted = await completeTally(() => tally(TOP))
    // The count has no row for an empty queue.
    for (const gauge of [messages, recipients, oldest]) for (const queue of QUEUES) gauge.set({ queue }, 0)
    for (const { queue, messages: of, recipients: to, oldestArrival } of counted.queues) {
      messages.set({ queue }, of)
      recipients.set({ queue }, to)
      oldest.set({ queue }, Math.max(0, clock.now() - oldestArrival) / 1000)
    }
    const { difference: _, ...terms } = balanceOf(counted)
    for (const [term, value] of Object.entries(terms)) balance.set({ term }, value)
    const states = new Map(destinations().map(({ destination, state }) => [destination, state]))
    for (const state of ['dead', 'suspended'] as const) {
      const there = counted.waiting.filter(({ destination }) => states.get(destination) === state)
      closed.set(
        { state },
        there.reduce((sum, one) => sum + one.recipients, 0),
      )
    }
    waiting.reset()
    for (const { destination, recipients: there } of counted.waiting) waiting.set({ destination }, there)
  }
  let running: Promise<void> | null = null
  return async () => {
    // Concurrent scrapes share one count. When the store cannot answer, the previous counts remain.
    running ??= count()
      .catch(() => undefined)
      .finally(() => (running = null))
    await withTimeout(running, clock, COUNT_TIMEOUT, NEVER)
  }
}

const STATES: readonly DestinationState[] = ['open', 'throttled', 'dead', 'suspended']

function destinationGauges(set: MetricSet, { destinations }: MetricSources): () => void {
  const largest = `, for the ${TOP} largest destinations`
  const known = set.gauge('destinations', 'Destinations in memory, by state (open, throttled, dead, suspended).', ['state'])
  const inFlight = set.gauge('deliveries_in_flight', 'Running deliveries.')
  const window = set.gauge('destination_window', `Limit of concurrent deliveries${largest}.`, ['destination'])
  const busy = set.gauge('destination_in_flight', `Running deliveries${largest}.`, ['destination'])
  const waiting = set.gauge('destination_waiting', `Recipients that wait for a delivery slot${largest}.`, ['destination'])
  return () => {
    const all = destinations()
    for (const state of STATES) known.set({ state }, all.filter((one) => one.state === state).length)
    inFlight.set(all.reduce((sum, one) => sum + one.inFlight, 0))
    for (const gauge of [window, busy, waiting]) gauge.reset()
    const bySize = all.toSorted((a, b) => b.waiting + b.inFlight - a.waiting - a.inFlight || (a.destination < b.destination ? -1 : 1))
    for (const one of bySize.slice(0, TOP)) {
      window.set({ destination: one.destination }, one.window)
      busy.set({ destination: one.destination }, one.inFlight)
      waiting.set({ destination: one.destination }, one.waiting)
    }
  }
}

function nodeGauges(set: MetricSet, { nodes }: MetricSources): () => void {
  const known = set.gauge('nodes', 'Nodes that share the queue, by state (active, draining), at the last beat of this node.', ['state'])
  const beats = set.gauge('node_beat_seconds', 'Age of the last beat of each node, at the last beat of this node.', ['node'])
  const shards = set.gauge('shards', 'Shards of destinations, by owner (own, other, free), at the last beat of this node.', ['owner'])
  return () => {
    const view = nodes?.() ?? null
    if (view === null) return
    // A command that changes the queue is a node without settings.
    const daemons = view.nodes.filter(({ settings }) => settings !== '')
    const draining = daemons.filter((node) => node.draining).length
    known.set({ state: 'active' }, daemons.length - draining)
    known.set({ state: 'draining' }, draining)
    beats.reset()
    for (const { name, beatAge } of daemons) beats.set({ node: name }, beatAge / 1000)
    shards.set({ owner: 'own' }, view.mine.length)
    shards.set({ owner: 'other' }, SHARDS - view.mine.length - view.freeShards)
    shards.set({ owner: 'free' }, view.freeShards)
  }
}

function databaseGauges(set: MetricSet, { database }: MetricSources): () => void {
  const oldest = set.gauge(
    'database_oldest_transaction_seconds',
    'Age of the oldest transaction that holds a snapshot in PostgreSQL; dead rows are kept until its end.',
  )
  const horizon = set.gauge(
    'database_horizon_transactions',
    'Transactions since the oldest one whose rows PostgreSQL must keep (xmin), for sessions, standbys and replication slots.',
  )
  const dead = set.gauge('database_dead_rows', 'Dead rows in PostgreSQL, by table.', ['table'])
  const standbys = set.gauge('database_standbys', 'Connected standbys of PostgreSQL, by kind of replication (synchronous, asynchronous).', [
    'replication',
  ])
  const lag = set.gauge('database_standby_lag_seconds', 'Time by which the log of a standby is behind.', ['standby'])
  const behind = set.gauge('database_standby_lag_bytes', 'Bytes of log that a standby has not stored.', ['standby'])
  return () => {
    const state = database?.() ?? null
    for (const gauge of [dead, standbys, lag, behind]) gauge.reset()
    if (state === null) return
    oldest.set((state.oldest?.age ?? 0) / 1000)
    horizon.set(state.horizon)
    for (const { table, rows } of state.deadRows) dead.set({ table }, rows)
    if (state.standbys === null) return
    const synchronous = state.standbys.filter(isSynchronous).length
    standbys.set({ replication: 'synchronous' }, synchronous)
    standbys.set({ replication: 'asynchronous' }, state.standbys.length - synchronous)
    for (const one of state.standbys) {
      lag.set({ standby: one.name }, one.lag / 1000)
      behind.set({ standby: one.name }, one.behind)
    }
  }
}

function subscriptionGauges(set: MetricSet, { subscriptions, clock }: MetricSources): () => Promise<void> {
  const lag = set.gauge('event_lag_seconds', 'Age of the oldest event that a subscription has not had; 0 when it has had all.', [
    'subscription',
  ])
  const parked = set.gauge('events_parked', 'Events that a target refused and that wait for `deferd webhook replay`.', ['subscription'])
  const disabled = set.gauge('subscription_disabled', '1 for a subscription whose target wants no more events (410), else 0.', [
    'subscription',
  ])
  return async () => {
    for (const gauge of [lag, parked, disabled]) gauge.reset()
    for (const one of (await subscriptions?.()) ?? []) {
      const label = { subscription: one.name }
      // A subscription without a target is read by programs at their own pace.
      if (one.settings.to !== '') lag.set(label, one.oldestAt === null ? 0 : Math.max(0, clock.now() - one.oldestAt) / 1000)
      parked.set(label, one.parked)
      disabled.set(label, one.progress.state === 'disabled' ? 1 : 0)
    }
  }
}

export function openMetrics(sources: MetricSources): Metrics {
  const set = new MetricSet()
  collectDefaultMetrics({ register: set.registry })
  set
    .gauge('build_info', 'Always 1; the labels are the versions of deferd and Node.', ['version', 'node'])
    .set({ version: VERSION, node: process.version }, 1)
  const listen = counting(set)
  const [readQueue, readDestinations] = [queueGauges(set, sources), destinationGauges(set, sources)]
  const [readNodes, readDatabase] = [nodeGauges(set, sources), databaseGauges(set, sources)]
  const readSubscriptions = subscriptionGauges(set, sources)
  const commits = set.histogram(
    'store_commit_seconds',
    'Time of one commit with its sync, measured by each health check and once a minute.',
    COMMIT_BUCKETS,
  )
  const transactions = set.histogram(
    'database_transaction_seconds',
    'Time of each transaction of this node in PostgreSQL, from its first statement to the answer to its commit.',
    COMMIT_BUCKETS,
  )
  return {
    listen,
    committed: (took) => commits.observe(took / 1000),
    transacted: (took) => transactions.observe(took / 1000),
    contentType: set.registry.contentType,
    texts: set.texts,
    render: async () => {
      await readQueue()
      readDestinations()
      readNodes()
      readDatabase()
      await readSubscriptions()
      return set.registry.metrics()
    },
  }
}
