/** Quotas in random worlds: replies and times of delivery are those of a model that tries each twelfth of a span in turn. */
import { expect, test } from 'vitest'
import type { RelayConfig } from '../../src/config/relay-config.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { Dice } from '../simulation/generator.ts'
import { dialogue } from '../support/world-dialogue.ts'

const SENDERS = ['app@us.example', 'app@us.example', 'news@us.example']
/** Spans whose twelfths are multiples of each other. */
const SPANS = { '12m': 12 * MINUTE, '1h': HOUR, '1d': DAY }

interface Limit {
  readonly measure: 'messages' | 'recipients'
  readonly most: number
  readonly span: Duration
}

interface Quota {
  readonly keys: 'sender' | 'sender_domain'
  readonly limits: readonly string[]
  readonly action: 'refuse' | 'hold'
}

interface Charge {
  readonly key: string
  readonly at: Duration
  readonly messages: number
  readonly recipients: number
}

const limitOf = (text: string): Limit => {
  const [, most, measure = 'messages', span = ''] = /^(\d+)(?: (recipients))?\/(\w+)$/.exec(text) ?? []
  return { measure: measure === 'recipients' ? measure : 'messages', most: Number(most), span: SPANS[span as keyof typeof SPANS] }
}

/** Number of the twelfth of a span that a time is in. */
const twelfth = (at: Duration, span: Duration): number => Math.floor(at / (span / 12))

/** The charges of one quota. Mail waits up to `holdLimit`. */
class ModelQuota {
  readonly quota: Quota
  readonly holdLimit: Duration
  readonly #limits: readonly Limit[]
  readonly charges: Charge[] = []

  constructor(quota: Quota, holdLimit: Duration) {
    this.quota = quota
    this.holdLimit = quota.action === 'hold' ? holdLimit : 0
    this.#limits = quota.limits.map(limitOf)
  }

