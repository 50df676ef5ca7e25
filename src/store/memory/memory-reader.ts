/**
 * QueueReader over a queue in memory.
 */
import { restorableSince } from '../message-operation.ts'
import { freshRecord } from '../queue-store.ts'
import { addressMatcher, matchesPattern } from '../../patterns/filter-pattern.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { QueueCount, TrashCount } from '../counts/queue-tally.ts'
import { OLDER_MINUTES, sumOfTraffic, type Traffic, type TrafficMinute } from '../counts/traffic.ts'
import { CauseGroups, type CausePage, type CauseSlice } from '../counts/cause-groups.ts'
import type { EventPage, OutboxReader } from '../outbox-store.ts'
import type { ParkedEvent, SubscriptionView } from '../outbox/subscription.ts'
import { APART, PLACING_ACTIONS, type AuditId } from '../records/audit-log.ts'
import type { PlacedPage } from '../queue-reader.ts'
import { formerOf } from '../former-times.ts'
import { AUDIT_ROWS, heldOperated } from '../records/audit-records.ts'
import type { ReaderEngine } from '../reader-methods.ts'
import { countsOf, trashOf } from './memory-tally.ts'
import { PROVIDER_MEMBERS, PROVIDERS, withSuspendedProviders } from '../records/provider-state.ts'
import { compare } from '../records/record-table.ts'
import { recordCall, type SentRecordCall } from '../records/records.ts'
import { entriesOf, hasTerms, type SearchTerm } from '../search/search-terms.ts'
import { inOrder, queueOf, snapshot, type HeldMessage, type MemoryQueue } from './queue-state.ts'
import {
  isLive,
  messageOf,
  type DestinationName,
  type Message,
  type MessageId,
  type Recipient,
  type QueueName,
} from '../../mail/message.ts'
import {
  departedRecipients,
  type DestinationLoad,
  type FoundMessage,
  type FoundPage,
  type HistoryFilter,
  type HistoryPage,
  type ListedMessage,
  type ListPage,
  type MessageDetails,
  type Survey,
  type SurveyPage,
} from '../queue-reader.ts'
import { conditionsIn, matchesReply, matchesStatus, type QueueFilter } from '../message-conditions.ts'

export class MemoryReader implements ReaderEngine {
  readonly #queue: MemoryQueue

  constructor(queue: MemoryQueue) {
    this.#queue = queue
  }

