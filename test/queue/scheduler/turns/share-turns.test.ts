/** Fair shares: shares of a class have deliveries by their weights, whether slots, a destination or a provider is short. */
import { describe, expect, test } from 'vitest'
import { DestinationPolicies } from '../../../../src/config/destination-policies.ts'
import { configFrom } from '../../../../src/config/load.ts'
import { ClassBands } from '../../../../src/config/values/mail-classes.ts'
import type { DeliveryRequest } from '../../../../src/mail/message.ts'
import { ActiveQueue, type ActiveLimits } from '../../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable, type RunningDelivery } from '../../../../src/queue/scheduler/destination-table.ts'
import { openShareWeights, ShareWeights } from '../../../../src/queue/intake/share-weights.ts'

interface Setting {
  readonly window?: number
  readonly deliveries?: number
  readonly weights?: Readonly<Record<string, string>>
  readonly fair?: boolean
  /** Limit of a provider of all destinations; 0 for none. */
  readonly providerLimit?: number
  readonly classes?: Readonly<Record<string, { readonly weight: number }>>
}

interface Mail {
  readonly share: string
  readonly destination?: string
  readonly recipients?: number
  /** A message with several requests. */
  readonly message?: number
  readonly class?: string
}

class Relay {
  readonly started: Mail[] = []
  readonly running: RunningDelivery[] = []
  readonly #table: DestinationTable
  readonly #active: ActiveQueue
  readonly #mail = new Map<number, Mail>()
  #last = 1_000_000
  #now = 0
  #policies: DestinationPolicies

  constructor(setting: Setting = {}) {
    const { deliveries = 10 } = setting
    this.#policies = this.#policiesOf(setting)
    const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }
    const limits: ActiveLimits = { deliveries, messages: 1e6, recipients: 1e6, slots, transportDelay: 0 }
    this.#active = new ActiveQueue(() => limits)
    this.#table = new DestinationTable(
      this.#active,
      () => limits,
      () => this.#policies,
    )
  }

  #policiesOf({ window = 20, weights = {}, fair = true, providerLimit = 0, classes = {} }: Setting): DestinationPolicies {
    const { config } = configFrom(
      {
        fair_share: fair ? 'yes' : 'no',
        ...(fair ? { share_weight_maps: weights } : {}),
        class: classes,
        ...(Object.keys(classes).length === 0 ? {} : { default_class: Object.keys(classes)[0] }),
        initial_destination_concurrency: window,
        default_destination_concurrency_limit: window,
        ...(providerLimit === 0 ? {} : { provider: { all: { mx: ['.example'], provider_concurrency_limit: providerLimit } } }),
      },
      'relay.example',
    )
    const bands = new ClassBands()
    bands.replace(Object.keys(classes).map((name, n) => ({ name, band: n + 1 })))
    const providers = { of: () => (providerLimit === 0 ? null : 'all') }
    return new DestinationPolicies(config, providers, bands, ShareWeights.of(config, openShareWeights(config).table))
  }

  reload(setting: Setting): void {
    this.#policies = this.#policiesOf(setting)
    this.#table.reconfigure()
  }

  add(mail: Mail): void {
    const { share, destination = 'far.example', recipients = 1, message: id = ++this.#last } = mail
    const address = { address: 'ann@far.example', dueAt: 0, expiresAt: 1, steps: 0, attempts: 0, last: null, warnings: 0, flushed: false }
    const origin = { id, createdAt: 0, arrivedAt: 0, sender: 'app@us.example', size: 1, contentId: id, smtputf8: false }
    const request: DeliveryRequest = {
      message: { ...origin, share, class: mail.class },
      destination,
      recipients: Array.from({ length: recipients }, (_, n) => ({ id: id * 1_000 + n, ...address })),
      fresh: true,
      forcedExpire: false,
      lease: { owner: 1, until: Infinity },
    }
    this.#mail.set(id, mail)
    this.#active.reserve(id, recipients)
    this.#table.enter(request, this.#now)
  }

  addMany(mail: Mail, count: number): void {
    for (let n = 0; n < count; n++) this.add(mail)
  }

  /** Begins what may begin. With `refills`, each delivery is followed by new mail of its kind. */
  begin(refills: boolean): void {
    for (let next = this.#table.next(this.#now, 0); next !== undefined; next = this.#table.next(this.#now, 0)) {
      const mail = this.#mail.get(next.job.request.message.id)
      if (mail === undefined) throw new Error('mail of nobody')
      this.started.push(mail)
      this.running.push(next)
      if (refills) this.add(mail)
    }
  }

  /** Ends the oldest deliveries, one after the other, 10 ms apart. */
  run(count: number, refills = true): void {
    this.begin(refills)
    for (let n = 0; n < count; n++) {
      const ended = this.running.shift()
      this.#now += 10
      if (ended !== undefined) {
        this.#table.freeSlot(ended, 0)
        this.#table.finished(ended)
      }
      this.begin(refills)
    }
  }

  withdraw(destination: string): number {
    return this.#table.withdraw(this.#table.get(destination)).length
  }

  flows(destination: string): number {
    return this.#table.get(destination).mail.flows.length
  }
}

