/**
 * Gauges of the metrics: they are computed at each scrape. To limit the number of label values, only the TOP destinations have
 * labels of their own.
 */
import { withTimeout, type Clock, type Duration } from '../../system/clock.ts'
import { QUEUE_NAMES } from '../../mail/message.ts'
import type { TokenState } from '../../oauth/access-tokens.ts'
import {
  CLOSED_STATES,
  CONNECTING_SHOWN,
  DESTINATION_STATES,
  isRefusing,
  type DeliverySlots,
  type RefusalFacts,
} from '../../store/destination-status.ts'
import type { NodesView } from '../../store/membership/node-table.ts'
import { SHARDS } from '../../store/membership/shards.ts'
import type { SubscriptionView } from '../../store/outbox/subscription.ts'
import { isSynchronous, type DatabaseState } from '../../store/membership/database-state.ts'
import { balanceOf } from '../../store/counts/queue-balance.ts'
import type { QueueStore } from '../../store/queue-store.ts'
import type { SideName } from '../../store/store-health.ts'
import { completeTally } from '../../store/counts/queue-tally.ts'
import type { MetricSet } from './metric-set.ts'

interface GaugedDestination extends RefusalFacts {
  readonly destination: string
  readonly window: number
}

export interface MetricSources {
  readonly clock: Clock
  readonly tally: QueueStore['tally']
  readonly destinations: () => readonly GaugedDestination[]
  /** Names of the classes of mail; none when absent. */
  readonly classes?: () => readonly string[]
  /** The delivery slots; none when absent, or before the queue is open. */
  readonly slots?: () => DeliverySlots | undefined
  /** The nodes that share the queue, at the last beat; null, or absent, without other nodes. */
  readonly nodes?: () => NodesView | null
  /** State of the database, as last read; null before the first read, and for a queue in a folder. */
  readonly database?: () => DatabaseState | null
  /** Time for which a side of the store has had a call without answering any; 0 for a side that answers, and when absent. */
  readonly silence?: (side: SideName) => Duration
  /** Limits of the queue with their use; none when absent. */
  readonly limits?: () => readonly LimitUse[]
  /** The largest used part of a limit of each quota; none when absent. */
  readonly quotas?: () => ReadonlyMap<string, number>
  /** Access tokens for next hops; none when absent. */
  readonly tokens?: () => readonly TokenState[]
  /** Subscriptions to events, with times of the queue's clock. */
  readonly subscriptions?: () => Promise<readonly SubscriptionView[]>
}

/** Use of a limit of the queue, or of that of a share. */
interface LimitUse {
  readonly share: string | null
  readonly used: number
  readonly limit: number
}

/** Number of destinations with labels: those with the most recipients waiting or in delivery. */
const TOP = 20
/**
 * A scrape waits this long for the counts. The first count of a large queue takes longer, and the gauges have no values until it has ended.
 */
const COUNT_LIMIT: Duration = 1_000

function queueGauges(set: MetricSet, { clock, tally, destinations, classes = () => [] }: MetricSources): () => Promise<void> {
  const messages = set.gauge('queue_messages', 'Messages by queue.', ['queue'])
  const recipients = set.gauge('queue_recipients', 'Recipients without a final outcome, by queue.', ['queue'])
  const oldest = set.gauge('queue_oldest_seconds', 'Age of the oldest message, by queue.', ['queue'])
  const waiting = set.gauge('destination_queued_recipients', `Recipients that wait in the queue, for the ${TOP} destinations with most.`, [
    'destination',
  ])
  const ofClass = set.gauge('class_waiting', 'Recipients that wait in the queue, by class of mail (docs/classes.md).', ['class'])
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
    for (const gauge of [messages, recipients, oldest]) for (const queue of QUEUE_NAMES) gauge.set({ queue }, 0)
    for (const { queue, messages: of, recipients: to, oldestArrival } of counted.queues) {
      messages.set({ queue }, of)
      recipients.set({ queue }, to)
      oldest.set({ queue }, Math.max(0, clock.now() - oldestArrival) / 1000)
    }
    const { difference: _, ...terms } = balanceOf(counted)
    for (const [term, value] of Object.entries(terms)) balance.set({ term }, value)
    const states = new Map(destinations().map(({ destination, state }) => [destination, state]))
    for (const state of CLOSED_STATES) {
      const there = counted.waiting.filter(({ destination }) => states.get(destination) === state)
      closed.set(
        { state },
        there.reduce((sum, one) => sum + one.recipients, 0),
      )
    }
    ofClass.reset()
    for (const name of classes()) ofClass.set({ class: name }, 0)
    for (const { class: name, recipients: there } of counted.classes) ofClass.set({ class: name }, there)
    waiting.reset()
    for (const { destination, recipients: there } of counted.waiting) if (there > 0) waiting.set({ destination }, there)
  }
  let running: Promise<void> | null = null
  return async () => {
    // Concurrent scrapes share one count. When the store cannot answer, the previous counts remain.
    running ??= count()
      .catch(() => undefined)
      .finally(() => (running = null))
    await withTimeout(running, clock, COUNT_LIMIT)
  }
}

