/**
 * Generates random scenarios by seed: mail, faults and operations. Equal seeds give equal scenarios.
 */
import { HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { mulberry32 } from '../../src/system/random.ts'
import type { OperationName } from '../../src/queue/operation-request.ts'
import type { RuleText } from '../../src/testkit/index.ts'
import {
  OWN_DOMAIN,
  type CommitCrash,
  type Mail,
  type Notify,
  type Scenario,
  type SimulatedReceiver,
  type Step,
  type Value,
} from './scenario.ts'

const DOMAINS = ['ash.example', 'birch.example', 'cedar.example', 'elm.example']
const PEOPLE = ['ann', 'bob', 'eve', 'joe']
const NOTIFY: readonly Notify[] = ['NEVER', 'SUCCESS', 'FAILURE', 'DELAY', 'SUCCESS,FAILURE', 'FAILURE,DELAY', 'SUCCESS,FAILURE,DELAY']
const ORDERS: readonly OperationName[] = ['flush', 'hold', 'release', 'requeue', 'expire', 'delete', 'restore']

export class Dice {
  readonly #next: () => number

  constructor(seed: number) {
    this.#next = mulberry32(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995)
  }

  chance(probability: number): boolean {
    return this.#next() < probability
  }

  /** A whole number from `from` to `to`, both included. */
  number(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1))
  }

  one<T>(choices: readonly T[]): T {
    const choice = choices[this.number(0, choices.length - 1)]
    if (choice === undefined) throw new Error('nothing to choose from')
    return choice
  }

  many<T>(count: number, make: (n: number) => T): T[] {
    return Array.from({ length: count }, (_, n) => make(n))
  }
}

/** Density of a scenario: a few operations, crashes and full disks, or more than a hundred. */
export type Density = 'sparse' | 'dense'

const STEPS: Readonly<Record<Density, readonly [least: number, most: number]>> = { sparse: [0, 10], dense: [100, 120] }

/** Facts that all parts of a scenario share. */
interface Frame {
  readonly dice: Dice
  readonly density: Density
  readonly destinations: readonly string[]
  readonly minimum: Duration
  readonly lifetime: Duration
  /** Time of the last step. */
  readonly length: Duration
}

export function generatedBy(seed: number, density: Density = 'sparse'): Scenario {
  const dice = new Dice(seed)
  const minimum = dice.one([30, 60, 60, 300]) * SECOND
  const lifetime = dice.one([6, 10, 20, 40]) * minimum
  const destinations = DOMAINS.slice(0, dice.number(1, DOMAINS.length))
  const frame: Frame = { dice, density, minimum, lifetime, destinations, length: lifetime * 1.2 }
  const crowd = crowdOf(seed, frame)
  return {
    seed,
    config: { ...configOf(frame), ...crowd.config },
    tables: tablesOf(frame),
    ...providerOf(seed, destinations),
    storage: dice.chance(0.06) ? 'file' : 'memory',
    commitTakes: dice.one([0, 0, 1, 3, 40]),
    destinations,
    faults: [...dice.many(dice.number(1, 5), () => faultOf(frame)), ...(dice.chance(0.15) ? mixedReplies(frame) : []), ...crowd.faults],
    steps: [...stepsOf(frame), ...crowd.steps].toSorted((a, b) => a.at - b.at),
    crashes: dice.chance(0.4) ? dice.many(dice.number(1, 3), () => crashOf(dice)) : [],
    ends: dice.chance(0.5) ? 'well' : 'badly',
    receiver: receiverOf(seed, frame),
  }
}

/** Two of seven worlds have a receiver, by dice of its own: the other ones keep their histories. */
function receiverOf(seed: number, { length }: Frame): SimulatedReceiver | undefined {
  if (seed % 7 !== 1 && seed % 7 !== 4) return undefined
  const dice = new Dice(-seed)
  const from = dice.number(0, length)
  return {
    refuses: dice.number(7, 20),
    failsAt: dice.number(2, 6),
    down: { from, until: from + dice.one([0, 10 * SECOND, MINUTE, HOUR]) },
    batch: dice.one([1, 1, 10]),
  }
}

