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
import type { DestinationDue, Operation, QueueStore } from './store.ts'

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
  /** Lets mail go first, after a round of so many messages. */
  readonly giveWay?: (messages: number) => Promise<void>
}

/** Messages per round: what is committed together. Few enough that they ride along with mail and hardly delay it. */
const ROUND = 32

/** Where mail is looked for when the filter does not say: nothing else could be changed by the operation. */
const HOME: Partial<Record<OperationName, QueueFilter['queue']>> = { release: 'hold', restore: 'trash', flush: 'deferred' }

/** A message an operation is about, with what is known of its recipients. */
type Subject = Pick<ListedMessage, 'message' | 'recipients'>

/** A requeued message comes in again under its new id; the log links it to the old one (postfix pickup, `orig_id=`). */
const takenInAgain = ({ message, recipients }: Subject, { now, newId }: Extract<Operation, { kind: 'requeue' }>): QueueEvent => ({
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
    for (const round of this.#rounds(order, unknown)) {
      matched += round.length
      const ids = isDry ? round.map(({ message }) => queueIdOf(message)) : await this.#operate(order, round)
      if (!isDry) changed += ids.length
      progress({ matched, changed, unknown, ids })
      if (!isDry) await this.#parts.giveWay?.(round.length)
    }
    if (!isDry) await this.#audit(order.who, order.operation, order.words, changed)
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

  async #audit(who: string, action: string, words: string, changed: number): Promise<void> {
    await this.#parts.store.audit({ at: this.#parts.clock.now(), who, action, arguments: words, changed })
  }

  #rounds(order: Order, unknown: string[]): Generator<readonly Subject[]> {
    return order.selection.kind === 'ids' ? this.#named(order, order.selection.ids, unknown) : this.#matching(order, order.selection)
  }

  *#named({ queues }: Order, ids: readonly string[], unknown: string[]): Generator<readonly Subject[]> {
    for (let from = 0; from < ids.length; from += ROUND) {
      const round: Subject[] = []
      for (const id of ids.slice(from, from + ROUND)) {
        const story = this.#parts.reader.story(id, this.#parts.clock.now())
        if (story === undefined || story.queue === 'gone') unknown.push(id)
        else if (queues === undefined || queues.some((queue) => queue === story.queue)) round.push(story)
      }
      yield round
    }
  }

  *#matching(
    { operation, queues }: Order,
    { filter: asked, limit = Infinity }: Extract<Selection, { kind: 'filter' }>,
  ): Generator<readonly Subject[]> {
    const { reader, store, clock } = this.#parts
    const only = queues?.length === 1 ? queues[0] : undefined
    const filter = { ...asked, queue: asked.queue ?? only ?? HOME[operation] }
    const eligible = (queue: ListedMessage['queue']) =>
      queues === undefined ? queue !== 'corrupt' || filter.queue === 'corrupt' : queues.some((one) => one === queue)
    const now = clock.now()
    // What the operation itself adds to the queue (requeueing does) lies beyond this id.
    const end = store.nextId()
    let after: MessageId = 0
    for (let left = limit; left > 0;) {
      const size = Math.min(ROUND, left)
      const page = reader.list(filter, { after, limit: size, now })
      const round = page.filter(({ message, queue }) => message.id < end && eligible(queue))
      yield round
      if (page.length < size) return
      left -= round.length
      after = page.at(-1)?.message.id ?? end
      if (after >= end) return
    }
  }

  /** Everything of a round is handed to the store at once, which commits it together. Says which changed. */
  async #operate(order: Order, round: readonly Subject[]): Promise<readonly string[]> {
    const { store, events, wakes } = this.#parts
    const operations = round.map(({ message, recipients }) => ({
      message: message.id,
      operation: this.#operation(order, { message, recipients }),
    }))
    const results = await store.operate(operations)
    const woken = new Map<DestinationName, Instant>()
    const changed: string[] = []
    for (const [n, subject] of round.entries()) {
      const [operation, result] = [operations[n]?.operation, results[n]]
      if (operation === undefined || result?.changed !== true) continue
      const queueId = queueIdOf(subject.message)
      changed.push(queueId)
      events.emit({ kind: 'operated', queueId, operation: order.operation, by: order.who })
      if (operation.kind === 'requeue') events.emit(takenInAgain(subject, operation))
      for (const { destination, dueAt } of result.woken) woken.set(destination, Math.min(dueAt, woken.get(destination) ?? dueAt))
    }
    if (woken.size > 0) {
      const due = [...woken].map(([destination, dueAt]) => ({ destination, dueAt }))
      wakes.woken(due, { revive: order.operation === 'flush' })
    }
    return changed
  }

  #operation(order: Order, { message, recipients }: Subject): Operation {
    const now = this.#parts.clock.now()
    switch (order.operation) {
      case 'flush':
        return { kind: 'flush', now }
      case 'requeue':
        return { kind: 'requeue', now, newId: this.#parts.store.nextId(), expiresAt: now + this.#lifetime(message, recipients) }
      case 'delete':
        return { kind: 'delete', now, purge: order.purge === true }
      default:
        return { kind: order.operation }
    }
  }

  /** How long a new entry is tried: as long as the most patient of its destinations says. */
  #lifetime({ sender }: Subject['message'], recipients: Subject['recipients']): Duration {
    const config = this.#parts.config()
    const name = sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
    return recipients.reduce((longest, { address, destination }) => {
      const { values } = settingsFor(config, domainOf(address), destination)
      return Math.max(longest, values[name])
    }, 0)
  }
}
