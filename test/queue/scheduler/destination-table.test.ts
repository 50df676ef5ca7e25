import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { configFrom } from '../../../src/config/load.ts'
import type { DeliveryRequest } from '../../../src/mail/message.ts'
import { ActiveQueue, type ActiveLimits } from '../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable, type RunningDelivery } from '../../../src/queue/scheduler/destination-table.ts'

const { config } = configFrom({ initial_destination_concurrency: 2, default_destination_concurrency_limit: 2 }, 'relay.example')
const policies = new DestinationPolicies(config)
const LIMITS: ActiveLimits = {
  deliveries: 100,
  messages: 1_000,
  recipients: 1_000,
  slots: { cost: 5, loan: 3, discount: 50, minimum: 3 },
  transportDelay: 0,
}

const recipient = (id: number) => ({
  id,
  address: 'ann@far.example',
  dueAt: 0,
  expiresAt: 1,
  steps: 0,
  attempts: 0,
  last: null,
  warnings: 0,
  flushed: false,
})

const request = (message: number, destination: string): DeliveryRequest => ({
  message: { id: message, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 100, contentId: message, smtputf8: false },
  destination,
  recipients: [recipient(message)],
  fresh: true,
  forcedExpire: false,
  lease: { owner: 1, until: Infinity },
})

/** A table with one job for each of these destinations, in this order; messages are numbered from 1. */
function tableWith(destinations: readonly string[], limits: Partial<ActiveLimits> = {}) {
  const all = { ...LIMITS, ...limits }
  const active = new ActiveQueue(() => all)
  const table = new DestinationTable(
    active,
    () => all,
    () => policies,
  )
  destinations.forEach((destination, n) => {
    active.reserve(n + 1, 1)
    table.enter(request(n + 1, destination), 0)
  })
  const running: RunningDelivery[] = []
  const begin = () => {
    const next = table.next(0, 0)
    if (next !== undefined) running.push(next)
    return next?.job.request.message.id
  }
  return { active, table, begin, running, beginAll: () => Array.from({ length: 20 }, begin).filter((id) => id !== undefined) }
}

/** Ends a delivery whose outcome is written and durable at once. */
function ended(table: DestinationTable, running: RunningDelivery, at: number): void {
  table.freeSlot(running, at)
  table.finished(running)
}

describe('the next delivery', () => {
  test('destinations take turns, each up to its window', () => {
    const { beginAll } = tableWith(['a.example', 'a.example', 'a.example', 'b.example', 'c.example'])
    expect(beginAll()).toEqual([1, 4, 5, 2])
  })

  test('no more than default_process_limit at once; a finished one makes room', () => {
    const { table, begin, beginAll, running } = tableWith(['a.example', 'b.example', 'c.example'], { deliveries: 2 })
    expect(beginAll()).toEqual([1, 2])
    const [first] = running
    if (first !== undefined) ended(table, first, 1)
    expect(begin()).toBe(3)
  })

  test('none for a suspended destination, nor during a rate delay', () => {
    const { table, beginAll } = tableWith(['a.example', 'b.example', 'c.example'])
    table.get('a.example').suspend({ by: 'root', until: null, reason: null })
    table.get('b.example').beginDelay()
    expect(beginAll()).toEqual([3])
    table.endDelay(table.get('b.example'))
    expect(beginAll()).toEqual([2])
  })

  test('one at a time by a transport with a delay, until the delay is over', () => {
    const { table, beginAll, running } = tableWith(['a.example', 'b.example', 'lmtp:[192.0.2.1]:24'], { transportDelay: 1_000 })
    expect(beginAll()).toEqual([1, 3])
    for (const one of running) ended(table, one, 1)
    expect(beginAll()).toEqual([])
    table.freeTransport('smtp')
    expect(beginAll()).toEqual([2])
  })

  test('one outside of all turns counts against no limit', () => {
    const { active, table, begin } = tableWith(['a.example'], { deliveries: 1 })
    const alone = table.beginAlone(request(7, 'b.example'), 0, 0)
    expect(begin()).toBe(1)
    expect(active.holds(7)).toBe(true)
    ended(table, alone, 1)
    expect(active.holds(7)).toBe(false)
    expect(begin()).toBeUndefined()
  })
})

describe('the jobs of a destination', () => {
  test('are counted out when they are withdrawn', () => {
    const { active, table, beginAll } = tableWith(['a.example', 'a.example', 'b.example'])
    const withdrawn = table.withdraw(table.get('a.example'))
    expect(withdrawn.map(({ request: { message } }) => message.id)).toEqual([1, 2])
    expect([active.holds(1), active.holds(2), active.holds(3)]).toEqual([false, false, true])
    expect(beginAll()).toEqual([3])
  })
})

describe('idle destinations', () => {
  test('are forgotten once their window is, and no sooner', () => {
    const { table, beginAll, running } = tableWith(['a.example', 'b.example'])
    beginAll()
    const [first, second] = running
    if (first !== undefined) ended(table, first, 0)
    const { minimal_backoff_time: kept } = table.get('a.example').settings
    table.forgetIdle(kept - 1)
    expect(table.known('a.example')).toBeDefined()
    table.forgetIdle(kept)
    expect(table.known('a.example')).toBeUndefined()
    expect(table.known('b.example')).toBe(second?.destination)
  })

  test('stay while they are suspended, or mail for them waits in the store', () => {
    const { table } = tableWith([])
    table.get('a.example').suspend({ by: 'root', until: null, reason: null })
    table.get('b.example').mail.expect(5, [0])
    table.get('c.example')
    table.forgetIdle(0)
    expect([...table.all].map(({ name }) => name)).toEqual(['a.example', 'b.example'])
  })
})
