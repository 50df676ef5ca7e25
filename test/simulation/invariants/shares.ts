/**
 * Bounds of waits with classes and fair shares (start-time fair queueing). While two shares of a class have mail that could begin, the numbers of
 * recipients that begin, divided by their weights, differ by no more than a bound; so do those of two classes. Within a share, mail begins in
 * the order of its due times, but for what memory holds and a hundredth of what waits. A recipient therefore waits for a bounded number of others.
 */
import { SECOND, type Duration } from '../../../src/system/clock.ts'
import type { RecipientId } from '../../../src/mail/message.ts'
import type { ModelMessage, ModelRecipient } from '../model.ts'
import type { CommittedClaim } from '../record.ts'
import type { Complain, Invariant, Scene, SimulatedEvent } from '../replay.ts'
import type { Scenario, SimulatedShares } from '../scenario.ts'
import { WIDE } from '../shares/shared-scenario.ts'

/** A share in a class, or a class, that competes with others. */
interface Rival {
  readonly name: string
  readonly weight: number
  /** Largest lead that the rules allow, in recipients. */
  readonly lead: number
}

interface Race {
  readonly rivals: readonly [Rival, Rival]
  /** Extremes of the difference since both have had mail, in recipients by weight; null before. */
  extremes: { least: number; most: number } | null
  /** Time since which both have had mail; Infinity while one has none. */
  since: Duration
}

/** Error of sums of fractions. */
const ROUNDING = 1e-6

const NO_CLASS = 'app'
/** Class in the name of a share. */
const classOf = (name: string): string => name.split(' ')[0] ?? ''

/** Shares of a class, and classes, have their parts of the starts. */
export function partsAreFair(complain: Complain, { shares, steps, tables }: Scenario): Invariant {
  if (shares === undefined) return { see: () => undefined }
  const begun = new Map<string, number>()
  const races = racesOf({ shares, steps, tables })
  const starts = startsOf(shares)
  let disturbedAt = -SECOND
  return {
    see(entry, scene) {
      if (isDisturbance(entry)) disturbedAt = scene.at
      if (scene.at - disturbedAt < SECOND) for (const race of races) race.extremes = null
      const start = starts(entry, scene)
      const name = start === null ? null : flowOf(scene.queue.messages.get(start.message))
      if (start === null || name === null) return
      const ready = readyIn(scene, shares)
      const before = new Map(begun)
      for (const one of [name, classOf(name)]) begun.set(one, (begun.get(one) ?? 0) + start.recipients.length)
      for (const race of races) {
        const problem = after(race, { ready, before, begun, at: scene.at })
        if (problem !== null) complain(problem)
      }
    },
  }
}

/**
 * The delivery that an entry begins; null for none. Where a provider is short, none before the provider of all destinations is known: deliveries
 * that it does not admit are begun again.
 */
function startsOf({ short }: SimulatedShares): (entry: SimulatedEvent, scene: Scene) => CommittedClaim | null {
  const known = new Set<string>()
  return ({ where, event }, { underWay, provider }) => {
    if (where !== 'test') return null
    if (event.did === 'admitted') known.add(underWay.get(event.attempt)?.destination ?? '')
    if (event.did !== 'began') return null
    return short === 'provider' && known.size < (provider?.of.length ?? 0) ? null : event
  }
}

interface Starts {
  /** Names of the shares and classes with mail that could have begun. */
  readonly ready: ReadonlySet<string>
  readonly before: ReadonlyMap<string, number>
  readonly begun: ReadonlyMap<string, number>
  readonly at: Duration
}

function after(race: Race, { ready, before, begun, at }: Starts): string | null {
  const [one, other] = race.rivals
  race.since = ready.has(one.name) && ready.has(other.name) ? Math.min(race.since, at) : Infinity
  // Of mail that falls due together, free slots have what is claimed first.
  if (at - race.since < SECOND || race.since === Infinity) {
    race.extremes = null
    return null
  }
  const difference = (counts: ReadonlyMap<string, number>): number =>
    (counts.get(one.name) ?? 0) / one.weight - (counts.get(other.name) ?? 0) / other.weight
  const was = difference(before)
  race.extremes ??= { least: was, most: was }
  const now = difference(begun)
  race.extremes.least = Math.min(race.extremes.least, now)
  race.extremes.most = Math.max(race.extremes.most, now)
  const apart = race.extremes.most - race.extremes.least
  const bound = one.lead / one.weight + other.lead / other.weight
  if (apart <= bound + ROUNDING) return null
  race.extremes = null
  return `${one.name} and ${other.name} have mail, and came apart by ${apart.toFixed(1)} recipients by weight, of ${bound.toFixed(1)} allowed`
}

/** True for an event that interrupts deliveries, or takes mail out of its turns. Free slots have what is claimed first afterwards. */
function isDisturbance({ where, event }: SimulatedEvent): boolean {
  if (where !== 'test') return false
  const deed: { readonly did: string } = event
  return ['killed', 'started again', 'restarted', 'was carried out', 'was refused', 'disk full', 'faults end'].includes(deed.did)
}

/** Class and share of a message; null for notices. */
function flowOf(held: ModelMessage | undefined): string | null {
  const sender = held?.message.sender ?? ''
  return sender === '' ? null : sender.split('@').join(' ')
}

