import { describe, expect, test } from 'vitest'
import { noticeSettings } from '../../../src/bounce/notice-writer.ts'
import { loadTemplates } from '../../../src/bounce/templates.ts'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import type { RecipientOutcome } from '../../../src/delivery/delivery-agent.ts'
import { days, hours, minutes, seconds, type QueueTime } from '../../../src/system/clock.ts'
import { earliestDue, expire, settle, type LifecycleFacts } from '../../../src/queue/scheduler/lifecycle.ts'
import type { DeliveryRequest, LeasedRecipient } from '../../../src/mail/message.ts'

const START: QueueTime = 1_800_000_000_000

type Facts = LifecycleFacts & { readonly returned: boolean }

const { config, written } = configFrom({ myhostname: 'us.example' }, 'us.example')
const notices = noticeSettings(config, loadTemplates({ config, written }).templates)

const withJitter = (retry_jitter: number) => new DestinationPolicies({ ...config, retry_jitter }).for('far.example')
const warnedAfter = (...ages: readonly number[]) => ({ ...notices, warningAges: () => ages })

const facts = (differs: Partial<Facts> = {}): Facts => ({
  policy: withJitter(0),
  notices,
  draw: () => 0.5,
  returned: false,
  ...differs,
})

const recipient = (differs: Partial<LeasedRecipient> = {}): LeasedRecipient => ({
  id: 131_072,
  address: 'ann@far.example',
  dueAt: START,
  expiresAt: START + days(2),
  steps: 0,
  attempts: 0,
  last: null,
  warnings: 0,
  flushed: false,
  ...differs,
})

const request = (recipients: readonly LeasedRecipient[], sender = 'app@us.example'): DeliveryRequest => ({
  lease: { owner: 1, until: Infinity },
  message: { id: 1, createdAt: START, arrivedAt: START, sender, size: 100, contentId: 1, smtputf8: false },
  destination: 'far.example',
  recipients,
  fresh: false,
  forcedExpire: false,
})

const BUSY: RecipientOutcome = {
  outcome: 'deferred',
  status: { status: '4.2.1', reason: 'busy', reply: '450 4.2.1 busy', stage: 'rcpt' },
}
const GONE: RecipientOutcome = {
  outcome: 'bounced',
  status: { status: '5.1.1', reason: 'no such user', reply: '550 5.1.1 no such user', stage: 'rcpt' },
}
const DONE: RecipientOutcome = {
  outcome: 'delivered',
  status: { status: '2.0.0', reason: '250 2.0.0 Ok', reply: '250 2.0.0 Ok', stage: 'end-of-data' },
}

function attempt(one: LeasedRecipient, at: QueueTime, outcome: RecipientOutcome = BUSY, with_ = facts(), sender?: string) {
  const times = { startedAt: at, transmittingAt: at, endedAt: at }
  const result = { outcomes: new Map([[one.id, outcome]]), feedback: 'positive' as const, relay: null, connectionUse: 1, times }
  const settled = settle(request([one], sender), result, { activatedAt: at }, with_).recipients[0]
  if (settled === undefined) throw new Error('nothing was settled')
  return settled
}

test('the schedule of a refused recipient: waits double up to the maximum, the last attempt falls on the expiry', () => {
  let one = recipient({ expiresAt: START + seconds(20_000) })
  const tried: number[] = []
  for (let at = START; ; at = one.dueAt) {
    tried.push((at - START) / 1000)
    const settled = attempt(one, at)
    if (settled.state !== 'waiting') {
      expect(settled).toMatchObject({ state: 'expired', noticeDue: 'failure', last: { status: '4.2.1' }, attempts: tried.length })
      break
    }
    one = { ...one, ...settled }
  }
  expect(tried).toEqual([0, 300, 900, 2100, 4500, 8500, 12_500, 16_500, 20_000])
})

test('the wait counts from the end of the attempt', () => {
  const settled = attempt(recipient(), START + minutes(3))
  expect(settled).toMatchObject({ state: 'waiting', dueAt: START + minutes(3) + seconds(300), steps: 1, attempts: 1 })
})

describe('a flushed attempt that fails', () => {
  test('keeps step and due time while the due time is ahead', () => {
    const settled = attempt(recipient({ flushed: true, steps: 4, attempts: 4, dueAt: START + hours(3) }), START + hours(2))
    expect(settled).toMatchObject({ dueAt: START + hours(3), steps: 4, attempts: 5 })
  })

  test('waits the current wait once when the due time is past', () => {
    const settled = attempt(recipient({ flushed: true, steps: 3, attempts: 3, dueAt: START + hours(1) }), START + hours(2))
    expect(settled).toMatchObject({ dueAt: START + hours(2) + seconds(1200), steps: 3, attempts: 4 })
  })
})