function destinationGauges(set: MetricSet, { destinations }: MetricSources): () => void {
  const largest = `, for the ${TOP} largest destinations`
  const known = set.gauge('destinations', 'Destinations in memory, by state (open, throttled, dead, suspended).', ['state'])
  const refusing = set.gauge(
    'destinations_without_delivery',
    'Open destinations with mail that delivered none in their last attempts, at least ten.',
  )
  const window = set.gauge('destination_window', `Limit of concurrent deliveries${largest}.`, ['destination'])
  const busy = set.gauge('destination_in_flight', `Running deliveries${largest}.`, ['destination'])
  const waiting = set.gauge('destination_waiting', `Recipients that wait for a delivery slot${largest}.`, ['destination'])
  return () => {
    const all = destinations()
    for (const state of DESTINATION_STATES) known.set({ state }, all.filter((one) => one.state === state).length)
    refusing.set(all.filter(isRefusing).length)
    for (const gauge of [window, busy, waiting]) gauge.reset()
    const bySize = all.toSorted((a, b) => b.waiting + b.inFlight - a.waiting - a.inFlight || (a.destination < b.destination ? -1 : 1))
    for (const one of bySize.slice(0, TOP)) {
      window.set({ destination: one.destination }, one.window)
      busy.set({ destination: one.destination }, one.inFlight)
      waiting.set({ destination: one.destination }, one.waiting)
    }
  }
}

function slotGauges(set: MetricSet, { slots }: MetricSources): () => void {
  const inFlight = set.gauge('deliveries_in_flight', 'Deliveries that have a slot.')
  const limit = set.gauge('delivery_slots', 'Delivery slots (default_process_limit).')
  const connecting = set.gauge(
    'deliveries_connecting',
    `Connections without a greeting yet, for the ${CONNECTING_SHOWN} addresses with most.`,
    ['address'],
  )
  return () => {
    const now = slots?.()
    if (now === undefined) return
    inFlight.set(now.inFlight)
    limit.set(now.limit)
    connecting.reset()
    for (const { address, count } of now.connecting) connecting.set({ address }, count)
  }
}

function limitGauges(set: MetricSet, { limits }: MetricSources): () => void {
  const ratio = set.gauge(
    'queue_limit_ratio',
    'Used part of the limits of the queue that are set, the largest by scope (queue; share: that of the fullest share).',
    ['scope'],
  )
  return () => {
    ratio.reset()
    for (const [scope, those] of Map.groupBy(limits?.() ?? [], ({ share }) => (share === null ? 'queue' : 'share')))
      ratio.set({ scope }, Math.max(...those.map(({ used, limit }) => used / limit)))
  }
}

function quotaGauges(set: MetricSet, { quotas }: MetricSources): () => void {
  const ratio = set.gauge('quota_used_ratio', 'Used part of the limits of each quota: that of the key that has used most.', ['quota'])
  return () => {
    ratio.reset()
    for (const [quota, used] of quotas?.() ?? []) ratio.set({ quota }, used)
  }
}

function nodeGauges(set: MetricSet, { nodes }: MetricSources): () => void {
  const known = set.gauge('nodes', 'Nodes that share the queue, by state (active, draining), at the last beat of this node.', ['state'])
  const beats = set.gauge('node_beat_seconds', 'Age of the last beat of each node, at the last beat of this node.', ['node'])
  const shards = set.gauge('shards', 'Shards of destinations, by owner (own, other, free), at the last beat of this node.', ['owner'])
  return () => {
    const view = nodes?.() ?? null
    if (view === null) return
    // Commands that change the queue are nodes without settings.
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

function sideGauges(set: MetricSet, { silence }: MetricSources): () => void {
  const silent = set.gauge(
    'store_silence_seconds',
    'Time for which a side of the store (reader, writer) has had a call and has answered none.',
    ['side'],
  )
  return () => {
    for (const side of ['reader', 'writer'] as const) silent.set({ side }, (silence?.(side) ?? 0) / 1000)
  }
}

function tokenGauges(set: MetricSet, { tokens }: MetricSources): () => void {
  const left = set.gauge(
    'oauth_token_seconds',
    'Time until the end of the access token of a table, of the user with least; 0 without one. A token that is not used for a day is left out when it has ended.',
    ['oauth'],
  )
  return () => {
    left.reset()
    const least = new Map<string, Duration>()
    for (const one of tokens?.() ?? []) least.set(one.name, Math.min(one.left ?? 0, least.get(one.name) ?? Infinity))
    for (const [oauth, time] of least) left.set({ oauth }, time / 1000)
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
  let reading: Promise<readonly SubscriptionView[]> | null = null
  return async () => {
    // Concurrent scrapes share one read.
    reading ??= (subscriptions?.() ?? Promise.resolve([])).finally(() => (reading = null))
    const all = (await withTimeout(reading, clock, COUNT_LIMIT)) ?? []
    for (const gauge of [lag, parked, disabled]) gauge.reset()
    for (const one of all) {
      const label = { subscription: one.name }
      // A subscription without a target is read by programs at their own pace.
      if (one.settings.to !== '') lag.set(label, one.oldestAt === null ? 0 : Math.max(0, clock.now() - one.oldestAt) / 1000)
      parked.set(label, one.parked)
      disabled.set(label, one.progress.state === 'disabled' ? 1 : 0)
    }
  }
}

/** Creates the gauges. Returns a function that reads the sources of the gauges. */
export function openGauges(set: MetricSet, sources: MetricSources): () => Promise<void> {
  const parts = [
    queueGauges,
    destinationGauges,
    slotGauges,
    limitGauges,
    quotaGauges,
    nodeGauges,
    databaseGauges,
    sideGauges,
    tokenGauges,
    subscriptionGauges,
  ]
  const all: readonly (() => void | Promise<void>)[] = parts.map((open) => open(set, sources))
  return async () => {
    for (const read of all) await read()
  }
}
