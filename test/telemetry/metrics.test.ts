import { describe, expect, test } from 'vitest'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { FAILURE_CLASSES } from '../../src/mail/failure-class.ts'
import { recipientId, type Message } from '../../src/mail/message.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import type { TokenState } from '../../src/oauth/access-tokens.ts'
import type { MetricSources } from '../../src/telemetry/metrics/gauges.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import type { QueueTally } from '../../src/store/counts/queue-tally.ts'
import { liveDestination } from '../support/live-destination.ts'
import { realClock } from '../support/real-clock.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const NOW = Date.UTC(2026, 10, 20)
const message: Message = { id: 1, createdAt: NOW, arrivedAt: NOW, sender: 'a@us.example', size: 2048, contentId: 1, smtputf8: false }
const client = { name: 'unknown', address: '192.0.2.9' }

const destination = (name: string, waiting: number, more: Partial<LiveDestination> = {}): LiveDestination =>
  liveDestination(name, { inFlight: 1, waiting, ...more })

const open = (sources: Partial<MetricSources> = {}) =>
  openMetrics({
    clock: realClock,
    tally: async () => EMPTY_TALLY,
    destinations: () => [],
    ...sources,
  })

/** The samples of a metric: labels → value. */
async function samples(metrics: ReturnType<typeof open>, name: string): Promise<Record<string, number>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return Object.fromEntries(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

describe('access tokens', () => {
  test('requests are counted by result, from 0 on for all results of a table', async () => {
    const metrics = open()
    metrics.listen({ kind: 'oauth-token', oauth: 'm365', user: null, lifetime: 1_000 }, NOW)
    metrics.listen({ kind: 'oauth-failed', oauth: 'm365', user: 'ann@us.example', result: 'refused', text: 'x', isFirst: true }, NOW)
    expect(await samples(metrics, 'deferd_oauth_requests_total')).toEqual({
      '{oauth="m365",result="token"}': 1,
      '{oauth="m365",result="temporary"}': 0,
      '{oauth="m365",result="refused"}': 1,
    })
  })

  test('the time left is that of the user with least, and 0 without a token', async () => {
    const state = { user: '', problem: null, failedSince: null }
    let tokens: readonly TokenState[] = [
      { ...state, name: 'google', user: 'ann@us.example', left: 60_000 },
      { ...state, name: 'google', user: 'bob@us.example', left: 90_000 },
      { ...state, name: 'm365', left: null },
    ]
    const metrics = open({ tokens: () => tokens })
    expect(await samples(metrics, 'deferd_oauth_token_seconds')).toEqual({ '{oauth="google"}': 60, '{oauth="m365"}': 0 })
    tokens = []
    expect(await samples(metrics, 'deferd_oauth_token_seconds')).toEqual({})
  })
})

describe('counters', () => {
  const attempted: Extract<QueueEvent, { kind: 'attempted' }> = {
    kind: 'attempted',
    settled: [],
    request: { lease: { owner: 1, until: Infinity }, message, destination: 'x', recipients: [], fresh: true, forcedExpire: false },
    result: {
      outcomes: new Map(),
      feedback: 'positive',
      relay: null,
      connectionUse: 1,
      times: { startedAt: NOW, transmittingAt: NOW, endedAt: NOW },
    },
    attempts: (['4.4.1', '4.4.2', '2.0.0'] as const).map((status, i) => ({
      recipient: recipientId(1, i),
      at: NOW + 700,
      relay: null,
      outcome: status === '2.0.0' ? 'delivered' : 'deferred',
      status: { status, reason: 'r', stage: 'rcpt' },
      delays: [100, 200, 300, 100],
    })),
  }

  test('attempts by outcome and by class and subject', async () => {
    const metrics = open()
    metrics.listen(attempted, NOW)
    expect(await samples(metrics, 'deferd_attempts_total')).toEqual({
      '{outcome="deferred",status="4.4"}': 2,
      '{outcome="delivered",status="2.0"}': 1,
    })
    const failures = await samples(metrics, 'deferd_failures_total')
    expect(Object.entries(failures).filter(([, count]) => count !== 0)).toEqual([['{class="route"}', 2]])
    expect(Object.keys(failures)).toHaveLength(FAILURE_CLASSES.length)
    expect(await samples(metrics, 'deferd_delivery_delay_seconds_sum')).toEqual({ '': 0.7 })
    expect((await samples(metrics, 'deferd_attempt_seconds_sum'))['{part="connection_setup"}']).toBeCloseTo(0.9)
  })

  test('starts and their delays by class of mail; none for mail without a class', async () => {
    const metrics = open()
    metrics.listen(attempted, NOW)
    expect(await samples(metrics, 'deferd_class_starts_total')).toEqual({})
    const progress = { address: 'ann@far.example', expiresAt: NOW, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
    const recipients = [NOW - 2_000, NOW - 1_000].map((dueAt, n) => ({ id: recipientId(1, n), dueAt, ...progress }))
    metrics.listen({ ...attempted, request: { ...attempted.request, message: { ...message, class: 'fast' }, recipients } }, NOW)
    expect(await samples(metrics, 'deferd_class_starts_total')).toEqual({ '{class="fast"}': 2 })
    expect(await samples(metrics, 'deferd_class_start_delay_seconds_sum')).toEqual({ '{class="fast"}': 3 })
  })

  test('mail, rejections and connections', async () => {
    const metrics = open()
    const events: readonly QueueEvent[] = [
      { kind: 'connected', client },
      { kind: 'connected', client },
      { kind: 'disconnected', client, commands: {} },
      { kind: 'accepted', message, recipients: [], client },
      { kind: 'refused', client, stage: 'RCPT', reply: { code: 454, text: 'no' }, protocol: 'SMTP', helo: '' },
      { kind: 'removed', message },
      { kind: 'expired', message, forced: false, recipients: [1, 2], unattempted: null },
      { kind: 'note', level: 'info', text: 'quiet' },
    ]
    for (const event of events) metrics.listen(event, NOW)
    expect(await samples(metrics, 'deferd_smtpd_connections_total')).toEqual({ '': 2 })
    expect(await samples(metrics, 'deferd_smtpd_connections')).toEqual({ '': 1 })
    expect(await samples(metrics, 'deferd_accepted_bytes_total')).toEqual({ '': 2048 })
    expect(await samples(metrics, 'deferd_smtpd_refused_total')).toEqual({ '{stage="rcpt",class="4xx"}': 1 })
    expect(await samples(metrics, 'deferd_expired_recipients_total')).toEqual({ '{forced="false"}': 2 })
    expect(await samples(metrics, 'deferd_log_reports_total')).toEqual({})
  })
})

describe('gauges', () => {
  test('mail by queue and age, and where most of it waits', async () => {
    const clock = new VirtualClock({ startsAt: NOW })
    const waiting = [{ destination: 'far.example', recipients: 4, leased: 0, scheduled: 0 }]
    const tallies: (QueueTally | null)[] = [
      null,
      { ...EMPTY_TALLY, queues: [{ queue: 'deferred', messages: 3, recipients: 4, oldestArrival: NOW - 90_000 }], waiting },
      EMPTY_TALLY,
    ]
    const metrics = open({ clock, tally: async () => tallies.shift() ?? null })
    const text = await metrics.render()
    expect(text).toContain('deferd_queue_messages{queue="deferred"} 3\n')
    expect(text).toContain('deferd_queue_messages{queue="hold"} 0\n')
    expect(text).toContain('deferd_queue_recipients{queue="deferred"} 4\n')
    expect(text).toContain('deferd_queue_oldest_seconds{queue="deferred"} 90\n')
    expect(text).toContain('deferd_destination_queued_recipients{destination="far.example"} 4\n')
    const emptied = await metrics.render()
    expect(emptied).toContain('deferd_queue_messages{queue="deferred"} 0\n')
    expect(emptied).not.toContain('far.example')
  })

  test('a queue that takes long to count does not hold the scrape up', async () => {
    const clock = new VirtualClock({ startsAt: NOW })
    let asked = 0
    const scrape = open({ clock, tally: () => (asked++, new Promise(() => undefined)) })
    const texts = [scrape.render(), scrape.render()]
    expect([clock.runNext(), clock.runNext(), clock.now() - NOW]).toEqual([true, true, 1_000])
    for (const text of texts) expect(await text).not.toContain('deferd_queue_messages{')
    expect(asked).toBe(1)
  })

  test('a store that cannot count does not hide the other metrics', async () => {
    const metrics = open({ tally: () => Promise.reject(new Error('the store is closed')) })
    expect(await samples(metrics, 'deferd_deliveries_in_flight')).toEqual({ '': 0 })
  })

  test('the twenty largest destinations are named, the rest summed', async () => {
    const many = Array.from({ length: 500 }, (_, i) => destination(`d${i}.example`, i))
    const metrics = open({
      destinations: () => [
        ...many,
        destination('dead.example', 0, { state: 'dead', inFlight: 0 }),
        destination('full.example', 0, { state: 'throttled', inFlight: 0 }),
      ],
    })
    const shown = await samples(metrics, 'deferd_destination_waiting')
    expect(Object.keys(shown)).toHaveLength(20)
    expect(shown['{destination="d499.example"}']).toBe(499)
    expect(await samples(metrics, 'deferd_destinations')).toEqual({
      '{state="dead"}': 1,
      '{state="suspended"}': 0,
      '{state="open"}': 500,
      '{state="throttled"}': 1,
    })
  })

  test('the delivery slots, and the addresses to which deliveries connect', async () => {
    const metrics = open({ slots: () => ({ inFlight: 23, limit: 100, connecting: [{ address: '185.30.0.31', count: 20 }] }) })
    expect(await samples(metrics, 'deferd_deliveries_in_flight')).toEqual({ '': 23 })
    expect(await samples(metrics, 'deferd_delivery_slots')).toEqual({ '': 100 })
    expect(await samples(metrics, 'deferd_deliveries_connecting')).toEqual({ '{address="185.30.0.31"}': 20 })
  })

  test('a scrape writes nothing: the time of commits is that of the health checks', async () => {
    const metrics = open()
    expect(await samples(metrics, 'deferd_store_commit_seconds_count')).toEqual({ '': 0 })
    metrics.committed(20)
    metrics.committed(30)
    expect(await samples(metrics, 'deferd_store_commit_seconds_count')).toEqual({ '': 2 })
    expect(await samples(metrics, 'deferd_store_commit_seconds_sum')).toEqual({ '': 0.05 })
  })
})

test('the version, the balance and mail behind closed destinations are served', async () => {
  const traffic = { ...EMPTY_TALLY.traffic, accepted: 9, delivered: 2, expired: 1 }
  const deferred = { queue: 'deferred', messages: 5, recipients: 5, oldestArrival: NOW } as const
  const tally: QueueTally = {
    ...EMPTY_TALLY,
    traffic,
    queues: [deferred],
    trash: { messages: 1, recipients: 1 },
    waiting: [{ destination: 'far.example', recipients: 5, leased: 0, scheduled: 0 }],
  }
  const metrics = open({ tally: async () => tally, destinations: () => [destination('far.example', 0, { state: 'dead' })] })
  const text = await metrics.render()
  expect(text).toMatch(/^deferd_build_info\{version="\d+\.\d+\.\d+[^"]*",node="v\d+[^"]*"\} 1$/m)
  for (const [term, value] of Object.entries({ accepted: 9, delivered: 2, returned: 1, deleted: 1, waiting: 5 }))
    expect(text).toContain(`deferd_balance_recipients{term="${term}"} ${value}\n`)
  expect(text).toContain('deferd_closed_destination_recipients{state="dead"} 5\n')
  expect(text).toContain('deferd_closed_destination_recipients{state="suspended"} 0\n')
  expect(text).toContain('deferd_login_failures_total{reason="missing"} 0\n')
})
