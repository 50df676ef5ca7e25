/**
 * What operators do to messages and destinations, done by the owner of the queue: the daemon when it is asked, or a
 * command that holds the lock. Work goes in short transactions, so that mail never waits for an operator; each order
 * leaves one audit row.
 */
import { settingsFor } from '../config/destination-settings.ts'
import type { Config } from '../config/options.ts'
import type { Clock, Duration, Instant } from '../mail/clock.ts'
import { domainOf } from '../mail/address.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import { queueIdOf, type DestinationName, type MessageId } from './message.ts'
import type { ListedMessage, QueueFilter, QueueName, QueueReader } from './reader.ts'
import { searchHere, type FoundMessage, type Search } from './search.ts'
import type { AuditId, DestinationDue, Operation, QueueStore } from './store.ts'

export const OPERATIONS = ['flush', 'hold', 'release', 'requeue', 'expire', 'delete', 'restore'] as const
export type OperationName = (typeof OPERATIONS)[number]

/** Which messages: those named, or those that match. */
export type Selection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: QueueFilter; readonly limit?: number | undefined }

export interface Order {
  readonly operation: OperationName
  readonly selection: Selection
  /** Only what is in these queues; anywhere when absent. */
  readonly queues?: readonly QueueName[] | undefined
  /** Delete for good, without the trash. */
  readonly purge?: boolean | undefined
  /** Count and show, change nothing. */
  readonly dryRun?: boolean | undefined
  /** Who asked, and in what words: for the audit. */
  readonly who: string
  readonly words: string
}

export interface Tally {
  /** Messages that were named or that matched. */
  readonly matched: number
  /** Messages the operation made a difference to. */
  readonly changed: number
  /** Ids that neither queue nor trash knows. */
  readonly unknown: readonly string[]
}

/** How far an order has come, after each round. */
export interface Progress extends Tally {
  /** Messages that were changed in this round, or would be looked at in a dry run, by the ids they had. */
  readonly ids: readonly string[]
}

/** A destination as the scheduler has it in memory. */
export interface LiveDestination {
  readonly destination: DestinationName
  readonly window: number
  readonly inFlight: number
  /** Recipients that wait for a slot in the active queue. */
  readonly waiting: number
  readonly nextDueAt: Instant | null
  readonly deadUntil: Instant | null
  readonly probeInterval: Duration | null
  readonly suspendedBy: string | null
  readonly lastReply: string | null
}

/** What operations need of a running scheduler. */
export interface Wakes {
  /** Mail at these destinations is due now; `revive`: also where nobody opened the door. */
  woken(due: readonly DestinationDue[], options: { readonly revive: boolean }): void
  suspend(name: DestinationName, by: string): Promise<void>
  resume(name: DestinationName, by: string): Promise<void>
  snapshot(): readonly LiveDestination[]
}

/** Stands in for the scheduler while no daemon runs: what must survive is written down for the next one. */
export function sleepingScheduler(store: QueueStore): Wakes {
  const change = async (name: DestinationName, suspendedBy: string | null) => {
    const known = (await store.destinations()).find((record) => record.name === name)
    await store.saveDestination({ ...(known ?? { name, deadUntil: null, probeInterval: null, reason: null }), suspendedBy })
  }
  return {
    woken: () => undefined,
    suspend: (name, by) => change(name, by),
    resume: (name) => change(name, null),
    snapshot: () => [],
  }
}

export interface OperationsParts {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  readonly config: () => Config
  readonly events: Events
  readonly wakes: Wakes
  /** Begins to look for messages; in the reader itself when absent. */
  readonly search?: () => Search
  /** Lets mail go first, after a round of so many messages. */
  readonly giveWay?: (messages: number) => Promise<void>
}

/** Messages per round: what is committed together. Few enough that they ride along with mail and hardly delay it. */
const ROUND = 64
/** Messages looked for at once: half a millisecond. */
const PAGE = 4 * ROUND

