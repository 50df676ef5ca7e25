/**
 * Operations on messages and destinations. The owner of the queue performs them: the daemon on request, or a command that holds
 * the lock. Transactions are short, so that mail does not wait. Each operation adds one record to the audit log.
 */
import type { DestinationPolicies } from '../config/destination-policies.ts'
import type { Clock, Duration, Instant } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import { queueIdOf, type DestinationName, type MessageId, type QueueName } from '../mail/message.ts'
import {
  ANY_MESSAGE,
  onClockAhead,
  type FoundMessage,
  type ListedMessage,
  type QueueFilter,
  type QueueReader,
} from '../store/queue-reader.ts'
import type { LiveDestination, Suspension } from '../store/destination-status.ts'
import type { AuditId, DestinationDue, Operation, QueueStore } from '../store/queue-store.ts'

export const OPERATIONS = ['flush', 'hold', 'release', 'requeue', 'expire', 'delete', 'restore'] as const
/** Operation on queued messages. */
export type OperationName = (typeof OPERATIONS)[number]

/** Selection of messages: by id, or by a filter. */
export type Selection =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'filter'; readonly filter: QueueFilter; readonly limit: number | null }

/** An operation on many messages. Every key is required, so that a layer that omits a new one does not compile. */
export interface BulkOperation {
  readonly operation: OperationName
  readonly selection: Selection
  /** Queues whose messages may be changed; null for all queues. */
  readonly queues: readonly QueueName[] | null
  /** True to delete permanently, without the trash. */
  readonly purge: boolean
  /** True to count and list messages without changing them. */
  readonly dryRun: boolean
  /** Name of the operator, for the audit log. */
  readonly who: string
  /** Command with its arguments, for the audit log. */
  readonly commandLine: string
}

/** An operator's request to suspend a destination. */
export interface SuspensionRequest {
  readonly by: string
  /** Time after which the suspension ends by itself; null for never. */
  readonly duration: Duration | null
  readonly reason: string | null
}

/** Result of an operation. */
export interface OperationSummary {
  /** Number of selected messages. */
  readonly matched: number
  /** Number of changed messages. */
  readonly changed: number
  /** Ids found neither in the queue nor in the trash. */
  readonly unknown: readonly string[]
}

/** Progress of an operation, after each round. */
export interface Progress extends OperationSummary {
  /**
   * Queue ids of the messages that this round changed, or of those selected in a dry run. A requeued message has its former id
   * here.
   */
  readonly ids: readonly string[]
}

/** Effects on the scheduler. */
export interface SchedulerControl {
  /** Schedules the mail of these destinations. With `revive`, dead destinations are opened. */
  workAdded(due: readonly DestinationDue[], options: { readonly revive: boolean }): void
  suspend(name: DestinationName, suspension: Suspension): Promise<void>
  resume(name: DestinationName, by: string): Promise<void>
  snapshot(): readonly LiveDestination[]
}

export interface OperationsDeps {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly clock: Clock
  readonly policies: () => DestinationPolicies
  readonly events: Events
  readonly scheduler: SchedulerControl
  /** Called after each round with the number of its messages. The operation waits for the promise, so that mail has priority. */
  readonly throttle?: (messages: number) => Promise<void>
}

/** Number of messages per round. A round is one commit, and it is small so that other commits wait little. */
const ROUND = 64
/** Number of messages per search page. The search for one page takes half a millisecond. */
const PAGE = 4 * ROUND

/** Queue to search when the filter names none; null for all queues except the trash and, unless `queues` names it, `corrupt`. */
const DEFAULT_QUEUE: Readonly<Record<OperationName, QueueFilter['queue']>> = {
  flush: 'deferred',
  hold: null,
  release: 'hold',
  requeue: null,
  expire: null,
  delete: null,
  restore: 'trash',
}

/** The operation on one message, with the data of the event that is emitted for it. */
interface Step {
  readonly message: FoundMessage
  readonly operation: Operation
  readonly requeued?: ListedMessage | undefined
}

/**
 * Event of a requeued message, which has a new queue id. The log links the new id to the old one, as `orig_id=` of Postfix pickup
 * does.
 */
