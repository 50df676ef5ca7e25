import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import { ActiveQueue } from '../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable } from '../../../src/queue/scheduler/destination-table.ts'
import type { DeliveryRequest } from '../../../src/mail/message.ts'

const { config } = configFrom({ default_destination_concurrency_limit: 0, initial_destination_concurrency: 100_000 }, 'relay.example')
const policies = new DestinationPolicies(config)
const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }

const request = (message: number, destination = 'far.example'): DeliveryRequest => ({
  lease: { owner: 1, until: Infinity },
  message: { id: message, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 100, contentId: message, smtputf8: false },
  destination,
  recipients: [],
  fresh: true,
  forcedExpire: false,
})

function queueOf(...messages: readonly [message: number, entries: number][]) {
  const limits = () => ({ deliveries: 1_000_000, messages: 1_000_000, recipients: 1_000_000, slots, transportDelay: 0 })
  const active = new ActiveQueue(limits)
  const table = new DestinationTable(active, limits, () => policies)
  const add = (message: number, entries: number, now = 0) => {
    for (let i = 0; i < entries; i++) {
      active.reserve(message, 0)
      table.enter(request(message), now)
    }
  }
  for (const [message, entries] of messages) add(message, entries)
  return { add, select: (now = 0) => table.next(now, now)?.job.request.message.id }
}

describe('while a message of 1000 entries is selected (Postfix SCHEDULER_README)', () => {
  test('a new message of one entry gets the next selection', () => {
    const { add, select } = queueOf([1, 1000])
    expect(select()).toBe(1)
    add(2, 1)
    expect([select(), select()]).toEqual([2, 1])
  })

  test('not before the large one was selected once', () => {
    const { add, select } = queueOf([1, 1000])
    add(2, 1)
    expect([select(), select(), select()]).toEqual([1, 2, 1])
  })

  test('a message of 100 entries preempts it once 235 of the large one have been selected', () => {
    const { add, select } = queueOf([1, 1000])
    add(2, 100)
    const order = Array.from({ length: 340 }, () => select())
    expect(order.indexOf(2)).toBe(235)
    expect(order.slice(235, 335)).toEqual(Array.from({ length: 100 }, () => 2))
    expect(order.slice(335)).toEqual([1, 1, 1, 1, 1])
  })

  test('with endless small ones it still gets four of five selections', () => {
    const { add, select } = queueOf([1, 1000])
    const order: (number | undefined)[] = []
    for (let i = 0; i < 1000; i++) {
      add(i + 2, 1, i)
      order.push(select(i))
    }
    expect(order.filter((message) => message === 1).length).toBeGreaterThanOrEqual(790)
  })
})

test('a message below the minimum of slots is not preempted', () => {
  const { add, select } = queueOf([1, 14])
  select()
  add(2, 1)
  expect(Array.from({ length: 14 }, () => select())).toEqual([...Array.from({ length: 13 }, () => 1), 2])
})

test('each entry is selected once, whatever preempts', () => {
  const { add, select } = queueOf([1, 500], [2, 40], [3, 3])
  const seen = new Map<number, number>()
  for (let i = 0; i < 600; i++) {
    if (i % 50 === 0) add(100 + i, 1 + (i % 7), i * 100)
    const message = select(i * 100)
    if (message !== undefined) seen.set(message, (seen.get(message) ?? 0) + 1)
  }
  expect([seen.get(1), seen.get(2), seen.get(3), seen.get(100), seen.get(150)]).toEqual([500, 40, 3, 1, 2])
})
