/**
 * Metrics for Prometheus: events are counted as they happen, gauges are read when somebody asks. Labels have few
 * values; destinations are shown by name only as far as they are the largest.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Clock, Duration, Instant } from '../mail/clock.ts'
import type { LiveDestination } from '../queue/operations.ts'
import type { QueueName, QueueReader } from '../queue/reader.ts'
import type { Listen, QueueEvent } from './events.ts'

/** Where gauges are read. */
export interface MetricSources {
  readonly clock: Clock
  readonly counts: QueueReader['counts']
  readonly destinations: () => readonly LiveDestination[]
  /** Resolves when the store has committed and synced something. */
  readonly commit: () => Promise<void>
}

export interface Metrics {
  readonly listen: Listen
  readonly contentType: string
  /** Prometheus text. */
  render(): Promise<string>
}

/** Destinations shown by name: those with most mail waiting or in flight. */
const TOP = 20
const QUEUES: readonly QueueName[] = ['incoming', 'active', 'deferred', 'hold', 'corrupt']
/** Counting a large queue takes a moment, so it is done at most this often. */
const COUNTS_HOLD: Duration = 10_000

const DELAYS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 300, 3600, 21_600, 86_400]
const ATTEMPT_PARTS = ['before_queue_manager', 'queue_manager', 'connection_setup', 'transmission'] as const

/** `4.4.1` → `4.4`: class and subject, some thirty values in all. */
const statusGroup = (status: string): string => status.split('.').slice(0, 2).join('.')

function counters(registers: Registry[]) {
  const counter = <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Counter({ name: `deferd_${name}`, help, labelNames: [...labelNames], registers })
  return {
    connections: counter('smtpd_connections_total', 'SMTP connections taken.'),
    refused: counter('smtpd_refused_total', 'Commands refused, by stage and class of the reply.', ['stage', 'class']),
    accepted: counter('accepted_messages_total', 'Messages taken into the queue.'),
    acceptedBytes: counter('accepted_bytes_total', 'Bytes of messages taken into the queue.'),
    attempts: counter('attempts_total', 'Delivery attempts per recipient, by outcome and by class and subject of the status.', [
      'outcome',
      'status',
    ]),
    possiblySent: counter('possibly_sent_total', 'Attempts that ended after the final dot without a reply.'),
    expired: counter('expired_recipients_total', 'Recipients given up, by whether an operator wanted it.', ['forced']),
    removed: counter('removed_messages_total', 'Messages that have left the queue.'),
    quarantined: counter('quarantined_messages_total', 'Messages that could not be read and were set aside.'),
    notices: counter('notices_total', 'Notices sent, by kind and addressee.', ['kind', 'to']),
    operations: counter('operations_total', 'Messages changed by operators.', ['operation']),
    deaths: counter('destination_deaths_total', 'Times a destination was found dead.'),
    storeTrouble: counter('store_trouble_total', 'Times the store could not commit.'),
    reports: counter('log_reports_total', 'Warnings and errors in the log.', ['level']),
  }
}

/** Counts what happens. */
function counting(registry: Registry): Listen {
  const count = counters([registry])
  const open = new Gauge({ name: 'deferd_smtpd_connections', help: 'SMTP connections open now.', registers: [registry] })
  const delay = new Histogram({
    name: 'deferd_delivery_delay_seconds',
    help: 'From arrival to delivery, per recipient.',
    buckets: DELAYS,
    registers: [registry],
  })
  const parts = new Histogram({
    name: 'deferd_attempt_seconds',
    help: 'The four parts of an attempt, as delays=a/b/c/d in the log.',
    labelNames: ['part'],
    buckets: DELAYS,
    registers: [registry],
  })
  const attempted = ({ request, result, attempts }: Extract<QueueEvent, { kind: 'attempted' }>) => {
    if (result.possiblySent === true) count.possiblySent.inc()
    for (const { outcome, status, at, delays } of attempts) {
      count.attempts.inc({ outcome, status: statusGroup(status.status) })
      if (outcome === 'delivered') delay.observe(Math.max(0, at - request.message.arrivedAt) / 1000)
      ATTEMPT_PARTS.forEach((part, i) => parts.observe({ part }, (delays[i] ?? 0) / 1000))
    }
  }
  return (event) => {
    switch (event.kind) {
      case 'connected':
        count.connections.inc()
        return open.inc()
      case 'disconnected':
        return open.dec()
      case 'refused':
        return count.refused.inc({ stage: event.stage.toLowerCase(), class: `${Math.trunc(event.reply.code / 100)}xx` })
      case 'accepted':
        count.accepted.inc()
        return count.acceptedBytes.inc(event.message.size)
      case 'attempted':
        return attempted(event)
      case 'expired':
        return count.expired.inc({ forced: String(event.forced) }, event.recipients.length)
      case 'removed':
        return count.removed.inc()
      case 'quarantined':
        return count.quarantined.inc()
      case 'noticed':
        return count.notices.inc({ kind: event.notice, to: event.to })
      case 'operated':
        return count.operations.inc({ operation: event.operation })
      case 'died':
        return count.deaths.inc()
      case 'store-trouble':
        return count.storeTrouble.inc()
      case 'note':
        return event.level === 'info' ? undefined : count.reports.inc({ level: event.level })
      default:
        return undefined
    }
  }
}

