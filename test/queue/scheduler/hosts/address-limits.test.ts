import { describe, expect, test } from 'vitest'
import {
  AddressLimits,
  connectingLimit,
  isSilent,
  passageOf,
  type AddressFacts,
} from '../../../../src/queue/scheduler/hosts/address-limits.ts'
import { MINUTE, SECOND } from '../../../../src/system/clock.ts'

const UNKNOWN: AddressFacts = { connecting: 0, limit: 20, answeredAt: null, failures: 0, failedAt: null, now: 10 * MINUTE }
const SILENT: AddressFacts = { ...UNKNOWN, failures: 5, failedAt: UNKNOWN.now - SECOND }

test.each([
  [1, 1],
  [4, 1],
  [9, 1],
  [10, 2],
  [100, 20],
])('of %i slots, %i connect to an address that has not answered', (slots, limit) => {
  expect(connectingLimit(slots)).toBe(limit)
})

describe('a connection', () => {
  test.each([
    ['to an unknown address begins', {}, 'connects'],
    ['waits while as many connect as may', { connecting: 20 }, 'waits'],
    ['to an address that has greeted within a minute is not limited', { connecting: 99, answeredAt: UNKNOWN.now - MINUTE }, 'connects'],
    ['is limited a minute after the greeting', { connecting: 20, answeredAt: UNKNOWN.now - MINUTE - 1 }, 'waits'],
  ] as const)('%s', (_, facts, passage) => {
    for (const urgent of [false, true]) expect(passageOf({ ...UNKNOWN, ...facts }, urgent)).toBe(passage)
  })

  test('to a silent address is made for urgent mail only, and if there is room', () => {
    expect(passageOf(SILENT, false)).toBe('joins')
    expect(passageOf(SILENT, true)).toBe('connects')
    expect(passageOf({ ...SILENT, connecting: 20 }, true)).toBe('joins')
  })

  test('to an address is tried anew a minute after it was silent', () => {
    expect(isSilent(SILENT)).toBe(true)
    expect(isSilent({ ...SILENT, failures: 4 })).toBe(false)
    expect(passageOf({ ...SILENT, now: SILENT.now + MINUTE }, false)).toBe('connects')
  })
})

test('an answer ends the silence of an address; its connections are counted until then', () => {
  const limits = new AddressLimits<string>(() => 10)
  const at = (now: number) => limits.passage('192.0.2.1', { urgent: false, now })
  limits.begin('192.0.2.1')
  limits.begin('192.0.2.1')
  limits.begin('192.0.2.2')
  expect(at(0)).toBe('waits')
  expect(limits.connecting).toEqual([
    { address: '192.0.2.1', count: 2 },
    { address: '192.0.2.2', count: 1 },
  ])
  limits.end('192.0.2.1')
  expect(at(0)).toBe('connects')
  const status = { status: '4.4.1', reason: 'connect to 192.0.2.1: timed out', stage: 'connect' } as const
  for (let n = 0; n < 5; n++) limits.failed('192.0.2.1', status, 0)
  expect(at(0)).toBe('joins')
  expect(limits.statusOf('192.0.2.1')).toBe(status)
  limits.answered('192.0.2.1', 0)
  expect(at(0)).toBe('connects')
  expect(limits.statusOf('192.0.2.1')).toBe(null)
})

test('the answers of ten thousand addresses are kept', () => {
  const limits = new AddressLimits<string>(() => 10)
  limits.answered('192.0.2.1', 0)
  for (let n = 0; n < 10_000; n++) limits.answered(`198.51.100.${n}`, 0)
  for (let n = 0; n < 2; n++) limits.begin('192.0.2.1')
  expect(limits.passage('192.0.2.1', { urgent: false, now: 0 })).toBe('waits')
})