/** Numbers of starts of shares, in recipients, from a start on. */
const startsOf = (started: readonly Mail[], ...shares: readonly string[]): readonly number[] =>
  shares.map((share) => started.filter((one) => one.share === share).reduce((sum, { recipients = 1 }) => sum + recipients, 0))

const SCARCE: readonly (readonly [string, Setting, (n: number) => string])[] = [
  ['the slots of the relay are', {}, (n) => `d${n % 40}.example`],
  ['a destination is', { deliveries: 100, window: 5 }, () => 'far.example'],
  ['three destinations are', { deliveries: 100, window: 2 }, (n) => `d${n % 3}.example`],
  ['a provider is', { deliveries: 100, providerLimit: 5 }, (n) => `d${n % 40}.example`],
]

describe.each(SCARCE)('when %s short', (_, setting, destinationOf) => {
  test('shares of weights 3, 1 and 1 have 60, 20 and 20 % of the recipients of any 300 starts', () => {
    const relay = new Relay({ ...setting, weights: { 'shop.example': '3' } })
    const shares = ['shop.example', 'news.example', 'app.example']
    for (let n = 0; n < 120; n++) for (const share of shares) relay.add({ share, destination: destinationOf(n) })
    relay.run(3_000)
    for (let from = 300; from + 300 <= relay.started.length; from += 300) {
      const [shop = 0, news = 0, app = 0] = startsOf(relay.started.slice(from, from + 300), ...shares)
      for (const [part, fair] of [
        [shop, 180],
        [news, 60],
        [app, 60],
      ] as const) {
        expect(part).toBeGreaterThan(fair * 0.9)
        expect(part).toBeLessThan(fair * 1.1)
      }
    }
  })

  test('a share that had no mail has earned nothing, and waits behind none', () => {
    const relay = new Relay(setting)
    for (let n = 0; n < 400; n++) relay.add({ share: 'a', destination: destinationOf(n) })
    relay.run(1_000)
    for (let n = 0; n < 40; n++) relay.add({ share: 'b', destination: destinationOf(n) })
    const from = relay.started.length
    relay.run(400)
    const [a = 0, b = 0] = startsOf(relay.started.slice(from, from + 200), 'a', 'b')
    expect(b).toBeGreaterThan(80)
    expect(a).toBeGreaterThan(80)
  })
})

test('a share with mail for 1,000 destinations has as much as one with mail for 20 of them', () => {
  const relay = new Relay({ deliveries: 50 })
  for (let n = 0; n < 1_000; n++) relay.add({ share: 'a', destination: `d${n}.example` })
  for (let n = 0; n < 20; n++) relay.addMany({ share: 'b', destination: `d${n}.example` }, 5)
  relay.run(6_000)
  const [a = 0, b = 0] = startsOf(relay.started, 'a', 'b')
  expect(Math.abs(a - b) / (a + b)).toBeLessThan(0.05)
})

test('shares with messages of many recipients have equal numbers of recipients', () => {
  const relay = new Relay()
  for (let n = 0; n < 60; n++) {
    relay.add({ share: 'a', destination: `d${n % 30}.example`, recipients: 50 })
    relay.add({ share: 'b', destination: `d${n % 30}.example` })
  }
  relay.run(5_000)
  const [a = 0, b = 0] = startsOf(relay.started, 'a', 'b')
  // A delivery has 50 recipients at most.
  expect(Math.abs(a - b)).toBeLessThanOrEqual(60)
})