/** Has draws of its own, so that scenarios without a provider stay as they are. */
function providerOf(seed: number, destinations: readonly string[]): Pick<Scenario, 'provider'> {
  const dice = new Dice(seed + 1_000_000)
  if (destinations.length < 2 || !dice.chance(0.3)) return {}
  return { provider: { of: destinations.slice(0, dice.number(2, destinations.length)), limit: dice.number(1, 3) } }
}

type Crowd = Pick<Scenario, 'config' | 'faults' | 'steps'>

/** One of six worlds has a crowd of mail that is claimed and waits for few slots, with orders about it, by dice of its own. */
function crowdOf(seed: number, frame: Frame): Crowd {
  if (seed % 6 !== 5) return { config: {}, faults: [], steps: [] }
  const dice = new Dice(seed + 2_000_000)
  const own = { ...frame, dice }
  const begin = dice.number(0, frame.length / 4)
  const lasts = dice.number(5, 40) * SECOND
  const time = { from: `${begin}ms`, until: `${begin + 10 * lasts}ms` }
  const order = (): GeneratedStep =>
    dice.chance(0.15)
      ? { do: dice.one(['suspend', 'resume']), destination: dice.one(frame.destinations) }
      : { do: dice.one([...ORDERS, 'hold', 'delete', 'expire']), pick: dice.chance(0.15) ? 'all' : dice.number(0, 20) }
  return {
    config: { default_process_limit: dice.number(1, 2), qmgr_message_active_limit: dice.number(8, 40) },
    faults: frame.destinations.map((domain) => ({ domain, ...time, at: 'rcpt', delay: `${dice.number(2, 10)}s` })),
    steps: [
      ...dice.many(dice.number(10, 24), (n): Step => ({
        at: begin + dice.number(0, 2 * SECOND),
        do: 'mail',
        mail: mailOf(own, 1_000 + n),
      })),
      ...dice.many(dice.number(12, 24), (): Step => ({ at: begin + dice.number(0, lasts), ...order() })),
      ...(dice.chance(0.2) ? [{ at: begin + lasts / 2, do: 'fill the disk', time: SECOND } as const] : []),
    ],
  }
}

function configOf({ dice, minimum, lifetime }: Frame): Record<string, Value> {
  const config: Record<string, Value> = {
    minimal_backoff_time: `${minimum}ms`,
    maximal_backoff_time: `${minimum * dice.one([1, 2, 4, 8])}ms`,
    maximal_queue_lifetime: `${lifetime}ms`,
    queue_run_delay: '0',
  }
  const maybe = (probability: number, name: string, value: () => Value) => {
    if (dice.chance(probability)) config[name] = value()
  }
  maybe(0.3, 'bounce_queue_lifetime', () => `${Math.floor(lifetime / dice.number(1, 4))}ms`)
  maybe(0.6, 'delay_warning_time', () => dice.many(dice.number(1, 2), (n) => `${Math.floor((lifetime * (n + 1)) / dice.number(3, 6))}ms`))
  maybe(0.2, 'confirm_delay_cleared', () => true)
  maybe(0.2, 'notify_classes', () => dice.many(2, () => dice.one(['bounce', '2bounce', 'delay'])))
  maybe(0.3, 'retry_jitter', () => dice.one([0.1, 0.5, 1]))
  maybe(0.2, 'retry_backoff', () => dice.one(['age', 'fixed', 'aws-full-jitter', 'ethernet']))
  maybe(0.2, 'soft_bounce', () => true)
  maybe(0.3, 'initial_destination_concurrency', () => dice.number(1, 5))
  maybe(0.3, 'default_destination_concurrency_limit', () => dice.number(0, 6))
  maybe(0.3, 'default_destination_concurrency_positive_feedback', () => dice.one(['1', '1/2', '1/concurrency']))
  maybe(0.3, 'default_destination_concurrency_negative_feedback', () => dice.one(['1', '1/2', '1/concurrency']))
  maybe(0.1, 'default_destination_concurrency_control', () => dice.one(['reno', 'tahoe']))
  maybe(0.2, 'default_destination_concurrency_failed_cohort_limit', () => dice.number(0, 3))
  maybe(0.2, 'default_destination_recipient_limit', () => dice.number(1, 3))
  maybe(0.2, 'default_process_limit', () => dice.number(1, 4))
  maybe(0.2, 'qmgr_message_active_limit', () => dice.number(1, 8))
  maybe(0.2, 'qmgr_message_recipient_limit', () => dice.number(5, 10))
  maybe(0.1, 'default_destination_rate_delay', () => dice.one(['1s', '10s']))
  maybe(0.1, 'default_destination_message_rate_limit', () => dice.one([6, 30, 60]))
  return config
}

