import { beforeEach, expect, test } from 'vitest'
import { RightOfWay } from '../../src/daemon/right-of-way.ts'
import { SECOND, type Duration } from '../../src/mail/clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { VirtualClock } from '../../src/testkit/virtual-clock.ts'

const MESSAGE = { id: 1, createdAt: 0, arrivedAt: 0, sender: '', size: 1, body: 1, smtputf8: false }

let clock: VirtualClock
let events: Events
let rightOfWay: RightOfWay
beforeEach(() => {
  clock = new VirtualClock()
  events = new Events(() => clock.now())
  rightOfWay = new RightOfWay(clock, events)
})

const pass = (time: Duration) => clock.jumpTo(clock.now() + time)
const mailMoves = () => events.emit({ kind: 'accepted', message: MESSAGE, recipients: [], client: null })

/** How long it waits after work on so many messages. */
async function wait(messages: number): Promise<Duration> {
  const before = clock.monotonic()
  const over = rightOfWay.giveWay(messages)
  while (clock.pending > 0) clock.runNext()
  await over
  return clock.monotonic() - before
}

/** How long an order for 100,000 messages takes when a round of 50 takes `work`. */
async function order(work: Duration, beside: () => void): Promise<Duration> {
  for (let done = 0; done < 100_000; done += 50) {
    pass(work)
    beside()
    await wait(50)
  }
  return clock.monotonic()
}

test('beside mail that flows, 100,000 messages take between eight and ten seconds', async () => {
  const time = await order(1, mailMoves)
  expect(time).toBeGreaterThan(8 * SECOND)
  expect(time).toBeLessThan(10 * SECOND)
})

test('alone they take no longer than the work', async () => {
  expect(await order(1, () => undefined)).toBe(2 * SECOND)
})

test('mail that moves now and then is mail that flows', async () => {
  let rounds = 0
  const time = await order(1, () => {
    if (rounds++ % 200 === 0) mailMoves()
  })
  expect(time).toBeGreaterThan(8 * SECOND)
})

test('mail that an order requeues is no reason to wait', async () => {
  const requeued = () => events.emit({ kind: 'accepted', message: MESSAGE, recipients: [], client: null, originalId: 'x' })
  expect(await order(1, requeued)).toBe(2 * SECOND)
})

test('when the daemon ends, nothing waits', async () => {
  rightOfWay.end()
  expect(await order(1, mailMoves)).toBe(2 * SECOND)
})

test('work that is slower than that anyway is not made to wait', async () => {
  expect(await order(6, mailMoves)).toBe(12 * SECOND)
})

test('a slow round is made good in the next ones, a quiet minute is not', async () => {
  mailMoves()
  await wait(50)
  pass(20)
  mailMoves()
  expect(await wait(50)).toBe(0)
  pass(60 * SECOND)
  mailMoves()
  expect(await wait(1_000)).toBeGreaterThan(30)
})