type Facts = Pick<Scenario, 'steps' | 'tables'> & { readonly shares: SimulatedShares }

function racesOf(facts: Facts): readonly Race[] {
  const { shares } = facts
  const named = Object.keys(shares.classes)
  const classes = named.length === 0 ? [NO_CLASS] : named
  const flows = new Map(classes.map((name) => [name, Object.keys(shares.weights).map((domain) => rivalOf(`${name} ${domain}`, facts))]))
  const ofClasses = named.map((name): Rival => ({
    name,
    weight: shares.classes[name]?.weight ?? 1,
    lead: 1,
  }))
  return [ofClasses, ...flows.values()].flatMap(pairsOf).map((rivals): Race => ({ rivals, extremes: null, since: Infinity }))
}

const pairsOf = (rivals: readonly Rival[]): readonly (readonly [Rival, Rival])[] =>
  rivals.flatMap((one, n) => rivals.slice(n + 1).map((other) => [one, other] as const))

/** Heads that a share with busy destinations has withdrawn, and whose places it has again with its next heads. */
const WITHDRAWN = 2

/**
 * A share is ahead or behind by the recipient of a delivery, and where it has busy destinations by heads that were charged for and withdrawn; where
 * a destination is short, by the mail that memory holds when the mail of the other comes.
 */
function rivalOf(name: string, { shares, steps, tables }: Facts): Rival {
  const [, domain = ''] = name.split(' ')
  const weight = shares.weights[domain] ?? 1
  const windows = steps.flatMap((step) =>
    step.do === 'mail' && step.mail.sender.split('@').join(' ') === name
      ? step.mail.to.map(({ address }) => Number(tables[address.split('@')[1] ?? '']?.['destination_concurrency_limit']))
      : [],
  )
  const narrowest = Math.min(...windows)
  if (shares.short === 'destination') return { name, weight, lead: 1 + ahead(narrowest, steps) }
  return { name, weight, lead: narrowest < WIDE ? 1 + WITHDRAWN : 1 }
}

/**
 * Recipients that may be ahead of all others of a band and destination, or of earlier ones of their share. Memory has as much as a claim brings, of
 * mail that came without one, or fewer than two for each place of the window when a claim comes, of which the first is by due times. In the
 * store, a hundredth of a backlog may be out of its place, or lose its turns by operations.
 */
function ahead(window: number, steps: Scenario['steps']): number {
  const recipients = steps.reduce((sum, step) => sum + (step.do === 'mail' ? step.mail.to.length : 0), 0)
  return Math.max(10, 4 * window) + 2 * window + Math.floor(0.01 * recipients)
}

/** The shares, and their classes, that have due mail, in memory or in the store, whose destination has room or is what is short. */
function readyIn({ queue, underWay, closed, settings, now }: Scene, { short }: SimulatedShares): Set<string> {
  const running = new Set<RecipientId>()
  const inFlight = new Map<string, number>()
  for (const { recipients, destination } of underWay.values()) {
    for (const { id } of recipients) running.add(id)
    inFlight.set(destination, (inFlight.get(destination) ?? 0) + 1)
  }
  const hasRoom = (destination: string): boolean =>
    !closed.has(destination) &&
    (short === 'destination' ||
      (inFlight.get(destination) ?? 0) < settings.number(destination, 'default_destination_concurrency_limit', 20))
  const ready = new Set<string>()
  for (const [one, held] of queue.live()) {
    const name = flowOf(held)
    if (name === null || ready.has(name) || !waits(one, now) || running.has(one.id) || !hasRoom(one.destination)) continue
    ready.add(name).add(classOf(name))
  }
  return ready
}

const waits = ({ state, dueAt }: ModelRecipient, now: number): boolean => (state === 'waiting' && dueAt <= now) || state === 'leased'

/** At a destination that is short, a due recipient begins before those of its share that are due later, but for those that may be ahead. */
export function mailKeepsItsPlace(complain: Complain, { shares, steps, tables }: Scenario): Invariant {
  if (shares?.short !== 'destination') return { see: () => undefined }
  const passed = new Map<RecipientId, { readonly dueAt: number; count: number }>()
  const window = Number(Object.values(tables)[0]?.['destination_concurrency_limit'] ?? 1)
  const most = ahead(window, steps)
  return {
    see(entry, { queue, underWay, now }) {
      if (entry.where !== 'test' || entry.event.did !== 'began') return
      const beginning = queue.messages.get(entry.event.message)
      const name = flowOf(beginning)
      const running = new Set([...underWay.values(), entry.event].flatMap(({ recipients }) => recipients.map(({ id }) => id)))
      const began = beginning?.recipients.find(({ id }) => running.has(id))
      if (name === null || began === undefined) return
      for (const [one, held] of queue.live()) {
        if (flowOf(held) !== name || !waits(one, now) || running.has(one.id) || one.dueAt >= began.dueAt) continue
        const known = passed.get(one.id)
        const count = known?.dueAt === one.dueAt ? known.count + 1 : 1
        passed.set(one.id, { dueAt: one.dueAt, count })
        if (count === most + 1)
          complain(`${one.address} of ${name} is due, and ${count} recipients of its share that are due later have begun`)
      }
    },
  }
}