function tablesOf({ dice, destinations, lifetime, minimum }: Frame): Record<string, Record<string, Value>> {
  if (!dice.chance(0.4)) return {}
  const table: Record<string, Value> = {}
  if (dice.chance(0.6)) table['maximal_queue_lifetime'] = `${Math.floor(lifetime / dice.number(2, 5))}ms`
  if (dice.chance(0.3)) table['minimal_backoff_time'] = `${Math.floor(minimum / 2)}ms`
  if (dice.chance(0.3)) table['destination_concurrency_limit'] = dice.number(1, 3)
  return { [dice.one(destinations)]: table }
}

/** A fault, permanent or for a limited time. */
function faultOf(frame: Frame): RuleText {
  const { dice, destinations, length } = frame
  const from = dice.number(0, length / 2)
  const time = dice.chance(0.4) ? {} : { from: `${from}ms`, until: `${from + dice.number(length / 20, length)}ms` }
  return { domain: dice.one(destinations), ...time, ...mishap(frame) }
}

/** Refuses one recipient and defers another at one destination, so that one transaction has all kinds of outcomes. */
function mixedReplies({ dice, destinations }: Frame): RuleText[] {
  const domain = dice.one(destinations)
  const [unknown, busy] = dice.one([
    ['ann', 'bob'],
    ['eve', 'ann'],
  ])
  return [
    { domain, at: 'rcpt', recipient: `${unknown}@*`, reply: '550 5.1.1 no such user' },
    { domain, at: 'rcpt', recipient: `${busy}@*`, reply: '450 4.2.1 busy' },
  ]
}

function mishap({ dice, minimum }: Frame): RuleText {
  const first = dice.number(1, 4)
  const person = `${dice.one(PEOPLE)}@*`
  return dice.one<RuleText>([
    { connect: 'refused' },
    { connect: 'refused' },
    { connect: 'timeout' },
    { connect: 'refused', first },
    { connections_over: dice.number(0, 3) },
    { connections_over: dice.number(1, 3), delay: '2s' },
    { at: 'greeting', reply: '421 4.3.2 going down', first },
    { at: 'greeting', reply: '554 5.7.1 not you', first },
    { at: 'mail', reply: '421 4.7.0 slow down', probability: 0.3 },
    { at: 'mail', reply: '451 4.4.5 insufficient system resources', first },
    { at: 'mail', stall: true, first: 1 },
    { at: 'mail', rate: `${dice.number(1, 5)}/1m`, penalty: '30s' },
    { greylist: `${minimum}ms`, greylist_window: '4h' },
    { greylist: '10m', greylist_window: '15m' },
    { at: 'rcpt', recipient: person, reply: '550 5.1.1 no such user' },
    { at: 'rcpt', recipient: person, reply: '450 4.2.1 busy' },
    { at: 'rcpt', reply: '451 4.3.0 try again later', first, per: 'recipient' },
    { at: 'rcpt', reply: '452 4.5.3 too many recipients', recipients_over: 1 },
    { at: 'rcpt', reply: '550 5.7.1 refused', probability: 0.2 },
    { at: 'rcpt', delay: `${dice.number(1, 40)}s` },
    { at: 'rcpt', drop: 'rst', first },
    { at: 'data', reply: '451 4.3.0 queue full', first },
    { at: 'data', reply: '554 5.6.0 no', probability: 0.2 },
    { at: 'body', drop: 'rst', first },
    { at: 'end-of-data', reply: '451 4.3.0 try again later', first },
    { at: 'end-of-data', reply: '554 5.7.1 spam', probability: 0.3 },
    { at: 'end-of-data', drop: 'fin', first: 2 },
    { at: 'end-of-data', drop: 'rst', keep: true, first: 2 },
    { at: 'end-of-data', delay: `${dice.number(1, 20)}s` },
    { dns: 'servfail', first },
    { dns: 'nxdomain', probability: 0.3 },
    { at: 'rcpt', reply: '450 4.2.1 busy', flapping: '5m/5m' },
    { at: 'quit', stall: true },
  ])
}

