/**
 * Scenarios in which deliveries are shared fairly among senders and classes, and one thing is short: the slots of the relay, the limit of a
 * provider, or the window of a destination. Each sender has a backlog for most of the time.
 */
import { SECOND } from '../../../src/system/clock.ts'
import type { RuleText } from '../../../src/testkit/index.ts'
import { Dice } from '../generator.ts'
import type { CommitCrash, Mail, Scenario, SimulatedShares, Step, Value } from '../scenario.ts'

const SENDERS = ['ant.example', 'bee.example', 'cat.example', 'dog.example']
const CLASSES: readonly SimulatedShares['classes'][] = [
  {},
  {},
  { fast: { weight: 3, reserve: 20 }, bulk: { weight: 1, reserve: 0 } },
  { fast: { weight: 4, reserve: 20 }, normal: { weight: 2, reserve: 10 }, bulk: { weight: 1, reserve: 0 } },
]
/** Window of a destination that is never short. */
export const WIDE = 50

/** The destinations of one sender and class, each with its window. */
type Places = ReadonlyMap<string, number>

/** The mail of one sender in one class. */
interface Flow {
  readonly sender: string
  readonly places: Places
  /** Number of recipients. */
  readonly recipients: number
  /** Time of the first message. */
  readonly from: number
}

/** A scenario of the same seed, storage and duration of commits, with mail of several shares. */
export function fairlyShared({ seed, storage, commitTakes }: Pick<Scenario, 'seed' | 'storage' | 'commitTakes'>): Scenario {
  const dice = new Dice(seed + 3_000_000)
  const short = dice.one(['slots', 'slots', 'destination', 'destination', 'provider'] as const)
  const limit = short === 'destination' ? dice.number(1, 3) : dice.number(2, 6)
  const shares = sharesOf(dice, short)
  const flows = flowsOf({ dice, shares, limit })
  const windows = new Map(flows.flatMap(({ places }) => [...places]))
  const destinations = [...windows.keys()]
  const lasts = dice.number(1, 3)
  const slow = destinations.map((domain) => ({ domain, at: 'rcpt', delay: `${lasts}s` }) as const)
  const faults = [...outageOf(dice, destinations), ...slow]
  const steps = [...mailOf(dice, flows), ...troublesOf(dice)]
  const crashes: readonly CommitCrash[] = dice.chance(0.15)
    ? [{ commit: dice.number(60, 300), side: dice.one(['before', 'after']), downFor: 0 }]
    : []
  return {
    seed,
    config: { ...TIMES, ...(short === 'slots' ? { default_process_limit: limit } : {}) },
    tables: Object.fromEntries([...windows].map(([name, window]) => [name, windowOf(window)])),
    ...(short === 'provider' ? { provider: { of: destinations, limit } } : {}),
    storage,
    commitTakes: Math.min(commitTakes, 3),
    destinations,
    faults,
    steps: steps.toSorted((a, b) => a.at - b.at),
    // Mail that was in delivery at two crashes is tried alone, out of its turn.
    crashes: steps.some((step) => step.do === 'crash') ? [] : crashes,
    ends: 'well',
    shares,
  }
}

const TIMES: Readonly<Record<string, Value>> = {
  minimal_backoff_time: '60s',
  maximal_backoff_time: '60s',
  maximal_queue_lifetime: '2d',
  queue_run_delay: '0',
}

const windowOf = (window: number): Readonly<Record<string, Value>> => ({
  destination_concurrency_limit: window,
  initial_destination_concurrency: window,
})

function sharesOf(dice: Dice, short: SimulatedShares['short']): SimulatedShares {
  const senders = SENDERS.slice(0, dice.number(2, SENDERS.length))
  return { short, weights: Object.fromEntries(senders.map((sender) => [sender, dice.one([1, 1, 1, 2, 3])])), classes: dice.one(CLASSES) }
}

interface Setting {
  readonly dice: Dice
  readonly shares: SimulatedShares
  /** The limit of what is short. */
  readonly limit: number
}

