import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { logRecords } from '../../src/telemetry/log-records.ts'
import { openMetrics } from '../../src/telemetry/metrics.ts'

const page = (path: string): string => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const contrib = (path: string): string => page(`contrib/${path}`)

async function metricNames(): Promise<ReadonlySet<string>> {
  const metrics = openMetrics({ clock: systemClock, counts: () => [], destinations: () => [], commit: () => Promise.resolve() })
  return new Set([...(await metrics.render()).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name ?? ''))
}

test.each(['grafana/deferd.json', 'prometheus/deferd-alerts.yml'])('every metric that %s asks for exists', async (path) => {
  const known = await metricNames()
  const asked = contrib(path).match(/\b(?:deferd|nodejs|process)_[a-z0-9_]+/g) ?? []
  expect(asked.length).toBeGreaterThan(5)
  const base = (name: string) => name.replace(/_(?:bucket|sum|count)$/, '')
  expect(asked.filter((name) => !known.has(name) && !known.has(base(name)))).toEqual([])
})

test('the dashboard is JSON with a panel for each thing it shows', () => {
  const { panels } = JSON.parse(contrib('grafana/deferd.json')) as { panels: { id: number }[] }
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
})

describe('docs/monitoring.md', () => {
  /** The first cell of each row, and all that is set as code in the last. */
  const rows = new Map(
    [...page('docs/monitoring.md').matchAll(/^\| (`.*?) *\|.*\|(.*)\|$/gm)].flatMap(([, names = '', members = '']) =>
      [...names.matchAll(/`([\w-]+)`/g)].map(([, name]) => [name ?? '', [...members.matchAll(/`(\w+)`/g)].map(([, member]) => member)]),
    ),
  )

  test('names every metric of ours, and no other', async () => {
    const ours = [...(await metricNames())].filter((name) => name.startsWith('deferd_'))
    expect([...rows.keys()].filter((name) => name.startsWith('deferd_')).toSorted()).toEqual(ours.toSorted())
  })

  const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 1, body: 1, smtputf8: false }
  const client = { name: 'unknown', address: '192.0.2.1' }
  const events: readonly QueueEvent[] = [
    { kind: 'connected', client },
    { kind: 'disconnected', client, commands: {} },
    { kind: 'refused', client, stage: 'RCPT', reply: { code: 550, text: 'no' }, protocol: 'ESMTP', helo: 'x' },
    { kind: 'client-trouble', client, what: 'x' },
    { kind: 'accepted', message, recipients: [], client: null },
    { kind: 'activated', message, recipientCount: 1 },
    {
      kind: 'attempted',
      request: { message, destination: 'x', recipients: [], fresh: true, forcedExpire: false },
      result: {
        outcomes: new Map(),
        feedback: 'positive',
        relay: null,
        connectionUse: 1,
        times: { startedAt: 0, transmittingAt: 0, endedAt: 0 },
      },
      attempts: [
        {
          recipient: 1,
          at: 0,
          relay: null,
          outcome: 'delivered',
          status: { status: '2.0.0', reason: 'r', stage: 'rcpt' },
          delays: [0, 0, 0, 0],
        },
      ],
    },
    { kind: 'expired', message, forced: false, recipients: [] },
    { kind: 'removed', message },
    { kind: 'quarantined', message, why: 'x' },
    { kind: 'noticed', message, notice: 'failure', to: 'sender', noticeId: 'x' },
    { kind: 'notice-dropped', message, why: 'x' },
    { kind: 'operated', queueId: 'x', operation: 'hold', by: 'root' },
    { kind: 'died', destination: 'x', until: 0, reason: 'x' },
    { kind: 'revived', destination: 'x' },
    { kind: 'suspended', destination: 'x', by: 'root' },
    { kind: 'resumed', destination: 'x', by: 'root' },
    { kind: 'store-trouble', why: 'x' },
    { kind: 'store-recovered' },
    { kind: 'note', level: 'info', text: 'x' },
  ]

  test.each(events)('tells the members of $kind in the JSON log, in their order', (event) => {
    const [{ members } = { members: {} }] = logRecords(event)
    expect(['event', ...(rows.get(event.kind) ?? [])]).toEqual(Object.keys(members))
  })

  test('tells of no other event', () => {
    const told = [...rows.keys()].filter((name) => !name.startsWith('deferd_'))
    expect(told).toEqual(events.map(({ kind }) => kind))
  })
})