  /** Length of its shortest twelfth. Those of other spans are multiples of it. */
  get shortest(): Duration {
    return Math.min(...this.#limits.map(({ span }) => span / 12))
  }

  keyOf(sender: string): string {
    return this.quota.keys === 'sender' ? sender : sender.replace(/.*@/, '')
  }

  hasRoom(need: Charge): boolean {
    const own = this.charges.filter(({ key }) => key === need.key)
    return this.#limits.every(({ measure, most, span }) => {
      const now = twelfth(need.at, span)
      if (own.some(({ at, [measure]: amount }) => amount > 0 && twelfth(at, span) > now)) return false
      const used = own.filter(({ at }) => twelfth(at, span) >= now - 12).reduce((sum, one) => sum + one[measure], 0)
      return used + need[measure] <= most
    })
  }

  /** True for mail that has room within the time that it may wait. */
  accepts(need: Charge): boolean {
    if (this.#limits.some(({ measure, most }) => need[measure] > most)) return false
    const at = timeOf([this], need)
    return at - need.at <= this.holdLimit
  }

  /** The most that is charged to a key within a span. */
  assertBounds(): void {
    for (const { measure, most, span } of this.#limits)
      for (const { key, at } of this.charges) {
        const within = this.charges.filter((one) => one.key === key && one.at > at - span && one.at <= at)
        expect(within.reduce((sum, one) => sum + one[measure], 0)).toBeLessThanOrEqual(most)
      }
  }
}

/** The first time, now or at the begin of a twelfth, at which all quotas have room. */
function timeOf(quotas: readonly ModelQuota[], need: Charge): Duration {
  const step = Math.min(...quotas.map((one) => one.shortest))
  for (let at = need.at; ; at = (Math.floor(at / step) + 1) * step)
    if (quotas.every((one) => one.hasRoom({ ...need, at, key: one.keyOf(need.key) }))) return at
}

function quotasOf(dice: Dice): readonly ModelQuota[] {
  const holdLimit = dice.one([10 * MINUTE, HOUR, 12 * HOUR])
  const quota = (keys: Quota['keys']): ModelQuota => {
    const spans = dice.one([['12m'], ['1h'], ['1d'], ['12m', '1h'], ['1h', '1d']])
    const limits = spans.map((span) => `${dice.number(4, 8)}${dice.chance(0.4) ? ' recipients' : ''}/${span}`)
    return new ModelQuota({ keys, limits, action: dice.one(['refuse', 'hold']) }, holdLimit)
  }
  return dice.chance(0.5) ? [quota('sender')] : [quota('sender'), quota('sender_domain')]
}

const configOf = (quotas: readonly ModelQuota[]): RelayConfig => ({
  quota: Object.fromEntries(
    quotas.map(({ quota: { keys, limits, action }, holdLimit }) => [
      keys,
      { keys, limits: [...limits], action, ...(action === 'hold' ? { hold_limit: `${holdLimit / MINUTE}m` } : {}) },
    ]),
  ),
})

/** The replies of the model to MAIL and to each RCPT of a message, and the time of its delivery. */
function expected(quotas: readonly ModelQuota[], sender: string, wanted: number, at: Duration) {
  const accepts = (messages: number, recipients: number): boolean =>
    quotas.every((one) => one.accepts({ key: one.keyOf(sender), at, messages, recipients }))
  if (!accepts(1, 0)) return { codes: ['450'], recipients: 0, leavesAt: at }
  let recipients = 0
  const codes = Array.from({ length: wanted }, () => {
    const isAccepted = accepts(1, recipients + 1)
    if (isAccepted) recipients++
    return isAccepted ? '250' : '450'
  })
  const holding = quotas.filter(({ quota }) => quota.action === 'hold')
  const need = { key: sender, at, messages: 1, recipients }
  return { codes: ['250', ...codes], recipients, leavesAt: recipients === 0 ? at : timeOf(holding, need) }
}

const SEEDS = Array.from({ length: 20 }, (_, n) => n + 1)

/** Numbers of messages of all worlds. */
const seen = { mailRefused: 0, recipientRefused: 0, held: 0 }

test.each(SEEDS)('seed %i: replies, order and times of delivery are those of the model', async (seed) => {
  const dice = new Dice(seed)
  const quotas = quotasOf(dice)
  await using world = await createWorld({ config: configOf(quotas), store: dice.one(['memory', 'sqlite']) })
  const leaving = new Map<string, Duration>()
  for (let number = 0; number < 30; number++) {
    await world.advance(dice.one([0, 1, 37, 240, 660]))
    if (dice.chance(0.05)) await world.restart()
    const at = world.clock.now()
    const sender = dice.one(SENDERS)
    const to = Array.from({ length: dice.number(1, 4) }, (_, n) => `u${number}-${n}@far.example`)
    const { codes, recipients, leavesAt } = expected(quotas, sender, to.length, at)
    const lines = [`MAIL FROM:<${sender}>`, ...to.map((one) => `RCPT TO:<${one}>`)].slice(0, codes.length)
    const content = recipients === 0 ? [] : ['DATA', 'Subject: hi\r\n\r\nhi\r\n.']
    const replies = (await dialogue(world, ['HELO app', ...lines, ...content])).slice(1)
    expect(replies.slice(0, codes.length).map((one) => one.slice(0, 3))).toEqual(codes)
    if (codes.length === 1) seen.mailRefused++
    if (codes.length > 1 && codes.includes('450')) seen.recipientRefused++
    if (leavesAt > at) seen.held++
    if (recipients === 0) continue
    expect(replies.at(-1)).toMatch(/^250 /)
    to.filter((_, n) => codes[n + 1] === '250').forEach((one) => leaving.set(one, leavesAt))
    for (const one of quotas)
      one.charges.push({ key: one.keyOf(sender), at: one.quota.action === 'hold' ? leavesAt : at, messages: 1, recipients })
  }
  await world.advance(Math.max(0, ...[...leaving.values()].map((at) => at - world.clock.now())) / SECOND)
  const arrived = new Map(world.received.flatMap((mail) => mail.recipients.map((one) => [one, BEGINNING + mail.at] as const)))
  expect(arrived).toEqual(leaving)
  for (const one of quotas) one.assertBounds()
})

test('the worlds have mail that is refused, at MAIL and at RCPT, and mail that is held', () => {
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20)
})
