import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { ScheduleTable } from '../../src/config/values/tables/schedule-table.ts'
import { NOT_ENDED, type ScheduleRun } from '../../src/store/records/schedule-run.ts'
import { attentionOf, type AttentionFacts } from '../../src/queue/attention.ts'

const T0 = 1_767_225_600_000

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
  schedules: [],
  stopped: [],
  now: T0,
  tally: { queues: [] },
  expiring: { count: 0, isAtLeast: false, within: 3_600_000 },
  noticesDue: { count: 0, isAtLeast: false },
  warnings: null,
}

test('a queue in order needs no attention', () => {
  const tokens = [{ name: 'm365', user: '', left: 3_600_000, problem: null, failedSince: null }]
  expect(attentionOf(CALM, { tokens, limits: [], quotas: [], braked: [] })).toEqual([])
  // Nodes of an earlier version answer without these members.
  expect(attentionOf(CALM, {})).toEqual([])
})

test('each condition is one entry, the store first', () => {
  const facts: AttentionFacts = {
    storeUnavailable: { why: 'the disk is full', since: T0 },
    schedules: [
      { table: NIGHTLY, next: null, last: { ...RUN, endedAt: T0 - 2, outcome: 'failed', text: 'no space left' } },
      { table: NIGHTLY, next: null, last: { ...RUN, endedAt: T0 - 1, outcome: 'done' } },
      // Its node is gone.
      { table: NIGHTLY, next: null, last: { ...RUN, until: T0 - 3 } },
    ],
    stopped: [{ scope: 'us.example', at: T0 }],
    now: T0,
    tally: {
      queues: [{ queue: 'corrupt', messages: 2, recipients: 2, oldestArrival: T0 }],
    },
    expiring: { count: 4, isAtLeast: false, within: 3_600_000 },
    noticesDue: { count: 20, isAtLeast: true },
    warnings: { count: 2, last: 'no such host', since: T0 },
  }
  const live: Parameters<typeof attentionOf>[1] = {
    tokens: [
      { name: 'm365', user: '', left: null, problem: 'invalid_client: correct it', failedSince: T0 + 1 },
      { name: 'google', user: 'ann@us.example', left: null, problem: 'no answer within 30 s: wait', failedSince: T0 },
      // A renewal failed, and the token is still used.
      { name: 'own', user: '', left: 300_000, problem: 'no answer within 30 s: wait', failedSince: null },
    ],
    quotas: [
      { quota: 'app', key: 'app@us.example', limit: '1000/1h', action: 'hold', refuses: false, since: T0 },
      { quota: 'news', key: 'news@us.example', limit: '9/1h', action: 'refuse', refuses: true, since: T0 + 1 },
    ],
    limits: [
      { share: null, measure: 'messages', used: 95_000, limit: 100_000, refusedSince: null },
      { share: 'app', measure: 'bytes', used: 960, limit: 1_000, refusedSince: T0 },
      { share: 'other', measure: 'bytes', used: 799, limit: 1_000, refusedSince: null },
    ],
    braked: ['big.example'],
  }
  expect(attentionOf(facts, live)).toEqual([
    { kind: 'store-unavailable', why: 'the disk is full', since: T0 },
    { kind: 'oauth-failed', count: 2, why: 'google: no answer within 30 s: wait', since: T0 },
    { kind: 'schedule-failed', count: 2, why: 'nightly: no space left', since: T0 - 2 },
    { kind: 'limits', count: 2, why: '960 of 1,000 bytes of the share app in the queue: mail is refused', since: T0 },
    {
      kind: 'listings-stopped',
      count: 2,
      why: 'no more addresses are listed for us.example, because too many were within an hour',
      since: T0,
    },
    { kind: 'quotas', count: 2, why: 'mail of news@us.example is refused: quota news, 9/1h, is used up', since: T0 + 1 },
    { kind: 'corrupt-messages', messages: 2 },
    { kind: 'expiring-recipients', count: 4, isAtLeast: false, within: 3_600_000 },
    { kind: 'notices-due', messages: 20, isAtLeast: true },
    { kind: 'warnings', count: 2, last: 'no such host', since: T0 },
  ])
})