/** Reads what is there: mail by queue, destinations, how long a commit takes. */
function reading(registry: Registry, { clock, counts, destinations, commit }: MetricSources): () => Promise<void> {
  const gauge = <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
    new Gauge({ name: `deferd_${name}`, help, labelNames: [...labelNames], registers: [registry] })
  const messages = gauge('queue_messages', 'Messages by queue.', ['queue'])
  const recipients = gauge('queue_recipients', 'Recipients still to be reached, by queue.', ['queue'])
  const oldest = gauge('queue_oldest_seconds', 'Age of the oldest message, by queue.', ['queue'])
  const known = gauge('destinations', 'Destinations in memory, by condition.', ['condition'])
  const inFlight = gauge('deliveries_in_flight', 'Deliveries running now.')
  const window = gauge('destination_window', 'Deliveries allowed at once, for the largest destinations.', ['destination'])
  const busy = gauge('destination_in_flight', 'Deliveries running now, for the largest destinations.', ['destination'])
  const waiting = gauge('destination_waiting', 'Recipients waiting for a slot, for the largest destinations.', ['destination'])
  const commitTime = new Histogram({
    name: 'deferd_store_commit_seconds',
    help: 'How long the store takes to commit and sync, measured when metrics are read.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5],
    registers: [registry],
  })
  let countedAt: Instant = -Infinity

  const readQueue = () => {
    const now = clock.now()
    if (now - countedAt < COUNTS_HOLD && now >= countedAt) return
    countedAt = now
    // What has been emptied is told too.
    for (const emptied of [messages, recipients, oldest]) for (const queue of QUEUES) emptied.set({ queue }, 0)
    for (const { queue, messages: of, recipients: to, oldest: age } of counts(now)) {
      messages.set({ queue }, of)
      recipients.set({ queue }, to)
      oldest.set({ queue }, age / 1000)
    }
  }
  const readDestinations = () => {
    const all = destinations()
    const dead = all.filter(({ deadUntil }) => deadUntil !== null).length
    const suspended = all.filter(({ suspendedBy }) => suspendedBy !== null).length
    known.set({ condition: 'dead' }, dead)
    known.set({ condition: 'suspended' }, suspended)
    known.set({ condition: 'open' }, all.length - dead - suspended)
    inFlight.set(all.reduce((sum, one) => sum + one.inFlight, 0))
    for (const named of [window, busy, waiting]) named.reset()
    const bySize = all.toSorted((a, b) => b.waiting + b.inFlight - a.waiting - a.inFlight || (a.destination < b.destination ? -1 : 1))
    for (const one of bySize.slice(0, TOP)) {
      window.set({ destination: one.destination }, one.window)
      busy.set({ destination: one.destination }, one.inFlight)
      waiting.set({ destination: one.destination }, one.waiting)
    }
  }
  return async () => {
    readQueue()
    readDestinations()
    const began = clock.monotonic()
    // A store that cannot commit is counted when it happens; what can be read is told all the same.
    const committed = await commit().then(
      () => true,
      () => false,
    )
    if (committed) commitTime.observe((clock.monotonic() - began) / 1000)
  }
}

export function openMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const listen = counting(registry)
  const read = reading(registry, sources)
  return {
    listen,
    contentType: registry.contentType,
    render: async () => {
      await read()
      return registry.metrics()
    },
  }
}