test('mail returned for congestion keeps its step and its due time', () => {
  const settled = attempt(recipient({ steps: 2, attempts: 2, dueAt: START + hours(1) }), START + hours(2), BUSY, facts({ returned: true }))
  expect(settled).toMatchObject({ state: 'waiting', dueAt: START + hours(1), steps: 2, attempts: 3 })
})

test('jitter spreads a wait w over [w, w·(1+j)]', () => {
  const due = (draw: number) => {
    const settled = attempt(recipient(), START, BUSY, facts({ policy: withJitter(0.5), draw: () => draw }))
    return settled.state === 'waiting' ? (settled.dueAt - START) / 1000 : null
  }
  expect([due(0), due(0.5), due(0.999_999)]).toEqual([300, 375, 450])
})

test('recipients of one message at one destination share their due time, jitter or not', () => {
  const draws = new Map<string, number>()
  const draw = (key: string) => {
    if (!draws.has(key)) draws.set(key, draws.size / 10)
    return draws.get(key) ?? 0
  }
  const two = [recipient({ id: 131_072 }), recipient({ id: 131_073 })]
  const outcomes = new Map(two.map((one) => [one.id, BUSY]))
  const times = { startedAt: START, transmittingAt: START, endedAt: START }
  const result = { outcomes, feedback: 'positive' as const, relay: null, connectionUse: 1, times }
  const settlement = settle(request(two), result, { activatedAt: START }, facts({ policy: withJitter(1), draw }))
  expect(new Set(settlement.recipients.map((one) => one.state === 'waiting' && one.dueAt)).size).toBe(1)
  expect(earliestDue(settlement)).toBeGreaterThan(START)
})

test('no notice is due after a delivery, a failure notice after a bounce, except for <>', () => {
  expect(attempt(recipient(), START, DONE)).toMatchObject({ state: 'delivered', noticeDue: undefined })
  expect(attempt(recipient(), START, GONE)).toMatchObject({ state: 'bounced', noticeDue: 'failure' })
  expect(attempt(recipient(), START, GONE, facts(), '')).toMatchObject({ state: 'bounced', noticeDue: undefined })
})

describe('a delay notice is due', () => {
  const warned = facts({ notices: warnedAfter(hours(4), hours(24)) })
  test('with the first failed attempt at or after its time', () => {
    expect(attempt(recipient(), START + hours(4) - 1, BUSY, warned)).toMatchObject({ noticeDue: undefined })
    expect(attempt(recipient(), START + hours(4), BUSY, warned)).toMatchObject({ noticeDue: 'delay' })
  })
  test('once for each time', () => {
    expect(attempt(recipient({ warnings: 1 }), START + hours(5), BUSY, warned)).toMatchObject({ noticeDue: undefined })
    expect(attempt(recipient({ warnings: 1 }), START + hours(24), BUSY, warned)).toMatchObject({ noticeDue: 'delay' })
    expect(attempt(recipient({ warnings: 2 }), START + hours(40), BUSY, warned)).toMatchObject({ noticeDue: undefined })
  })
  test('not when it is the last attempt', () => {
    expect(attempt(recipient({ expiresAt: START + hours(4) }), START + hours(4), BUSY, warned)).toMatchObject({
      state: 'expired',
      noticeDue: 'failure',
    })
  })
})

test('the status of an outcome is carried unchanged into the queue entry and the history', () => {
  const one = recipient()
  const times = { startedAt: START, transmittingAt: START, endedAt: START }
  const result = { outcomes: new Map([[one.id, BUSY]]), feedback: 'positive' as const, relay: null, connectionUse: 1, times }
  const { recipients, attempts } = settle(request([one]), result, { activatedAt: START }, facts())
  expect(recipients[0]?.last).toBe(BUSY.status)
  expect(attempts[0]?.status).toBe(BUSY.status)
})

test('expired mail has its last reply, or states that no attempt was made', () => {
  const never = { status: '4.4.7', reason: 'never tried', stage: 'queue' as const }
  const tried = recipient({ id: 131_072, last: BUSY.status, attempts: 3 })
  const settlement = expire(request([tried, recipient({ id: 131_073 })]), START + days(2), never, facts())
  expect(settlement.recipients).toMatchObject([
    { state: 'expired', last: { status: '4.2.1' }, attempts: 3, noticeDue: 'failure' },
    { state: 'expired', last: { status: '4.4.7' }, attempts: 0, noticeDue: 'failure' },
  ])
  expect(settlement.attempts).toEqual([])
})

test('the four delays of an attempt', () => {
  const one = recipient()
  const times = { startedAt: START + 600, transmittingAt: START + 1100, endedAt: START + 1350 }
  const result = { outcomes: new Map([[one.id, DONE]]), feedback: 'positive' as const, relay: 'far[192.0.2.1]:25', connectionUse: 1, times }
  const [record] = settle(request([one]), result, { activatedAt: START + 500 }, facts()).attempts
  expect(record).toMatchObject({ outcome: 'delivered', relay: 'far[192.0.2.1]:25', delays: [500, 100, 500, 250] })
})
