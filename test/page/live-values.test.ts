/** The numbers that the script of the page takes from the state of the queue. */
import { expect, test } from 'vitest'
import * as browser from '../../src/page/browser/live-values.js'
import { LARGEST } from '../../src/queue/queue-status.ts'

const destination = (name: string, waiting: number, inFlight: number | null = 0) => ({ destination: name, waiting, in_flight: inFlight })

const now = (largest: readonly object[], closed: readonly object[] = []) => ({
  rates: { last_10s: { accepted: 1.5 } },
  queues: [{ queue_name: 'deferred', messages: 7 }],
  closed_destinations: closed,
  largest_destinations: largest,
})

const FULL = Array.from({ length: LARGEST }, (_, n) => destination(`d${n}.example`, 100 - n))

test('members are found by name, and in lists by queue or destination', () => {
  const value = now([destination('smtp:[relay]:25', 3)])
  expect(browser.liveNumber(value, 'rates/last_10s/accepted')).toBe(1.5)
  expect(browser.liveNumber(value, 'queues/deferred/messages')).toBe(7)
  expect(browser.liveNumber(value, `largest_destinations/${encodeURIComponent('smtp:[relay]:25')}/waiting`)).toBe(3)
})

test('an entry is found by its name before its position', () => {
  const value = {
    subscriptions: [
      { name: '1', behind: 5 },
      { name: 'app', behind: 7 },
    ],
    ages: { counts: [3, 4] },
  }
  expect(browser.liveNumber(value, 'subscriptions/1/behind')).toBe(5)
  expect(browser.liveNumber(value, 'subscriptions/app/behind')).toBe(7)
  expect(browser.liveNumber(value, 'ages/counts/1')).toBe(4)
})

test('a queue or destination that has left the lists has no mail', () => {
  expect(browser.liveNumber(now([]), 'queues/hold/messages')).toBe(0)
  expect(browser.liveNumber(now([destination('a.example', 1)]), 'largest_destinations/b.example/waiting')).toBe(0)
})

test('an address to which nothing connects any more', () => {
  const value = { deliveries: { in_flight: 21, connecting: [{ address: '2001:db8::1', count: 20 }] } }
  const path = (address: string) => `deliveries/connecting/${encodeURIComponent(address)}/count`
  expect(browser.liveNumber(value, 'deliveries/in_flight')).toBe(21)
  expect(browser.liveNumber(value, path('2001:db8::1'))).toBe(20)
  expect(browser.liveNumber(value, path('192.0.2.1'))).toBe(0)
  expect(browser.liveNumber({}, path('192.0.2.1'))).toBeNull()
})

test('a destination that is not one of the largest keeps its number', () => {
  expect(browser.liveNumber(now(FULL), 'largest_destinations/small.example/waiting')).toBeNull()
  expect(browser.liveNumber(now(FULL, [destination('small.example', 2)]), 'largest_destinations/small.example/waiting')).toBe(2)
})

test('a value that is no number changes nothing', () => {
  expect(browser.liveNumber(now([destination('a.example', 1, null)]), 'largest_destinations/a.example/in_flight')).toBeNull()
  for (const value of [null, 'text', [], {}]) expect(browser.liveNumber(value, 'rates/last_10s/accepted')).toBeNull()
})