/** Where mail is looked for when the filter does not say: nothing else could be changed by the operation. */
const HOME: Partial<Record<OperationName, QueueFilter['queue']>> = { release: 'hold', restore: 'trash', flush: 'deferred' }

/** What is to be done to a message, and what it was when that is more than its name. */
interface Step {
  readonly message: FoundMessage
  readonly operation: Operation
  readonly requeued?: ListedMessage | undefined
}

/** A requeued message comes in again under its new id; the log links it to the old one (postfix pickup, `orig_id=`). */
const takenInAgain = ({ message, recipients }: ListedMessage, { now, newId }: Extract<Operation, { kind: 'requeue' }>): QueueEvent => ({
  kind: 'accepted',
  message: { ...message, id: newId, createdAt: now },
  recipients: recipients.filter(({ state }) => state === 'waiting' || state === 'parked').map(({ address }) => address),
  client: null,
  originalId: queueIdOf(message),
})

export class Operations {
  readonly #parts: OperationsParts

  constructor(parts: OperationsParts) {
    this.#parts = parts
  }

  /** Carries out an order; `progress` hears of every round. */
  async perform(order: Order, progress: (soFar: Progress) => void = () => undefined): Promise<Tally> {
    const unknown: string[] = []
    let matched = 0
    let changed = 0
    const isDry = order.dryRun === true
    // Written first and counted with every round: what a killed daemon has done stands there too.
    const auditedAs = isDry ? undefined : await this.#audit(order.who, order.operation, order.words, 0)
    for await (const round of this.#rounds(order, unknown)) {
      matched += round.length
      const ids = isDry ? round.map(queueIdOf) : await this.#operate(order, round, auditedAs)
      if (!isDry) changed += ids.length
      progress({ matched, changed, unknown, ids })
      if (!isDry) await this.#parts.giveWay?.(round.length)
    }
    return { matched, changed, unknown }
  }

  async suspend(name: DestinationName, who: string): Promise<void> {
    await this.#parts.wakes.suspend(name, who)
    await this.#audit(who, 'suspend', name, 1)
  }

  async resume(name: DestinationName, who: string): Promise<void> {
    await this.#parts.wakes.resume(name, who)
    await this.#audit(who, 'resume', name, 1)
  }

  destinations(): readonly LiveDestination[] {
    return this.#parts.wakes.snapshot()
  }

