/** Classes share slots, destinations and providers by their weights, reserves keep places free, and none starves. */
import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../../src/config/destination-policies.ts'
import { configFrom } from '../../../../src/config/load.ts'
import { ClassBands } from '../../../../src/config/values/mail-classes.ts'
import type { DeliveryRequest } from '../../../../src/mail/message.ts'
import { ActiveQueue, type ActiveLimits } from '../../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable, type RunningDelivery } from '../../../../src/queue/scheduler/destination-table.ts'

const NAMES = ['bulk', 'fast', 'normal']
const BANDS = NAMES.map((name, n) => ({ name, band: n + 1 }))

interface Setting {
  readonly window?: number
  readonly deliveries?: number
  readonly reserve?: string
  readonly destinationOf?: (n: number) => string
  /** Limit of a provider of all destinations; 0 for none. */
  readonly providerLimit?: number
}

/** A table in which each class of `busy` always has mail. */
class Saturated {
  readonly started: string[] = []
  readonly running: RunningDelivery[] = []
  readonly #table: DestinationTable
  readonly #active: ActiveQueue
  readonly #destinationOf: (n: number) => string
  #last = 0

  constructor({ window = 20, deliveries = 10, reserve = '0%', destinationOf = () => 'far.example', providerLimit = 0 }: Setting) {
    const provider = { all: { mx: ['.example'], provider_concurrency_limit: providerLimit } }
    const { config } = configFrom(
      {
        class: { fast: { weight: 100, reserve }, normal: { weight: 10 }, bulk: { weight: 1 } },
        initial_destination_concurrency: window,
        default_destination_concurrency_limit: window,
        ...(providerLimit === 0 ? {} : { provider }),
      },
      'relay.example',
    )
    const bands = new ClassBands()
    bands.replace(BANDS)
    const policies = new DestinationPolicies(config, { of: () => (providerLimit === 0 ? null : 'all') }, bands)
    const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }
    const limits: ActiveLimits = { deliveries, messages: 10_000, recipients: 10_000, slots, transportDelay: 0 }
    this.#active = new ActiveQueue(() => limits)
    this.#table = new DestinationTable(
      this.#active,
      () => limits,
      () => policies,
    )
    this.#destinationOf = destinationOf
  }

  fill(name: string, count: number): void {
    for (let n = 0; n < count; n++) this.#enter(name)
  }

  #enter(name: string): void {
    const id = ++this.#last
    const address = { address: 'ann@far.example', dueAt: 0, expiresAt: 1, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
    const request: DeliveryRequest = {
      message: { id, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 1, contentId: id, smtputf8: false, class: name },
      destination: this.#destinationOf(id),
      recipients: [{ id, ...address }],
      fresh: true,
      forcedExpire: false,
      lease: { owner: 1, until: Infinity },
    }
    this.#active.reserve(id, 1)
    this.#table.enter(request, 0)
  }

  /** Begins what may begin; each delivery is followed by new mail of its class. */
  begin(): void {
    for (let next = this.#table.next(0, 0); next !== undefined; next = this.#table.next(0, 0)) {
      const { class: name = '' } = next.job.request.message
      this.started.push(name)
      this.running.push(next)
      this.#enter(name)
    }
  }

  /** Ends the oldest deliveries, one after the other. */
  run(count: number): void {
    this.begin()
    for (let n = 0; n < count; n++) {
      const ended = this.running.shift()
      if (ended !== undefined) this.#end(ended)
      this.begin()
    }
  }

  #end(running: RunningDelivery): void {
    this.#table.freeSlot(running, 0)
    this.#table.finished(running)
  }

  endOf(name: string): void {
    for (const one of this.running.splice(0)) {
      if (one.job.request.message.class === name) this.#end(one)
      else this.running.push(one)
    }
  }

  count(name: string): number {
    return this.started.filter((one) => one === name).length
  }
}

/** The starts of a saturated table by class. */
function startsIn(setting: Setting, starts = 1_110): readonly number[] {
  const table = new Saturated(setting)
  for (const name of NAMES) table.fill(name, 30)
  table.run(starts)
  return ['fast', 'normal', 'bulk'].map((name) => table.count(name))
}

const spread = (n: number): string => `d${n % 50}.example`

describe.each([
  ['by the slots of the relay', { destinationOf: spread }],
  ['at one hot destination', { deliveries: 100, window: 5 }],
  ['at hot destinations', { deliveries: 100, window: 2, destinationOf: (n: number) => `d${n % 3}.example` }],
  ['at a provider', { deliveries: 100, providerLimit: 5, destinationOf: spread }],
  ['by the slots, with a reserve', { destinationOf: spread, reserve: '20%' }],
] as readonly (readonly [string, Setting])[])('saturated classes %s', (_, setting) => {
  test('get 100:10:1 of the starts', () => {
    const [fast = 0, normal = 0, bulk = 0] = startsIn(setting)
    expect(fast / (fast + normal + bulk)).toBeGreaterThan(0.87)
    expect(fast / (fast + normal + bulk)).toBeLessThan(0.93)
    expect(normal / bulk).toBeGreaterThan(8)
    expect(normal / bulk).toBeLessThan(12)
  })
})

test.each([
  ['slots of the relay', { deliveries: 20, reserve: '10%', destinationOf: spread }, 18],
  ['a window of four', { deliveries: 100, window: 4, reserve: '5%' }, 3],
  ['a provider', { deliveries: 100, reserve: '20%', providerLimit: 10, destinationOf: spread }, 8],
] as readonly (readonly [string, Setting, number])[])('lower classes leave the reserve of %s free', (_, setting, places) => {
  const table = new Saturated(setting)
  table.fill('bulk', 150)
  table.begin()
  expect(table.count('bulk')).toBe(places)
  table.fill('fast', 1)
  table.begin()
  expect(table.count('fast')).toBeGreaterThan(0)
})

test('no place of a window below four is kept free', () => {
  const table = new Saturated({ deliveries: 100, window: 3, reserve: '5%' })
  table.fill('bulk', 10)
  table.begin()
  expect(table.count('bulk')).toBe(3)
})

test('a reserve counts the deliveries of lower classes, so that a busy higher class does not keep them out', () => {
  const table = new Saturated({ deliveries: 10, reserve: '50%', destinationOf: spread })
  table.fill('fast', 50)
  table.fill('bulk', 50)
  table.run(1_000)
  expect(table.count('bulk')).toBeGreaterThan(7)
})

test('a class that had no mail has earned nothing', () => {
  const table = new Saturated({ destinationOf: spread })
  table.fill('fast', 50)
  table.run(1_000)
  table.fill('normal', 50)
  const before = table.started.length
  table.run(110)
  const late = table.started.slice(before)
  expect(late.filter((name) => name === 'fast').length).toBeGreaterThan(90)
})