const requeuedEvent = ({ message, recipients }: ListedMessage, { now, newId }: Extract<Operation, { kind: 'requeue' }>): QueueEvent => ({
  kind: 'accepted',
  message: { ...message, id: newId, createdAt: now },
  recipients: recipients.filter(({ state }) => state === 'waiting' || state === 'parked').map(({ address }) => address),
  client: null,
  originalId: queueIdOf(message),
})

export class Operations {
  readonly #deps: OperationsDeps

  constructor(deps: OperationsDeps) {
    this.#deps = deps
  }

  /** Performs an operation and calls `progress` after every round. */
  async perform(request: BulkOperation, progress: (soFar: Progress) => void = () => undefined): Promise<OperationSummary> {
    const unknown: string[] = []
    let matched = 0
    let changed = 0
    const isDry = request.dryRun
    // The audit record is added first and updated with every round, so that it is correct after a crash too.
    const auditedAs = isDry ? undefined : await this.#audit(request.who, request.operation, request.commandLine, 0)
    for await (const round of this.#rounds(request, unknown)) {
      matched += round.length
      const ids = isDry ? round.map(queueIdOf) : await this.#operate(request, round, auditedAs)
      if (!isDry) changed += ids.length
      progress({ matched, changed, unknown, ids })
      if (!isDry) await this.#deps.throttle?.(round.length)
    }
    return { matched, changed, unknown }
  }

  async suspend(name: DestinationName, { by, duration, reason }: SuspensionRequest): Promise<void> {
    const until = duration === null ? null : this.#deps.clock.now() + duration
    await this.#deps.scheduler.suspend(name, { by, until, reason })
    const options = [duration === null ? '' : ` --for=${formatDuration(duration)}`, reason === null ? '' : ` --reason=${reason}`]
    await this.#audit(by, 'suspend', `${name}${options.join('')}`, 1)
  }

  async resume(name: DestinationName, who: string): Promise<void> {
    await this.#deps.scheduler.resume(name, who)
    await this.#audit(who, 'resume', name, 1)
  }

  /** Destinations in the scheduler's memory, with times of the wall clock. */
  destinations(): readonly LiveDestination[] {
    const offset = this.#deps.clock.wallOffset()
    const wall = (at: Instant | null): Instant | null => (at === null ? null : at - offset)
    return this.#deps.scheduler.snapshot().map((one) => ({ ...one, nextDueAt: wall(one.nextDueAt), deadUntil: wall(one.deadUntil) }))
  }

