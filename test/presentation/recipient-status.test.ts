/** Reasons of recipients in listings, by the event for which they wait. */
import { expect, test } from 'vitest'
import { delayReason, nextAttemptAt, recordsByName, shortReason } from '../../src/presentation/recipient-status.ts'
import { quotaRequestOf } from '../../src/mail/message-times.ts'
import type { ListedRecipient, MessageDetails } from '../../src/store/queue-reader.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'

const recordOf = (name: string, differs: Partial<DestinationRecord>): DestinationRecord => ({
  name,
  deadUntil: null,
  probeInterval: null,
  suspension: null,
  siteStatus: null,
  ...differs,
})

const RECORDS = recordsByName([
  recordOf('dead.example', {
    deadUntil: 1000,
    siteStatus: { status: '4.4.1', reason: 'host dead.example said: 421 away', stage: 'greeting', reply: '421 away' },
  }),
  recordOf('ends.example', { suspension: { by: 'ann', until: 5_000, reason: null } }),
  recordOf('both.example', {
    suspension: { by: 'ann', until: 5_000, reason: null, also: { provider: 'big', by: 'eve', until: 8_000 } },
  }),
  recordOf('longer.example', { suspension: { by: 'ann', until: 5_000, reason: null, also: { provider: 'big', by: 'eve', until: null } } }),
  recordOf('suspended.example', { suspension: { by: 'ann', at: 0, until: null, reason: 'repair' } as DestinationRecord['suspension'] }),
])

const reasonsOf = (destination: string, queue: MessageDetails['queue'], differs: Partial<ListedRecipient> = {}, holdRequest?: string) => {
  const recipient = { state: 'waiting', destination, last: null, ...differs } as ListedRecipient
  const place = { queue, message: { holdRequest } }
  return [delayReason(recipient, place, RECORDS), shortReason(recipient, place, RECORDS)]
}

const refused = { status: '4.2.2', reason: 'host x said: 452 full', stage: 'rcpt', reply: '452 full' } as const

test('mail of a dead or suspended destination has the reason of the destination', () => {
  expect(reasonsOf('dead.example', 'deferred')).toEqual(['delivery temporarily suspended: host dead.example said: 421 away', '421 away'])
  const suspended = 'delivery temporarily suspended: by ann: repair'
  expect(reasonsOf('suspended.example', 'deferred')).toEqual([suspended, suspended])
})

test('scheduled mail waits for its time, whatever the state of its destination', () => {
  for (const destination of ['dead.example', 'suspended.example', 'open.example']) {
    expect(reasonsOf(destination, 'scheduled')).toEqual([null, null])
    expect(reasonsOf(destination, 'scheduled', { last: refused })).toEqual(['host x said: 452 full', '452 full'])
  }
})

test('no attempt begins before a destination is resumed, or probed, also of scheduled mail', () => {
  const next = (destination: string, queue: MessageDetails['queue'], dueAt: number) =>
    nextAttemptAt({ state: 'waiting', destination, dueAt }, queue, RECORDS)
  for (const queue of ['deferred', 'scheduled'] as const) {
    expect(next('open.example', queue, 700)).toBe(700)
    expect([next('dead.example', queue, 700), next('dead.example', queue, 2_000)]).toEqual([1_000, 2_000])
    expect([next('ends.example', queue, 700), next('ends.example', queue, 7_000)]).toEqual([5_000, 7_000])
    expect(next('both.example', queue, 700)).toBe(8_000)
    expect([next('suspended.example', queue, 700), next('longer.example', queue, 700)]).toEqual([null, null])
  }
  expect(next('open.example', 'hold', 700)).toBeNull()
})

test('mail that a quota holds has the quota as its reason, until it is released or put on hold', () => {
  const quota = quotaRequestOf({ quota: 'app', limit: '3/1h', recipients: 1, sender: 'app@us.example' })
  const held = 'quota app, 3/1h, is used up'
  expect(reasonsOf('suspended.example', 'scheduled', {}, quota)).toEqual([held, held])
  expect(reasonsOf('open.example', 'hold', { state: 'parked' }, quota)).toEqual([null, null])
  expect(reasonsOf('open.example', 'deferred', { last: refused }, quota)).toEqual(['host x said: 452 full', '452 full'])
  expect(reasonsOf('open.example', 'scheduled', {}, 'for;3600')).toEqual([null, null])
})

test('mail on hold, and mail of an open destination, has the reason of its last attempt', () => {
  expect(reasonsOf('dead.example', 'hold', { state: 'parked', last: refused })).toEqual(['host x said: 452 full', '452 full'])
  expect(reasonsOf('open.example', 'deferred', { last: refused })).toEqual(['host x said: 452 full', '452 full'])
  expect(reasonsOf('open.example', 'active', { state: 'leased', last: refused })).toEqual([null, null])
})