/** Numbers of recipients that have begun, by share and destination, and the largest differences of shares: at a destination, and in all. */
function differences(started: readonly Mail[], shares: number, destinations: number): readonly [atOne: number, inAll: number] {
  const counts = Array.from({ length: destinations + 1 }, () => Array.from({ length: shares }, () => 0))
  for (const { share, destination = '' } of started)
    for (const at of [Number(/\d+/.exec(destination)?.[0]), destinations]) counts[at]![Number(share.slice(1))]!++
  const apart = counts.map((all) => Math.max(...all) - Math.min(...all))
  return [Math.max(...apart.slice(0, -1)), apart.at(-1) ?? 0]
}

/** Ten messages of each of 500 shares, at three destinations in turn. */
function equalShares(setting: Setting): Relay {
  const relay = new Relay(setting)
  for (let share = 0; share < 500; share++) for (let n = 0; n < 10; n++) relay.add({ share: `s${share}`, destination: `d${n % 3}.example` })
  return relay
}

test('where three destinations are short, no share is ahead of another by more than one at each, and so by three in all', () => {
  const relay = equalShares({ deliveries: 100, window: 10 })
  for (let step = 0; step < 9; step++) {
    relay.run(500, false)
    const [atOne, inAll] = differences(relay.started, 500, 3)
    expect(atOne).toBeLessThanOrEqual(1)
    expect(inAll).toBeLessThanOrEqual(3)
  }
  relay.run(600, false)
  expect(relay.started.length).toBe(5_000)
  // No flow stays when its mail is gone.
  expect([0, 1, 2].map((n) => relay.flows(`d${n}.example`))).toEqual([0, 0, 0])
})

test('where the slots are short, no share is ahead of another by more than one in all', () => {
  const relay = equalShares({ deliveries: 10, window: 20 })
  for (let step = 0; step < 9; step++) {
    relay.run(500, false)
    expect(differences(relay.started, 500, 3)[1]).toBeLessThanOrEqual(1)
  }
})

test('shares of a lower class keep their parts while a higher class is busy', () => {
  const classes = { fast: { weight: 10 }, bulk: { weight: 1 } }
  const relay = new Relay({ window: 5, deliveries: 100, classes, weights: { b: '3' } })
  relay.addMany({ share: 'x', class: 'fast' }, 60)
  for (const share of ['a', 'b']) relay.addMany({ share, class: 'bulk' }, 60)
  relay.run(8_800)
  const [a = 0, b = 0, x = 0] = startsOf(relay.started, 'a', 'b', 'x')
  expect(x / (a + b)).toBeGreaterThan(9)
  expect(x / (a + b)).toBeLessThan(11)
  expect(b / a).toBeGreaterThan(2.7)
  expect(b / a).toBeLessThan(3.3)
})

test("a share's own small mail passes its large message, and another share's is as fast as before", () => {
  const relay = new Relay({ deliveries: 1, window: 1 })
  for (let n = 0; n < 300; n++) relay.add({ share: 'news', destination: `d${n}.example`, message: 7 })
  for (let n = 0; n < 300; n++) relay.add({ share: 'shop', destination: `e${n}.example`, message: 8 })
  relay.run(60, false)
  relay.add({ share: 'news', destination: 'single.example' })
  const from = relay.started.length
  relay.run(120, false)
  const late = relay.started.slice(from)
  const single = late.findIndex(({ destination }) => destination === 'single.example')
  expect(single).toBeGreaterThanOrEqual(0)
  expect(single).toBeLessThan(20)
  const [news = 0, shop = 0] = startsOf(late, 'news', 'shop')
  expect(Math.abs(news - shop)).toBeLessThanOrEqual(2)
})

