import { afterEach, describe, expect, test } from 'vitest'
import { HttpServer, type HealthCheck } from '../../src/daemon/http.ts'
import type { LiveDestination } from '../../src/queue/operations.ts'
import { recipientId, type Message } from '../../src/queue/message.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { openMetrics, type MetricSources } from '../../src/telemetry/metrics.ts'
import { systemClock } from '../../src/system/clock.ts'

const NOW = Date.UTC(2026, 10, 20)
const message: Message = { id: 1, createdAt: NOW, arrivedAt: NOW, sender: 'a@us.example', size: 2048, body: 1, smtputf8: false }
const client = { name: 'unknown', address: '192.0.2.9' }

const destination = (name: string, waiting: number, more: Partial<LiveDestination> = {}): LiveDestination => ({
  destination: name,
  window: 5,
  inFlight: 1,
  waiting,
  nextDueAt: null,
  deadUntil: null,
  probeInterval: null,
  suspendedBy: null,
  lastReply: null,
  ...more,
})

const open = (sources: Partial<MetricSources> = {}) =>
  openMetrics({ clock: systemClock, counts: () => [], destinations: () => [], commit: () => Promise.resolve(), ...sources })

/** The samples of a metric: labels → value. */
async function samples(metrics: ReturnType<typeof open>, name: string): Promise<Record<string, number>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return Object.fromEntries(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

describe('what happens is counted', () => {
  const attempted: QueueEvent = {
    kind: 'attempted',
    request: { message, destination: 'x', recipients: [], fresh: true, forcedExpire: false },
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
    expect(await samples(metrics, 'deferd_delivery_delay_seconds_sum')).toEqual({ '': 0.7 })
    expect((await samples(metrics, 'deferd_attempt_seconds_sum'))['{part="connection_setup"}']).toBeCloseTo(0.9)
  })

  test('mail, refusals and connections', async () => {
    const metrics = open()
    const events: readonly QueueEvent[] = [
      { kind: 'connected', client },
      { kind: 'connected', client },
      { kind: 'disconnected', client, commands: {} },
      { kind: 'accepted', message, recipients: [], client },
      { kind: 'refused', client, stage: 'RCPT', reply: { code: 454, text: 'no' }, protocol: 'SMTP', helo: '' },
      { kind: 'removed', message },
      { kind: 'expired', message, forced: false, recipients: [1, 2] },
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

describe('what is there is read when somebody asks', () => {
  test('mail by queue and age, counted at most every ten seconds', async () => {
    let asked = 0
    const metrics = open({
      counts: () => {
        asked++
        return [{ queue: 'deferred', messages: 3, recipients: 4, oldest: 90_000 }]
      },
    })
    await metrics.render()
    const none = Object.fromEntries(['incoming', 'active', 'hold', 'corrupt'].map((queue) => [`{queue="${queue}"}`, 0]))
    expect(await samples(metrics, 'deferd_queue_messages')).toEqual({ ...none, '{queue="deferred"}': 3 })
    expect(await samples(metrics, 'deferd_queue_oldest_seconds')).toEqual({ ...none, '{queue="deferred"}': 90 })
    expect(asked).toBe(1)
  })

  test('only the twenty largest destinations by name, however many there are', async () => {
    const many = Array.from({ length: 500 }, (_, i) => destination(`d${i}.example`, i))
    const metrics = open({ destinations: () => [...many, destination('dead.example', 0, { deadUntil: NOW, inFlight: 0 })] })
    const shown = await samples(metrics, 'deferd_destination_waiting')
    expect(Object.keys(shown)).toHaveLength(20)
    expect(shown['{destination="d499.example"}']).toBe(499)
    expect(await samples(metrics, 'deferd_destinations')).toEqual({
      '{condition="dead"}': 1,
      '{condition="suspended"}': 0,
      '{condition="open"}': 500,
    })
    expect(await samples(metrics, 'deferd_deliveries_in_flight')).toEqual({ '': 500 })
  })

  test('a store that cannot commit does not hide the rest', async () => {
    const metrics = open({ commit: () => Promise.reject(new Error('disk full')) })
    expect(await samples(metrics, 'deferd_store_commit_seconds_count')).toEqual({ '': 0 })
  })
})

describe('over HTTP', () => {
  let server: HttpServer | undefined
  afterEach(() => server?.close())

  async function serve(checks: readonly HealthCheck[]): Promise<string> {
    server = new HttpServer({ metrics: open(), checks, clock: systemClock })
    const { address, port } = await server.listen({ address: '127.0.0.1', port: 0 })
    return `http://${address}:${port}`
  }

  test('metrics are served as Prometheus reads them', async () => {
    const response = await fetch(`${await serve([])}/metrics`)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/plain')
    expect(await response.text()).toContain('# HELP deferd_attempts_total')
  })

  test('health is 200 while everything goes on', async () => {
    const response = await fetch(`${await serve([{ name: 'store', run: () => Promise.resolve() }])}/healthz`)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ healthy: true, store: 'ok' })
  })

  test('health is 503 with the reason when something does not', async () => {
    const base = await serve([
      { name: 'store', run: () => Promise.reject(new Error('disk full')) },
      { name: 'scheduler', run: () => Promise.resolve() },
    ])
    const response = await fetch(`${base}/healthz`)
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ healthy: false, store: 'disk full', scheduler: 'ok' })
  })

  test('nothing else is there, and nothing can be sent', async () => {
    const base = await serve([])
    expect((await fetch(`${base}/`)).status).toBe(404)
    expect((await fetch(`${base}/metrics`, { method: 'POST', body: 'x' })).status).toBe(405)
  })
})
