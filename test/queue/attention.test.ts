import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { ScheduleTable } from '../../src/config/values/schedule-table.ts'
import { NOT_ENDED, type ScheduleRun } from '../../src/store/records/schedule-run.ts'
import { attentionOf, type AttentionFacts } from '../../src/queue/attention.ts'
import type { LiveDestination } from '../../src/store/destination-status.ts'

const T0 = 1_767_225_600_000

const open: LiveDestination = {
  destination: 'open.example',
  state: 'open',
  window: 5,
  messageRate: null,
  provider: null,
  inFlight: 0,
  inTransfer: [],
  awaited: [],
  isProbed: false,
  waiting: 3,
  nextDueAt: null,
  deadUntil: null,
  probeInterval: null,
  suspension: null,
  siteStatus: null,
}

const NIGHTLY = configFrom({ schedule: { nightly: { at: '0 2 * * *', do: 'flush', destinations: '*' } } }, 'h').config.schedule.get(
  'nightly',
) as ScheduleTable

const RUN: ScheduleRun = {
  name: 'nightly',
  planned: T0 - 9,
  orderedBy: null,
  node: 'a',
  beganAt: T0 - 9,
  until: T0 + 9,
  ...NOT_ENDED,
}

const CALM: AttentionFacts = {
  storeUnavailable: null,
  destinations: [open],
  tokens: [{ name: 'm365', user: '', left: 3_600_000, problem: null, failedSince: null }],
  schedules: [],
  now: T0,
  tally: { queues: [], waiting: [] },
  expiring: { count: 0, isAtLeast: false, within: 3_600_000 },
  noticesDue: { count: 0, isAtLeast: false },
  warnings: null,
}

test('a queue in order needs no attention', () => {
  expect(attentionOf(CALM)).toEqual([])
})

test('each condition is one entry, the store first', () => {
  const suspension = { by: 'root', until: null, reason: 'moves' }
  const items = attentionOf({
    storeUnavailable: { why: 'the disk is full', since: T0 },
    destinations: [
      { ...open, destination: 'dead.example', state: 'dead', deadUntil: T0 + 1 },
      { ...open, destination: 'shut.example', state: 'suspended', suspension },
    ],
    tokens: [
      { name: 'm365', user: '', left: null, problem: 'invalid_client: correct it', failedSince: T0 + 1 },
      { name: 'google', user: 'ann@us.example', left: null, problem: 'no answer within 30 s: wait', failedSince: T0 },
      // A renewal failed, and the token is still used.
      { name: 'own', user: '', left: 300_000, problem: 'no answer within 30 s: wait', failedSince: null },
    ],
    schedules: [
      { table: NIGHTLY, next: null, last: { ...RUN, endedAt: T0 - 2, outcome: 'failed', text: 'no space left' } },
      { table: NIGHTLY, next: null, last: { ...RUN, endedAt: T0 - 1, outcome: 'done' } },
      // Its node is gone.
      { table: NIGHTLY, next: null, last: { ...RUN, until: T0 - 3 } },
    ],
    now: T0,
    tally: {
      queues: [{ queue: 'corrupt', messages: 2, recipients: 2, oldestArrival: T0 }],
      waiting: [{ destination: 'shut.example', recipients: 9 }],
    },
    expiring: { count: 4, isAtLeast: false, within: 3_600_000 },
    noticesDue: { count: 20, isAtLeast: true },
    warnings: { count: 2, last: 'no such host', since: T0 },
  })
  expect(items).toEqual([
    { kind: 'store-unavailable', why: 'the disk is full', since: T0 },
    { kind: 'oauth-failed', count: 2, why: 'google: no answer within 30 s: wait', since: T0 },
    { kind: 'schedule-failed', count: 2, why: 'nightly: no space left', since: T0 - 2 },
    { kind: 'suspended-destination', destination: 'shut.example', waiting: 9, ...suspension },
    { kind: 'dead-destination', destination: 'dead.example', waiting: 3, until: T0 + 1 },
    { kind: 'corrupt-messages', messages: 2 },
    { kind: 'expiring-recipients', count: 4, isAtLeast: false, within: 3_600_000 },
    { kind: 'notices-due', messages: 20, isAtLeast: true },
    { kind: 'warnings', count: 2, last: 'no such host', since: T0 },
  ])
})

test('the list is bounded, and has the destinations with the most waiting mail', () => {
  const dead = Array.from({ length: 1_000 }, (_, n) => ({
    ...open,
    destination: `d${n}.example`,
    state: 'dead' as const,
    deadUntil: T0,
    waiting: n,
  }))
  const items = attentionOf({ ...CALM, destinations: dead })
  expect(items).toHaveLength(40)
  expect(items[0]).toMatchObject({ destination: 'd999.example' })
})