  list(
    filter: QueueFilter,
    { after, through = Infinity, limit, newestFirst = false, recipients: most = Infinity }: ListPage,
  ): ListedMessage[] {
    const found = this.#matching(filter, after, through)
    return (newestFirst ? found.toReversed() : found).slice(0, limit).map((held) => {
      const live = held.recipients.filter(isLive)
      return {
        message: held.message,
        queue: queueOf(held, this.#queue),
        forcedExpire: held.forcedExpire,
        recipients: live.slice(0, most).map(snapshot),
        recipientCount: live.length,
        ...(most === Infinity ? {} : { groups: live.map(snapshot) }),
      }
    })
  }

  #matching(filter: QueueFilter, after: MessageId, through: MessageId): HeldMessage[] {
    return inOrder(this.#queue).filter(
      (held) => held.message.id > after && held.message.id <= through && matches(filter, held, queueOf(held, this.#queue)),
    )
  }

  survey(
    filter: QueueFilter,
    { after, through, size, queues, destinations: isDetailed, senders = false, bounds = [] }: SurveyPage,
  ): Survey {
    const ids = inOrder(this.#queue).map(({ message }) => message.id)
    const last = ids.filter((id) => id > after && id <= through)[size - 1] ?? null
    const found = this.#matching(filter, after, last ?? through).filter(
      (held) => queues === null || queues.some((name) => name === queueOf(held, this.#queue)),
    )
    const live = found.flatMap(({ recipients }) => recipients.filter(isLive))
    const bySender = Map.groupBy(senders ? found : [], ({ message }) => message.sender)
    const byDestination = Map.groupBy(isDetailed ? live : [], ({ destination }) => destination)
    return {
      last,
      messages: found.length,
      bytes: found.reduce((sum, { message }) => sum + message.size, 0),
      oldestArrival: found.length === 0 ? null : Math.min(...found.map(({ message }) => message.arrivedAt)),
      arrivedBefore: bounds.map((bound) => found.filter(({ message }) => message.arrivedAt < bound).length),
      senders: [...bySender].map(([sender, those]) => ({ sender, messages: those.length })),
      destinations: [...byDestination].map(([destination, those]) => ({ destination, recipients: those.length })),
    }
  }

  expiring(before: QueueTime, most: number): number {
    const all = [...this.#queue.messages.values()].flatMap(({ recipients }) => recipients)
    return Math.min(most, all.filter(({ state, expiresAt }) => state === 'waiting' && expiresAt < before).length)
  }

  find(filter: QueueFilter, page: ListPage): FoundMessage[] {
    return this.list(filter, page).map(({ message: { id, createdAt }, queue }) => ({ id, createdAt, queue }))
  }

  named(queueIds: readonly string[]): (FoundMessage | undefined)[] {
    return queueIds.map((queueId) => {
      const held = this.#held(queueId)
      return held === undefined ? undefined : { id: held.message.id, createdAt: held.message.createdAt, queue: queueOf(held, this.#queue) }
    })
  }

  withEnvid(envid: string, submitters: readonly string[] | null, limit: number): FoundMessage[] {
    return inOrder(this.#queue)
      .filter(({ message }) => message.envid === envid && (submitters === null || submitters.includes(message.saslUsername ?? '')))
      .slice(0, limit)
      .map((held) => ({ id: held.message.id, createdAt: held.message.createdAt, queue: queueOf(held, this.#queue) }))
  }

  sliceEnd(after: MessageId, size: number): MessageId | null {
    const next = inOrder(this.#queue).filter(({ message }) => message.id > after)
    return next.slice(0, size).at(-1)?.message.id ?? null
  }

  lastId(): MessageId {
    return inOrder(this.#queue).at(-1)?.message.id ?? 0
  }

  details(queueId: string): MessageDetails | undefined {
    const held = this.#held(queueId)
    if (held !== undefined) return present(held, this.#queue)
    const parsed = parseQueueId(queueId)
    const found = parsed === undefined ? undefined : this.#queue.history.get(parsed.row)
    return found?.details.message.createdAt === parsed?.createdAt ? found?.details : undefined
  }

  #held(queueId: string): HeldMessage | undefined {
    const parsed = parseQueueId(queueId)
    const held = parsed === undefined ? undefined : this.#queue.messages.get(parsed.row)
    return held?.message.createdAt === parsed?.createdAt ? held : undefined
  }

  readChunk(message: Pick<Message, 'contentId'>, index: number): Uint8Array | undefined {
    return this.#queue.bodies.get(message.contentId)?.[index]
  }

  destinationNames({ after, limit }: { after: DestinationName; limit: number }): DestinationName[] {
    const names = new Set(this.#active().map((one) => one.destination))
    return [...names]
      .filter((name) => compare(name, after) > 0)
      .toSorted(compare)
      .slice(0, limit)
  }

  destinationLoads(page: { after: DestinationName; limit: number }): DestinationLoad[] {
    return this.destinationNames(page).map((name) => this.destinationLoad(name))
  }

  destinationLoad(destination: DestinationName): DestinationLoad {
    const there = this.#active().filter((one) => one.destination === destination)
    const due = there.filter((one) => one.state === 'waiting').map((one) => one.dueAt)
    return {
      destination,
      waiting: due.length,
      leased: there.length - due.length,
      nextDueAt: due.length === 0 ? null : Math.min(...due),
    }
  }

  scheduledAt(destination: DestinationName): number {
    const scheduled = [...this.#queue.messages.values()].filter(({ message }) => message.scheduled === true)
    return scheduled.flatMap(({ recipients }) => recipients.filter((one) => one.destination === destination && one.state === 'waiting'))
      .length
  }

  causes({ after, size, destination }: CausePage): CauseSlice {
    const live = inOrder(this.#queue).flatMap(({ message, placement, recipients, history }) =>
      recipients.filter((one) => one.id > after).map((one) => ({ message, placement, one, history })),
    )
    const slice = live.slice(0, size)
    const groups = new CauseGroups()
    for (const { message, placement, one, history } of slice) {
      if (
        !isLive(one) ||
        message.scheduled === true ||
        (placement !== 'queued' && placement !== 'hold') ||
        (destination !== null && one.destination !== destination)
      )
        continue
      const own = history.filter(({ recipient }) => recipient === one.id)
      const first = own[0] === undefined ? null : { at: own[0].at, status: () => own[0]?.status ?? null }
      groups.count({ ...one, isHeld: placement === 'hold', createdAt: message.createdAt, lastAt: own.at(-1)?.at ?? null, first })
    }
    return { through: slice.at(-1)?.one.id ?? null, groups: groups.all }
  }

  departed(filter: HistoryFilter, { before, limit }: { readonly before: number | null; readonly limit: number }): HistoryPage {
    const { since, until } = filter
    const found = [...this.#queue.history.values()]
      .filter(({ seq }) => before === null || seq < before)
      .filter(({ details: { leftAt = 0 } }) => leftAt >= (since ?? -Infinity) && leftAt < (until ?? Infinity))
      .filter(({ details }) => departedRecipients(filter, details).length > 0)
      .toSorted((a, b) => b.seq - a.seq)
    const page = found.slice(0, limit)
    return { messages: page.map(({ details }) => details), next: found.length > limit ? (page.at(-1)?.seq ?? null) : null }
  }

  search(terms: readonly SearchTerm[], { before, limit }: { readonly before: MessageId | null; readonly limit: number }): FoundPage {
    const queued = inOrder(this.#queue).map((held) => present(held, this.#queue))
    const gone = [...this.#queue.history.values()].map(({ details }) => details)
    const found = [...queued, ...gone]
      .filter(({ message }) => message.fromHeader !== undefined && message.id < (before ?? Infinity))
      .filter(({ message, recipients }) =>
        hasTerms(
          entriesOf(
            message,
            recipients.map(({ address }) => address),
          ),
          terms,
        ),
      )
      .toSorted((a, b) => b.message.id - a.message.id)
    return { messages: found.slice(0, limit), next: found.length > limit ? (found[limit - 1]?.message.id ?? null) : null }
  }

  destinationRecords() {
    const { records } = this.#queue
    const saved = { effects: PROVIDERS.all.held(records), orders: PROVIDERS.suspensions.held(records) }
    return withSuspendedProviders([...this.#queue.destinations.values()], saved, {
      members: () => PROVIDER_MEMBERS.all.held(this.#queue.records),
      fresh: freshRecord,
    })
  }

  clockRecord() {
    return this.#queue.clock
  }

  placedBy(operation: AuditId, { after, limit }: { readonly after: MessageId; readonly limit: number }): PlacedPage {
    const { records, messages } = this.#queue
    const actionOf = (id: AuditId): string => AUDIT_ROWS.heldIn(records).get(String(id))?.action ?? ''
    const kindOf = (action: string): string => (APART.includes(action) ? action : '')
    const isPlaced = (action: string): boolean => PLACING_ACTIONS.includes(action) && kindOf(action) === kindOf(actionOf(operation))
    const own = heldOperated(records, { operation })
    const page = own.filter(({ message }) => message > after).toSorted((a, b) => a.message - b.message)
    const rows = page.slice(0, limit)
    return {
      messages: rows
        .filter(
          ({ message }) =>
            !heldOperated(records, { message }).some((one) => one.operation > operation && isPlaced(actionOf(one.operation))),
        )
        .flatMap(({ message, former }) => {
          const found = messages.get(message)?.message
          return found === undefined ? [] : [{ id: found.id, createdAt: found.createdAt, former: formerOf(former) }]
        }),
      next: rows.length < limit ? null : (rows.at(-1)?.message ?? null),
    }
  }

  record(...call: SentRecordCall): unknown {
    return recordCall(call).held(this.#queue.records, ...call[2])
  }

  ages({ after, limit, queues }: { after: number; limit: number; queues: readonly QueueName[] }) {
    const wanted: readonly string[] = queues
    return inOrder(this.#queue)
      .filter((held) => wanted.includes(queueOf(held, this.#queue)))
      .flatMap(({ message, recipients }) =>
        recipients
          .filter((one) => isLive(one) && one.id > after)
          .map(({ id, address }) => ({
            cursor: id,
            sender: message.sender,
            address,
            arrivedAt: message.arrivedAt,
            message: messageOf(id),
          })),
      )
      .slice(0, limit)
  }

  shareLoads({ after, size }: { after: number; size: number }) {
    const slice = inOrder(this.#queue)
      .filter(({ message }) => message.id > after)
      .slice(0, size)
    const counted = slice.filter(({ placement, message }) => placement === 'queued' && message.scheduled !== true)
    const groups = Map.groupBy(counted, ({ message }) => JSON.stringify([message.class ?? null, message.share ?? null]))
    const loads = [...groups.values()].flatMap((those) => {
      const [{ message } = { message: null }] = those
      const recipients = those.reduce((sum, held) => sum + held.recipients.filter(isLive).length, 0)
      return recipients === 0 ? [] : [{ class: message?.class ?? null, share: message?.share ?? null, recipients }]
    })
    return { last: slice.at(-1)?.message.id ?? null, loads }
  }

  counts(): readonly QueueCount[] {
    return countsOf(this.#queue)
  }

  allSubscriptions(): readonly SubscriptionView[] {
    return this.#queue.outbox.views()
  }

  parkedEvents(...wanted: Parameters<OutboxReader['parkedEvents']>): readonly ParkedEvent[] {
    return this.#queue.outbox.parkedEvents(...wanted)
  }

  eventsAfter(page: Parameters<OutboxReader['eventsAfter']>[0]): EventPage {
    return this.#queue.outbox.eventsAfter(page)
  }

  trashCount(): TrashCount {
    return trashOf(this.#queue)
  }

  traffic(since: QueueTime): { readonly total: Traffic; readonly minutes: readonly TrafficMinute[] } {
    const minutes = [...this.#queue.traffic].map(([at, counted]) => ({ at, ...counted })).toSorted((a, b) => a.at - b.at)
    return { total: sumOfTraffic(minutes), minutes: minutes.filter(({ at }) => at >= since && at > OLDER_MINUTES) }
  }

  firstTraffic(): QueueTime | null {
    const first = Math.min(...this.#queue.traffic.keys())
    return first === Infinity ? null : first
  }

  close(): void {
    // A reader in memory holds no resources.
  }

  #active(): Recipient[] {
    const all = [...this.#queue.messages.values()].flatMap(({ recipients }) => recipients)
    return all.filter(({ state }) => state === 'waiting' || state === 'leased')
  }
}

function present(held: HeldMessage, queue: MemoryQueue): MessageDetails {
  const { message, forcedExpire, warnings, recipients, history } = held
  const why = held.placement === 'corrupt' ? held.why : undefined
  return {
    message,
    queue: queueOf(held, queue),
    forcedExpire,
    why,
    deletedAt: restorableSince(held.deletedAt),
    warnings,
    recipients: recipients.map(snapshot),
    history: [...history],
  }
}

/** A message paired with one of its live recipients. A filter's recipient conditions must all hold for the same recipient. */
interface Candidate {
  readonly message: Message
  readonly queue: QueueName | 'trash'
  readonly recipient: Recipient
}

type Condition<Value> = (value: Value, candidate: Candidate) => boolean

const CONDITIONS: { readonly [Key in keyof QueueFilter]: Condition<NonNullable<QueueFilter[Key]>> } = {
  queueId: (queueId, { message }) => {
    const parsed = parseQueueId(queueId)
    return parsed?.row === message.id && parsed.createdAt === message.createdAt
  },
  sender: (pattern, { message }) => addressMatcher(pattern)(message.sender),
  recipient: (pattern, { recipient }) => addressMatcher(pattern)(recipient.address),
  destination: (pattern, { recipient }) => matchesPattern(pattern, recipient.destination),
  queue: (wanted, { queue }) => queue === wanted,
  class: (name, { message }) => message.class === name,
  arrivedAfter: (begin, { message }) => message.arrivedAt >= begin,
  arrivedBefore: (end, { message }) => message.arrivedAt < end,
  olderThan: (limit, { message }) => message.arrivedAt < limit,
  youngerThan: (limit, { message }) => message.arrivedAt > limit,
  expiresWithin: (end, { recipient }) => recipient.state === 'waiting' && recipient.expiresAt < end,
  status: (pattern, { recipient: { last } }) => last !== null && matchesStatus(pattern, last),
  attemptsOver: (limit, { recipient }) => recipient.attempts > limit,
  reply: (text, { recipient: { last } }) => last !== null && matchesReply(text, last),
}

function holds<Key extends keyof QueueFilter>(key: Key, filter: Pick<QueueFilter, Key>, candidate: Candidate): boolean {
  const value = filter[key]
  return value === null || CONDITIONS[key](value, candidate)
}

function matches(filter: QueueFilter, { message, recipients }: HeldMessage, queue: QueueName | 'trash'): boolean {
  const conditions = conditionsIn(filter)
  if (queue === 'trash' && filter.queue === null) return false
  return recipients.some((recipient) => isLive(recipient) && conditions.every((key) => holds(key, filter, { message, queue, recipient })))
}
