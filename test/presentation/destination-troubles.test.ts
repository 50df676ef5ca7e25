import { expect, test } from 'vitest'
import { troublesOf, troubleText } from '../../src/presentation/destination-troubles.ts'
import type { StatusDestination } from '../../src/queue/queue-status.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import { liveDestination } from '../support/live-destination.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'

const silent = (host: string): DeliveryStatus => ({
  status: '4.4.1',
  reason: `connect to ${host}:25: Connection timed out`,
  stage: 'connect',
})
const BLOCKED: DeliveryStatus = {
  status: '4.7.1',
  reason: 'host mx.blocked.test[192.0.2.7] said: 451 4.7.1 blocked using bl.test (in reply to RCPT TO command)',
  reply: '451 4.7.1 blocked using bl.test',
  stage: 'rcpt',
}
const NOTHING = { deadUntil: null, probeInterval: null, suspension: null, siteStatus: null }

const one = (destination: string, waiting: number, state: Partial<NonNullable<StatusDestination['record']>>): StatusDestination => ({
  destination,
  waiting,
  scheduled: 0,
  live: undefined,
  record: { name: destination, ...NOTHING, ...state },
  recent: undefined,
})
const dead = (destination: string, waiting: number, siteStatus: DeliveryStatus) =>
  one(destination, waiting, { deadUntil: 4 * MINUTE, siteStatus })

const refusing = (destination: string, waiting: number): StatusDestination => ({
  ...one(destination, waiting, {}),
  live: liveDestination(destination, { waiting, nextDueAt: MINUTE, undelivered: { count: 8_000, since: -2 * HOUR, last: BLOCKED } }),
})

test('equal dead domains are one line with their host, which 80 columns have room for', () => {
  const host = 'mx.deadprov.test[185.30.0.31]'
  const domains = Array.from({ length: 98 }, (_, n) => dead(`firm${n}.test`, 29, silent(host)))
  const other = dead('alone.test', 3, silent('mx.alone.test[192.0.2.9]'))
  const lines = troublesOf({ closed: [other, ...domains], refusing: [refusing('blocked.test', 8_000)], throttled: [] }).map((trouble) =>
    troubleText(trouble, 0),
  )
  expect(lines).toEqual([
    'blocked.test: no delivery in 8,000 attempts in 2h: 451 4.7.1 blocked using bl.test, mx.blocked.test[192.0.2.7] — 8,000 waiting',
    '98 destinations: do not answer, mx.deadprov.test[185.30.0.31] — 2,842 waiting',
    'alone.test: does not answer, mx.alone.test[192.0.2.9], probed in 4m — 3 waiting',
  ])
  expect(lines[1]?.length).toBeLessThanOrEqual(80)
})

test('a dead destination that is probed now is told so', () => {
  const known = {
    ...dead('a.test', 3, silent('mx.a.test[192.0.2.9]')),
    live: liveDestination('a.test', { waiting: 3, state: 'dead', siteStatus: silent('mx.a.test[192.0.2.9]'), isProbed: true }),
  }
  expect(troublesOf({ closed: [known], refusing: [], throttled: [] }).map((trouble) => troubleText(trouble, 5 * MINUTE))).toEqual([
    'a.test: does not answer, mx.a.test[192.0.2.9], being probed — 3 waiting',
  ])
})

test('replies that differ in their variable parts are one reason, and other hosts are not', () => {
  const said = (host: string, n: number) => ({ ...BLOCKED, reason: `host ${host} said: 451 4.7.1 busy ${n}`, reply: `451 4.7.1 busy ${n}` })
  const closed = [
    dead('a.test', 1, said('mx[192.0.2.1]', 1)),
    dead('b.test', 5, said('mx[192.0.2.1]', 2)),
    dead('c.test', 2, said('mx[192.0.2.2]', 3)),
  ]
  const troubles = troublesOf({ closed, refusing: [], throttled: [] })
  expect(troubles.map(({ destinations }) => destinations)).toEqual([['b.test', 'a.test'], ['c.test']])
})

test('a suspension of several destinations is one line', () => {
  const suspension = { by: 'root', until: 2 * HOUR, reason: 'provider moves' }
  const troubles = troublesOf({ closed: [one('a.test', 1, { suspension }), one('b.test', 2, { suspension })], refusing: [], throttled: [] })
  expect(troubles.map((trouble) => troubleText(trouble, 0))).toEqual([
    '2 destinations: suspended by root, ends in 2h: provider moves — 3 waiting',
  ])
})

test('a reason without a host is the reason itself', () => {
  const noHost = dead('nowhere.test', 4, { status: '4.4.3', reason: 'Host or domain name not found', stage: 'dns' })
  expect(troublesOf({ closed: [noHost], refusing: [], throttled: [] }).map((trouble) => troubleText(trouble, 0))).toEqual([
    'nowhere.test: Host or domain name not found, probed in 4m — 4 waiting',
  ])
})

test('a throttled destination is told with the most frequent cause, without placeholders', () => {
  const recent = { outcomes: [], windows: [], causes: [{ cause: '421 4.7.28 unusual rate of mail from IP {ip}', attempts: 9 }] }
  const throttled = [{ ...refusing('big.test', 9_260), recent }, refusing('other.test', 300)]
  expect(troublesOf({ closed: [], refusing: [], throttled }).map((trouble) => troubleText(trouble, 0))).toEqual([
    'big.test: throttled: 421 4.7.28 unusual rate of mail from IP · — 9,260 waiting',
    'other.test: throttled — 300 waiting',
  ])
})

test('scheduled mail does not wait, and a destination that has no other mail is not told', () => {
  const [busy, later] = [refusing('busy.test', 103), refusing('later.test', 5)]
  const troubles = troublesOf({
    closed: [],
    refusing: [
      { ...busy, scheduled: 11 },
      { ...later, scheduled: 5 },
    ],
    throttled: [],
  })
  expect(troubles.map(({ destinations, waiting }) => [...destinations, waiting])).toEqual([['busy.test', 92]])
})