  #audit(who: string, action: string, words: string, changed: number): Promise<AuditId> {
    return this.#parts.store.audit({ at: this.#parts.clock.now(), who, action, arguments: words, changed })
  }

  #rounds(order: Order, unknown: string[]): Iterable<readonly FoundMessage[]> | AsyncIterable<readonly FoundMessage[]> {
    return order.selection.kind === 'ids' ? this.#named(order, order.selection.ids, unknown) : this.#matching(order, order.selection)
  }

  *#named({ queues }: Order, ids: readonly string[], unknown: string[]): Generator<readonly FoundMessage[]> {
    for (let from = 0; from < ids.length; from += ROUND) {
      const round: FoundMessage[] = []
      for (const id of ids.slice(from, from + ROUND)) {
        const story = this.#parts.reader.story(id, this.#parts.clock.now())
        if (story === undefined || story.queue === 'gone') unknown.push(id)
        else if (queues === undefined || queues.some((queue) => queue === story.queue)) round.push({ ...story.message, queue: story.queue })
      }
      yield round
    }
  }

  async *#matching(order: Order, selection: Extract<Selection, { kind: 'filter' }>): AsyncGenerator<readonly FoundMessage[]> {
    const search = this.#parts.search?.() ?? searchHere(this.#parts.reader)
    try {
      for await (const found of this.#pages(search, order, selection)) {
        for (let from = 0; from < found.length; from += ROUND) yield found.slice(from, from + ROUND)
      }
    } finally {
      await search.end()
    }
  }

  async *#pages(
    search: Search,
    { operation, queues }: Order,
    { filter: asked, limit = Infinity }: Extract<Selection, { kind: 'filter' }>,
  ): AsyncGenerator<readonly FoundMessage[]> {
    const { store, clock } = this.#parts
    const only = queues?.length === 1 ? queues[0] : undefined
    const filter = { ...asked, queue: asked.queue ?? only ?? HOME[operation] }
    const eligible = ({ queue }: FoundMessage) =>
      queues === undefined ? queue !== 'corrupt' || filter.queue === 'corrupt' : queues.some((one) => one === queue)
    const now = clock.now()
    // What the operation itself adds to the queue (requeueing does) lies beyond this id.
    const end = store.nextId()
    const find = (after: MessageId, left: number) => search.find(filter, { after, through: end, limit: Math.min(PAGE, left), now })
    let left = limit
    for (let next: ReturnType<typeof find> | null = find(0, left); next !== null;) {
      const page: readonly FoundMessage[] = await next
      const found = page.filter(eligible)
      const isLast = page.length < Math.min(PAGE, left) || found.length === left
      left -= found.length
      // Looked for while this page is dealt with.
      next = isLast ? null : find(page.at(-1)?.id ?? end, left)
      yield found
    }
  }

  /** Everything of a round is handed to the store at once, which commits it together. Says which changed. */
  async #operate(order: Order, round: readonly FoundMessage[], auditedAs?: AuditId): Promise<readonly string[]> {
    const { store, events, wakes } = this.#parts
    const steps = this.#steps(order, round)
    const operations = steps.map(({ message, operation }) => ({ message: message.id, operation }))
    const results = await store.operate(operations, auditedAs)
    const woken = new Map<DestinationName, Instant>()
    const changed: string[] = []
    for (const [n, { message, operation, requeued }] of steps.entries()) {
      const result = results[n]
      if (result?.changed !== true) continue
      const queueId = queueIdOf(message)
      changed.push(queueId)
      events.emit({ kind: 'operated', queueId, operation: order.operation, by: order.who })
      if (operation.kind === 'requeue' && requeued !== undefined) events.emit(takenInAgain(requeued, operation))
      for (const { destination, dueAt } of result.woken) woken.set(destination, Math.min(dueAt, woken.get(destination) ?? dueAt))
    }
    if (woken.size > 0) {
      const due = [...woken].map(([destination, dueAt]) => ({ destination, dueAt }))
      wakes.woken(due, { revive: order.operation === 'flush' })
    }
    return changed
  }

  /** What is the same for all messages is one object: it crosses to the store's thread once. */
  #steps({ operation: kind, purge = false }: Order, round: readonly FoundMessage[]): readonly Step[] {
    const now = this.#parts.clock.now()
    if (kind === 'requeue') return round.flatMap((message) => this.#requeueing(message, now))
    const operation: Operation = kind === 'delete' ? { kind, now, purge } : kind === 'flush' ? { kind, now } : { kind }
    return round.map((message) => ({ message, operation }))
  }

  /** Nothing when the message has left meanwhile. */
  #requeueing(message: FoundMessage, now: Instant): readonly Step[] {
    const [requeued] = this.#parts.reader.list({ queueId: queueIdOf(message) }, { after: 0, limit: 1, now })
    if (requeued === undefined) return []
    const newId = this.#parts.store.nextId()
    return [{ message, requeued, operation: { kind: 'requeue', now, newId, expiresAt: now + this.#lifetime(requeued) } }]
  }

  /** How long a new entry is tried: as long as the most patient of its destinations says. */
  #lifetime({ message: { sender }, recipients }: ListedMessage): Duration {
    const config = this.#parts.config()
    const name = sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
    return recipients.reduce((longest, { address, destination }) => {
      const { values } = settingsFor(config, domainOf(address), destination)
      return Math.max(longest, values[name])
    }, 0)
  }
}
