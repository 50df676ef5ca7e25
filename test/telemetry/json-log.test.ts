import { expect, test } from 'vitest'
import { KINDS, type QueueEvent } from '../../src/telemetry/events.ts'
import { logRecords } from '../../src/telemetry/log-records.ts'

const message = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: 1, smtputf8: false }
const client = { name: 'unknown', address: '192.0.2.1' }
const events: readonly QueueEvent[] = [
  { kind: 'connected', client },
  { kind: 'disconnected', client, commands: {} },
  { kind: 'refused', client, stage: 'RCPT', reply: { code: 550, text: 'no' }, protocol: 'ESMTP', helo: 'x' },
  { kind: 'client-failure', client, failure: { what: 'no-reply' } },
  { kind: 'content-checked', during: 'arrival', queueId: 'x', action: 'warn', part: 'header', octets: 'a: b', text: '' },
  { kind: 'access-action', client, action: 'hold', text: 'x', sender: '', recipient: 'a@b.example', protocol: 'ESMTP', helo: 'x' },
  { kind: 'discarded', queueId: 'x', sender: '', messageId: undefined, client: null },
  { kind: 'accepted', message, recipients: [], client: null },
  { kind: 'listing-braked', destination: 'far.example' },
  { kind: 'activated', message, recipientCount: 1 },
  {
    kind: 'attempted',
    settled: [],
    request: { lease: { owner: 1, until: Infinity }, message, destination: 'x', recipients: [], fresh: true, forcedExpire: false },
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
  {
    kind: 'deferred',
    message,
    destination: 'x',
    recipients: ['a@x'],
    at: 0,
    activatedAt: 0,
    siteStatus: { status: '4.4.1', reason: 'r', stage: 'connect' },
  },
  { kind: 'expired', message, forced: false, recipients: [], unattempted: null },
  { kind: 'removed', message },
  { kind: 'quarantined', message, why: 'x' },
  { kind: 'notice-sent', message, notice: 'failure', to: 'sender', queued: { message, recipients: [] } },
  { kind: 'notice-dropped', message, why: 'x' },
  { kind: 'operated', queueId: 'x', operation: 'hold', by: 'root' },
  { kind: 'cancelled', queueId: 'x', by: 'token:app', recipients: ['ann@far.example'] },
  { kind: 'tls-established', relay: 'x', trust: 'Trusted', reused: false, protocol: 'TLSv1.3', cipher: 'x', bits: 256 },
  { kind: 'tls-policy-failed', domain: 'x', policy: 'sts', enforced: true, relay: 'x', reason: 'x' },
  { kind: 'oauth-token', oauth: 'm365', user: null, lifetime: 3_599_000 },
  { kind: 'oauth-failed', oauth: 'm365', user: null, result: 'refused', text: 'x', isFirst: true },
  { kind: 'died', destination: 'x', until: 0, siteStatus: { status: '4.4.1', reason: 'x', stage: 'connect' } },
  { kind: 'revived', destination: 'x', answered: true },
  { kind: 'suspended', destination: 'x', by: 'root', until: 7_200_000, reason: 'why' },
  { kind: 'resumed', destination: 'x', by: 'root' },
  { kind: 'provider-suspended', provider: 'x', by: 'root', until: 7_200_000, reason: 'why' },
  { kind: 'provider-resumed', provider: 'x', by: 'root' },
  { kind: 'schedule-failed', schedule: 'nightly', action: 'backup', planned: 1_000, text: 'x' },
  { kind: 'schedule-done', schedule: 'nightly', action: 'flush', planned: 1_000, text: 'x', took: 20 },
  { kind: 'schedule-skipped', schedule: 'nightly', action: 'flush', planned: 1_000, why: 'x' },
  { kind: 'node-joined', node: 7, name: 'n1' },
  { kind: 'shards-taken', shards: 128 },
  { kind: 'shards-released', shards: 4 },
  { kind: 'node-taken-over', node: 6, name: 'n2', shards: 128, leases: 20, corrupt: ['x'] },
  { kind: 'fenced', node: 7 },
  { kind: 'commit-in-doubt', resolution: 'unknown' },
  { kind: 'mail-lost', queueIds: ['x'], timeline: 2 },
  { kind: 'limit-reached', share: null, measure: 'messages', used: 100, limit: 100 },
  { kind: 'limit-cleared', share: 'app', measure: 'bytes', used: 95, limit: 100 },
  { kind: 'quota-reached', quota: 'app', key: 'a@us.example', measure: 'messages', span: 3_600_000, used: 5, limit: 5, percent: 100 },
  { kind: 'quota-cleared', quota: 'app', key: 'a@us.example', measure: 'messages', span: 3_600_000, used: 3, limit: 5 },
  { kind: 'suppressed', sender: 'a@us.example', recipient: 'b@far.example', scope: '*', reason: 'manual', action: 'refused', text: null },
  {
    kind: 'suppression-added',
    scope: 'us.example',
    address: 'bob@far.example',
    reason: 'bounce',
    by: 'failures',
    text: '550 no',
    until: 0,
    entries: 1,
  },
  {
    kind: 'suppression-removed',
    scope: 'us.example',
    address: 'bob@far.example',
    reason: 'bounce',
    by: 'failures',
    text: '550 no',
    until: 0,
    entries: 1,
  },
  { kind: 'suppression-stopped', scope: 'us.example', entries: 1_000 },
  { kind: 'store-unavailable', why: 'x' },
  { kind: 'store-recovered' },
  { kind: 'note', level: 'info', text: 'x' },
]

const documented = Object.entries(KINDS).flatMap(([kind, entry]) =>
  entry.record === null ? [] : [{ kind, level: entry.level, members: Object.keys(entry.record) }],
)

test.each(events)('the record of $kind has its level and its members, in their order', (event) => {
  const [record] = logRecords(event)
  const { level, members } = documented.find(({ kind }) => kind === event.kind) ?? { level: '', members: [] }
  expect([record?.level, Object.keys(record?.members ?? {})]).toEqual([level, ['event', ...members]])
})

test('every event has a record, except changes of a window and signatures', () => {
  expect(logRecords({ kind: 'signed', unsigned: 'from' })).toEqual([])
  expect(documented.map(({ kind }) => kind)).toEqual(events.map(({ kind }) => kind))
  expect(logRecords({ kind: 'window', destination: 'x', window: 1, inFlight: 0, feedback: 'positive' })).toEqual([])
})

test('a destination that a flush opened has no record before it answers', () => {
  expect(logRecords({ kind: 'revived', destination: 'x', answered: false })).toEqual([])
})

test('an attempt has a record for each recipient', () => {
  const event = events.find(({ kind }) => kind === 'attempted') as Extract<QueueEvent, { kind: 'attempted' }>
  const [attempt] = event.attempts
  const twice = { ...event, attempts: [attempt, attempt].flatMap((one) => one ?? []) }
  expect(logRecords(twice)).toHaveLength(2)
})

test.each([
  ['info', 'info'],
  ['warning', 'warn'],
  ['error', 'error'],
  ['fatal', 'fatal'],
  ['panic', 'fatal'],
] as const)('a note of level %s has the level %s', (level, expected) => {
  expect(logRecords({ kind: 'note', level, text: 'x' })[0]?.level).toBe(expected)
})