  #audit(who: string, action: string, commandLine: string, changed: number): Promise<AuditId> {
    return this.#deps.store.audit({ at: this.#deps.clock.now(), who, action, arguments: commandLine, changed })
  }

  #rounds(request: BulkOperation, unknown: string[]): AsyncIterable<readonly FoundMessage[]> {
    return request.selection.kind === 'ids'
      ? this.#named(request, request.selection.ids, unknown)
      : this.#matching(request, request.selection)
  }

  async *#named({ queues }: BulkOperation, ids: readonly string[], unknown: string[]): AsyncGenerator<readonly FoundMessage[]> {
    for (let from = 0; from < ids.length; from += ROUND) {
      const asked = ids.slice(from, from + ROUND)
      const found = await this.#deps.reader.named(asked)
      unknown.push(...asked.filter((_, n) => found[n] === undefined))
      yield found.filter((one) => one !== undefined).filter(({ queue }) => queues === null || queues.some((name) => name === queue))
    }
  }

  async *#matching(request: BulkOperation, selection: Extract<Selection, { kind: 'filter' }>): AsyncGenerator<readonly FoundMessage[]> {
    for await (const found of this.#pages(request, selection)) {
      for (let from = 0; from < found.length; from += ROUND) yield found.slice(from, from + ROUND)
    }
  }

  async *#pages(
    { operation, queues }: BulkOperation,
    { filter: asked, limit }: Extract<Selection, { kind: 'filter' }>,
  ): AsyncGenerator<readonly FoundMessage[]> {
    const { store, reader, clock } = this.#deps
    const only = queues?.length === 1 ? queues[0] : null
    // Operators read the wall clock.
    const filter = { ...onClockAhead(asked, clock.wallOffset()), queue: asked.queue ?? only ?? DEFAULT_QUEUE[operation] }
    const eligible = ({ queue }: FoundMessage) =>
      queues === null ? queue !== 'corrupt' || filter.queue === 'corrupt' : queues.some((one) => one === queue)
    // Messages that this operation adds by requeueing have ids above `end`, so the search does not find them.
    const end = store.nextId()
    const find = (after: MessageId, left: number) => {
      const page = reader.find(filter, { after, through: end, limit: Math.min(PAGE, left) })
      // The next page is requested before this one is processed. If processing fails, a failure of that request would have no
      // handler.
      page.catch(() => undefined)
      return page
    }
    let left = limit ?? Infinity
    for (let next: ReturnType<typeof find> | null = find(0, left); next !== null;) {
      const page: readonly FoundMessage[] = await next
      const found = page.filter(eligible)
      const isLast = page.length < Math.min(PAGE, left) || found.length === left
      left -= found.length
      // The next page is searched while this one is processed.
      next = isLast ? null : find(page.at(-1)?.id ?? end, left)
      yield found
    }
  }

  /** Passes a round to the store, which commits it as one transaction. Returns the ids of the changed messages. */
  async #operate(request: BulkOperation, round: readonly FoundMessage[], auditedAs?: AuditId): Promise<readonly string[]> {
    const { store, events, scheduler } = this.#deps
    const steps = await this.#steps(request, round)
    const operations = steps.map(({ message, operation }) => ({ message: message.id, operation }))
    const results = await store.operate(operations, auditedAs)
    const woken = new Map<DestinationName, Instant>()
    const changed: string[] = []
    for (const [n, { message, operation, requeued }] of steps.entries()) {
      const result = results[n]
      if (result?.changed !== true) continue
      const queueId = queueIdOf(message)
      changed.push(queueId)
      events.emit({ kind: 'operated', queueId, operation: request.operation, by: request.who })
      if (operation.kind === 'requeue' && requeued !== undefined) events.emit(requeuedEvent(requeued, operation))
      for (const { destination, dueAt } of result.woken) woken.set(destination, Math.min(dueAt, woken.get(destination) ?? dueAt))
    }
    if (woken.size > 0) {
      const due = [...woken].map(([destination, dueAt]) => ({ destination, dueAt }))
      scheduler.workAdded(due, { revive: request.operation === 'flush' })
    }
    return changed
  }

  /** One step per message of a round. Except for requeue, they share one operation object, so that structured cloning copies it once. */
  async #steps({ operation: kind, purge }: BulkOperation, round: readonly FoundMessage[]): Promise<readonly Step[]> {
    const now = this.#deps.clock.now()
    if (kind === 'requeue') return (await Promise.all(round.map((message) => this.#requeueing(message, now)))).flat()
    const operation: Operation = kind === 'delete' ? { kind, now, purge } : kind === 'flush' ? { kind, now } : { kind }
    return round.map((message) => ({ message, operation }))
  }

  /** Step that requeues a message, as a list: empty when the message has left the queue. */
  async #requeueing(message: FoundMessage, now: Instant): Promise<readonly Step[]> {
    const [requeued] = await this.#deps.reader.list({ ...ANY_MESSAGE, queueId: queueIdOf(message) }, { after: 0, limit: 1 })
    if (requeued === undefined) return []
    const newId = this.#deps.store.nextId()
    return [{ message, requeued, operation: { kind: 'requeue', now, newId, expiresAt: now + this.#lifetime(requeued) } }]
  }

  /** Lifetime of a requeued message: the longest lifetime among its destinations. */
  #lifetime({ message: { sender }, recipients }: ListedMessage): Duration {
    const policies = this.#deps.policies()
    const name = sender === '' ? 'bounce_queue_lifetime' : 'maximal_queue_lifetime'
    return Math.max(0, ...recipients.map(({ destination }) => policies.for(destination).settings[name]))
  }
}
