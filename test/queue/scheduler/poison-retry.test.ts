import { expect, test } from 'vitest'
import type { DeliveryRequest } from '../../../src/mail/message.ts'
import { ArrivingMail } from '../../../src/queue/scheduler/arriving-mail.ts'
import { PoisonRetry } from '../../../src/queue/scheduler/poison-retry.ts'
import { openMemoryStore } from '../../../src/store/memory/memory-store.ts'
import { StoreHealth } from '../../../src/store/store-health.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { SECOND } from '../../../src/system/clock.ts'
import { TaskSet } from '../../../src/system/task-set.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const requestFor = (id: number): DeliveryRequest => ({
  lease: { owner: 1, until: Infinity },
  message: { id, createdAt: 0, arrivedAt: 0, sender: '', size: 1, contentId: id, smtputf8: false },
  destination: 'far.example',
  recipients: [],
  fresh: false,
  forcedExpire: false,
})

/** A retry over a store with these messages in delivery at two crashes; the test ends the deliveries. */
function retryOf(...ids: readonly number[]) {
  const clock = new VirtualClock()
  const { store } = openMemoryStore()
  const waiting = ids.map(requestFor)
  let unavailable = false
  store.claimSuspect = () => (unavailable ? Promise.reject(new StoreUnavailable('disk full')) : Promise.resolve(waiting.shift()))
  const started: number[] = []
  const ends: (() => void)[] = []
  const failures: string[] = []
  const storeHealth = new StoreHealth({ store: store.upkeep, clock, failed: (why) => failures.push(why) })
  const tasks = new TaskSet((error) => {
    throw error
  })
  const retry = new PoisonRetry(
    { store, clock, storeHealth, arriving: new ArrivingMail(), tasks },
    {
      dispatchAlone: ({ message }) => {
        started.push(message.id)
        return new Promise((resolve) => ends.push(resolve))
      },
    },
  )
  const driver = new TimeDriver(clock, {})
  return {
    retry,
    started,
    failures,
    failing: () => (unavailable = true),
    endDelivery: () => ends.shift()?.(),
    advance: (time: number) => driver.runUntil(clock.now() + time),
  }
}

test('such mail is tried alone, one message after the other, five seconds after the start', async () => {
  const { retry, started, endDelivery, advance } = retryOf(1, 2)
  retry.start()
  await advance(5 * SECOND - 1)
  expect(started).toEqual([])
  await advance(1)
  expect(started).toEqual([1])
  await advance(60 * SECOND)
  expect(started).toEqual([1])
  endDelivery()
  await advance(0)
  expect(started).toEqual([1, 2])
})

test('a stop before the start, or between two messages, tries no more', async () => {
  const before = retryOf(1)
  before.retry.start()
  before.retry.stop()
  await before.advance(60 * SECOND)
  expect(before.started).toEqual([])

  const between = retryOf(1, 2)
  between.retry.start()
  await between.advance(5 * SECOND)
  between.retry.stop()
  between.endDelivery()
  await between.advance(0)
  expect(between.started).toEqual([1])
})

test('a store that is unavailable ends the run, and is reported', async () => {
  const { retry, started, failures, failing, advance } = retryOf(1)
  failing()
  retry.start()
  await advance(5 * SECOND)
  expect([started, failures]).toEqual([[], ['disk full']])
})