test('small mail of one share does not spend what a large message of another has earned', () => {
  const relay = new Relay({ deliveries: 1, window: 1 })
  for (let n = 0; n < 300; n++) relay.add({ share: 'news', destination: `d${n}.example`, message: 7 })
  relay.run(50, false)
  for (let n = 0; n < 40; n++) relay.add({ share: 'shop', destination: `e${n}.example` })
  const from = relay.started.length
  relay.run(80, false)
  const [news = 0, shop = 0] = startsOf(relay.started.slice(from), 'news', 'shop')
  expect(Math.abs(news - shop)).toBeLessThanOrEqual(2)
  relay.add({ share: 'news', destination: 'single.example' })
  relay.run(20, false)
  expect(relay.started.slice(-20).map(({ destination }) => destination)).toContain('single.example')
})

/**
 * The order in which the mail of one share begins: a newsletter to 300 destinations, and single messages that come between. Another share may have
 * a message of 60 recipients and 60 single messages meanwhile.
 */
function orderOfNews(beside: boolean): readonly (string | undefined)[] {
  const relay = new Relay({ deliveries: 1, window: 1 })
  const startedOfNews = (): number => startsOf(relay.started, 'news')[0] ?? 0
  const runUntil = (count: number): void => {
    while (startedOfNews() < count) relay.run(1, false)
  }
  for (let n = 0; n < 300; n++) relay.add({ share: 'news', destination: `d${n}.example`, message: 7 })
  runUntil(40)
  if (beside) for (let n = 0; n < 60; n++) relay.add({ share: 'shop', destination: `e${n}.example`, message: 8 })
  if (beside) for (let n = 0; n < 60; n++) relay.add({ share: 'shop', destination: `f${n}.example` })
  for (let n = 0; n < 12; n++) {
    relay.add({ share: 'news', destination: `single${n}.example` })
    runUntil(40 + 4 * (n + 1))
  }
  return relay.started.flatMap(({ share, destination }) => (share === 'news' ? [destination] : []))
}

test("the order of a share's mail is the same whatever other shares have: none spends its slots, and it spends none of theirs", () => {
  const alone = orderOfNews(false)
  expect(orderOfNews(true)).toEqual(alone)
  // Four slots in five are for the newsletter.
  expect(alone.filter((one) => one?.startsWith('single') === true).length).toBeGreaterThanOrEqual(8)
})

test('mail in memory keeps its place when fair shares begin and end by a reload', () => {
  const relay = new Relay({ fair: false, window: 4 })
  relay.addMany({ share: 'a' }, 100)
  relay.addMany({ share: 'b' }, 20)
  relay.run(10, false)
  expect(startsOf(relay.started, 'b')).toEqual([0])
  relay.reload({ window: 4 })
  relay.run(30, false)
  const [b = 0] = startsOf(relay.started, 'b')
  expect(b).toBeGreaterThan(12)
  relay.reload({ fair: false, window: 4 })
  relay.run(200, false)
  expect(relay.started.length).toBe(120)
})

test('a relay that began with fair shares ends them by a reload', () => {
  const relay = new Relay({ window: 4 })
  for (const share of ['a', 'b']) relay.addMany({ share }, 20)
  relay.run(10, false)
  relay.reload({ fair: false, window: 4 })
  expect(relay.flows('far.example')).toBe(1)
  relay.run(60, false)
  expect(relay.started.length).toBe(40)
})

test('mail that is withdrawn leaves no place behind, and its share pays nothing for it', () => {
  const relay = new Relay({ deliveries: 4, window: 2 })
  relay.addMany({ share: 'b', destination: 'slow.example' }, 10)
  for (let n = 0; n < 200; n++) relay.add({ share: 'a', destination: `d${n}.example` })
  relay.run(4, false)
  let withdrawn = 0
  for (let n = 0; n < 200; n++) withdrawn += relay.withdraw(`d${n}.example`)
  expect(withdrawn).toBeGreaterThan(180)
  expect(relay.withdraw('slow.example') + withdrawn + relay.started.length).toBe(210)
  expect(relay.flows('slow.example') + relay.flows('d199.example')).toBe(0)
  const from = relay.started.length
  for (const share of ['a', 'b']) for (let n = 0; n < 60; n++) relay.add({ share, destination: `e${n % 30}.example` })
  relay.run(80, false)
  const [a = 0, b = 0] = startsOf(relay.started.slice(from), 'a', 'b')
  expect(Math.abs(a - b)).toBeLessThanOrEqual(8)
})