function stepsOf(frame: Frame): Step[] {
  const { dice, density, length } = frame
  const mails = dice.one([2, 4, 8, 16])
  const burst = dice.chance(0.3)
  const steps = [
    ...dice.many(mails, (n): Step => ({ at: burst ? n : dice.number(0, length * 0.7), do: 'mail', mail: mailOf(frame, n) })),
    ...dice.many(dice.number(...STEPS[density]), (): Step => ({ at: dice.number(0, length), ...stepOf(frame) })),
    ...(dice.chance(0.15) ? regret(frame) : []),
    ...dice.many(6, (): Step => ({ at: dice.number(0, length), do: 'look' })),
  ]
  return steps.toSorted((a, b) => a.at - b.at)
}

/** A deletion, and a restore at a later time. */
function regret({ dice, length }: Frame): Step[] {
  const at = dice.number(0, length / 2)
  return [
    { at, do: 'delete', pick: 'all' },
    { at: at + dice.number(1, length / 4), do: 'restore', pick: 'all' },
  ]
}

type GeneratedStep = Step extends infer S ? (S extends Step ? Omit<S, 'at'> : never) : never

function stepOf({ dice, destinations, minimum, length }: Frame): GeneratedStep {
  const kind = dice.number(1, 20)
  if (kind <= 3) return { do: 'crash', downFor: dice.one([0, 0, 10 * SECOND, 2 * minimum]) }
  if (kind <= 4) return { do: 'restart' }
  if (kind <= 6) return { do: dice.one(['suspend', 'resume']), destination: dice.one(destinations) }
  if (kind <= 7) return { do: 'set the clock', by: dice.one([-HOUR, -MINUTE, 2 * SECOND, MINUTE, HOUR, 2 * length]) }
  if (kind <= 8) return { do: 'fill the disk', time: dice.one([SECOND, 20 * SECOND, minimum]) }
  return { do: dice.one(ORDERS), pick: dice.chance(0.4) ? 'all' : dice.number(0, 20) }
}

function mailOf({ dice, destinations }: Frame, number: number): Mail {
  const recipients = dice.many(dice.one([1, 1, 1, 2, 3, 6]), () => `${dice.one(PEOPLE)}@${dice.one(destinations)}`)
  return {
    number,
    sender: dice.chance(0.1) ? '' : dice.chance(0.15) ? `sender@${dice.one(destinations)}` : `app@${OWN_DOMAIN}`,
    to: [...new Set(recipients)].map((address) => (dice.chance(0.7) ? { address } : { address, notify: dice.one(NOTIFY) })),
    size: dice.one([0, 100, 100, 100, 3_000, 100_000]),
    ret: dice.chance(0.2) ? dice.one(['FULL', 'HDRS'] as const) : undefined,
  }
}

const crashOf = (dice: Dice): CommitCrash => ({
  commit: dice.number(1, dice.one([10, 40, 160])),
  side: dice.one(['before', 'after']),
  downFor: dice.one([0, 0, SECOND, MINUTE]),
})
