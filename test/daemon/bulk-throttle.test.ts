import { beforeEach, expect, test } from 'vitest'
import { BulkThrottle } from '../../src/daemon/bulk-throttle.ts'
import { SECOND, type Duration } from '../../src/system/clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const MESSAGE = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: 1, smtputf8: false }

let clock: VirtualClock
let events: Events
let throttle: BulkThrottle
beforeEach(() => {
  clock = new VirtualClock()
  events = new Events(() => clock.now())
  throttle = new BulkThrottle(clock, events)
})

const pass = (time: Duration) => clock.jumpTo(clock.now() + time)
const mailMoves = () => events.emit({ kind: 'accepted', message: MESSAGE, recipients: [], client: null })

/** Wait after work on this number of messages. */
async function wait(messages: number): Promise<Duration> {
  const before = clock.monotonic()
  const over = throttle.wait(messages)
  while (clock.pending > 0) clock.runNext()
  await over
  return clock.monotonic() - before
}

/** Duration of an operation on 100,000 messages when a round of 50 takes `work`. */
async function order(work: Duration, beside: () => void): Promise<Duration> {
  for (let done = 0; done < 100_000; done += 50) {
    pass(work)
    beside()
    await wait(50)
  }
  return clock.monotonic()
}

test('with mail in delivery, 100,000 messages take between eight and ten seconds', async () => {
  const time = await order(1, mailMoves)
  expect(time).toBeGreaterThan(8 * SECOND)
  expect(time).toBeLessThan(10 * SECOND)
})

test('on an idle relay, they are not throttled', async () => {
  expect(await order(1, () => undefined)).toBe(2 * SECOND)
})

test('occasional deliveries count as mail in delivery', async () => {
  let rounds = 0
  const time = await order(1, () => {
    if (rounds++ % 200 === 0) mailMoves()
  })
  expect(time).toBeGreaterThan(8 * SECOND)
})

test('mail requeued by an operation does not throttle', async () => {
  const requeued = () => events.emit({ kind: 'accepted', message: MESSAGE, recipients: [], client: null, originalId: 'x' })
  expect(await order(1, requeued)).toBe(2 * SECOND)
})

test('a stop ends all waits', async () => {
  throttle.end()
  expect(await order(1, mailMoves)).toBe(2 * SECOND)
})

test('work slower than the rate is not throttled', async () => {
  expect(await order(6, mailMoves)).toBe(12 * SECOND)
})

test('a slow round is compensated in the next ones, an idle minute is not', async () => {
  mailMoves()
  await wait(50)
  pass(20)
  mailMoves()
  expect(await wait(50)).toBe(0)
  pass(60 * SECOND)
  mailMoves()
  expect(await wait(1_000)).toBeGreaterThan(30)
})