/** One sender has many destinations of small windows, the others have few of large windows; where a destination is short, all have the same one. */
function flowsOf({ dice, shares, limit }: Setting): readonly Flow[] {
  const classes = Object.keys(shares.classes)
  const most = Math.floor(240 / Math.max(1, classes.length))
  return Object.keys(shares.weights).flatMap((domain, n) =>
    (classes.length === 0 ? ['app'] : classes).flatMap((name): readonly Flow[] => {
      const sender = `${name}@${domain}`
      const own = (index: number): string => `${name}${index}.${domain}`
      const places =
        shares.short === 'destination'
          ? new Map([['far.example', limit]])
          : n === 0
            ? new Map(Array.from({ length: 2 * limit + dice.number(0, 3) }, (_, index) => [own(index), dice.number(1, 2)] as const))
            : new Map(Array.from({ length: dice.number(1, 3) }, (_, index) => [own(index), WIDE] as const))
      const recipients = Math.floor(most / (n === 0 ? 2 : dice.number(4, 6)))
      const from = dice.number(0, n === 0 ? 1 : 20) * SECOND
      // Some senders come back after a time without mail.
      return n > 0 && dice.chance(0.4)
        ? [
            { sender, places, recipients: 4, from: SECOND },
            { sender, places, recipients, from: from + 60 * SECOND },
          ]
        : [{ sender, places, recipients, from }]
    }),
  )
}

function mailOf(dice: Dice, flows: readonly Flow[]): readonly Step[] {
  let number = 0
  return flows.flatMap(({ sender, places, recipients, from }) => {
    const steps: Step[] = []
    const names = [...places.keys()]
    for (let left = recipients; left > 0; number++) {
      const count = Math.min(left, names.length, dice.one([1, 1, 1, 4]))
      const first = dice.number(0, names.length - 1)
      const to = Array.from({ length: count }, (_, n) => ({ address: `ann@${names[(first + n) % names.length] ?? ''}` }))
      const mail: Mail = { number, sender, to, size: 100 }
      steps.push({ at: from + 10 * steps.length, do: 'mail', mail })
      left -= count
    }
    return steps
  })
}

/** An outage, after which all mail falls due together. */
function outageOf(dice: Dice, destinations: readonly string[]): readonly RuleText[] {
  if (!dice.chance(0.3)) return []
  const until = `${dice.number(10, 40)}s`
  return destinations.map((domain) => ({ domain, until, at: 'rcpt', reply: '450 4.2.1 busy' }))
}

function troublesOf(dice: Dice): readonly Step[] {
  const at = (): number => dice.number(0, 200) * SECOND
  return [
    ...(dice.chance(0.2) ? [{ at: at(), do: 'crash', downFor: dice.one([0, 10 * SECOND]) } as const] : []),
    ...(dice.chance(0.1) ? [{ at: at(), do: 'restart' } as const] : []),
    ...dice.many(dice.one([0, 0, 2]), (): Step => ({ at: at(), do: dice.one(['hold', 'release', 'flush']), pick: dice.number(0, 40) })),
    ...dice.many(3, (): Step => ({ at: at(), do: 'look' })),
  ]
}

/** The parameters of the shares of a scenario. */
export function sharesConfig(shares: SimulatedShares | undefined) {
  if (shares === undefined) return {}
  const senders = Object.keys(shares.weights)
  const names = Object.keys(shares.classes)
  return {
    fair_share: true,
    share_key: 'sender_domain',
    share_weight_maps: tableOf(Object.entries(shares.weights)),
    ...(names.length === 0
      ? {}
      : {
          default_class: names.at(-1) ?? '',
          sender_class_maps: tableOf(names.flatMap((name) => senders.map((domain) => [`${name}@${domain}`, name] as const))),
          class: Object.fromEntries(
            Object.entries(shares.classes).map(([name, { weight, reserve }]) => [name, { weight, reserve: `${reserve}%` }]),
          ),
        }),
  }
}

const tableOf = (entries: readonly (readonly [key: string, value: string | number])[]): Readonly<Record<string, string>> =>
  Object.fromEntries(entries.map(([key, value]) => [key, String(value)]))
