/**
 * Implements MoveStore over a queue in memory with a sole owner. A message that is out of the queue, or not yet in it, is in a map of its
 * own.
 */
import { isLive, queueIdOf, type MessageId } from '../../src/mail/message.ts'
import type { QueueTime } from '../../src/system/clock.ts'
import type { MessageDetails } from '../../src/store/queue-reader.ts'
import {
  liveRecipients,
  movedRecord,
  RECIPIENTS_PER_ROUND,
  renumbered,
  type Arrival,
  type MovedMessage,
  type MovedRecords,
  type MoveSelection,
  type MoveStore,
  type MoveTarget,
  type Origin,
  type QueueIdentity,
} from '../../src/store/move-store.ts'
import type { AuditId } from '../../src/store/records/audit-log.ts'
import type { DestinationRecord } from '../../src/store/queue-store.ts'
import type { DestinationDue } from '../../src/store/message-operation.ts'
import { COUNT_CHANGED, TAKE_ENTRY } from '../../src/store/records/operation-round.ts'
import { takeAccess } from '../../src/store/records/access-entry.ts'
import { ACCESS_TOKENS } from '../../src/store/records/access-token.ts'
import { takeGrant } from '../../src/store/records/kept-grant.ts'
import { takeSuppression } from '../../src/store/records/suppression-entry.ts'
import { takeSuspension } from '../../src/store/records/provider-state.ts'
import { inOrder, newMessage, noteTraffic, type HeldMessage, type MemoryQueue } from '../../src/store/memory/queue-state.ts'

export class MemoryMoves implements MoveStore {
  readonly #queue: MemoryQueue

  constructor(queue: MemoryQueue) {
    this.#queue = queue
  }

  async moveState() {
    const { identity, movedTo, moving, messages } = this.#queue
    return { identity, movedTo, leaving: moving.size, arriving: this.#arriving().length, last: Math.max(0, ...messages.keys()) }
  }

  async claimMoves() {
    // The queue has one owner.
  }

  // --- source

  async beginMove({ target, after, through, limit, withNoticesDue }: MoveSelection) {
    const messages: MovedMessage[] = []
    let [recipients, last] = [0, after]
    for (const held of inOrder(this.#queue).filter(({ message: { id } }) => id > after && id <= through)) {
      if (messages.length === limit || recipients >= RECIPIENTS_PER_ROUND) return { messages, unreadable: [], next: last }
      last = held.message.id
      const stays = held.recipients.some((one) => one.state === 'leased' || (one.noticeDue !== undefined && !withNoticesDue))
      if (stays) continue
      messages.push(this.#takeOut(held, target))
      recipients += held.recipients.length
    }
    return { messages, unreadable: [], next: null }
  }

  async leaving(limit: number) {
    return [...this.#queue.moving.values()].toSorted((a, b) => a.moved.message.id - b.moved.message.id).slice(0, limit)
  }

  async finishMove(finished: readonly { readonly id: MessageId; readonly as: string }[], at: QueueTime, auditedAs: AuditId | null) {
    for (const { id, as } of finished) {
      const found = this.#queue.moving.get(id)
      if (found === undefined) continue
      const { history, ...record } = movedRecord(found.moved, { name: found.target.name, as, at })
      this.#addHistory(id, { ...record, history: [...history], queue: 'gone', leftAt: at })
      this.#queue.moving.delete(id)
      this.#forgetContent(found.moved.message.contentId)
      if (auditedAs !== null) COUNT_CHANGED.held(this.#queue.records, auditedAs, 1)
    }
  }

  async undoMove(messages: readonly MessageId[]) {
    const entered = messages.flatMap((id) => {
      const found = this.#queue.moving.get(id)
      this.#queue.moving.delete(id)
      return found === undefined ? [] : [this.#enter(found.moved)]
    })
    return this.#due(entered)
  }

  async historyAfter(seq: number, limit: number) {
    const rows = [...this.#queue.history].filter(([, row]) => row.seq > seq).toSorted(([, a], [, b]) => a.seq - b.seq)
    return rows.slice(0, limit).map(([message, row]) => ({ seq: row.seq, message, leftAt: row.details.leftAt ?? 0, record: row.details }))
  }

  async markMoved(name: string) {
    const { messages, moving } = this.#queue
    if (messages.size > 0 || moving.size > 0 || this.#arriving().length > 0) return false
    this.#queue.movedTo = name
    return true
  }

  #takeOut(held: HeldMessage, target: MoveTarget): MovedMessage {
    const { home: _, band: ___, recipients, history, ...rest } = structuredClone(held)
    const kept = recipients.map(({ leasedBy: __, ...one }) => one)
    const moved = { ...rest, why: null, recipients: kept, attempts: history }
    this.#queue.messages.delete(held.message.id)
    this.#queue.moving.set(held.message.id, { target, moved })
    noteTraffic(this.#queue, { kind: 'accepted', at: held.message.arrivedAt, recipients: -liveRecipients(moved) })
    return moved
  }

  #forgetContent(content: number): void {
    const { messages, moving, bodies } = this.#queue
    const others = [...messages.values(), ...[...moving.values()].map(({ moved }) => moved)]
    if (!others.some(({ message }) => message.contentId === content)) bodies.delete(content)
  }

  // --- target

  async keepIds(_source: QueueIdentity, through: MessageId) {
    this.#queue.lastId = Math.max(this.#queue.lastId, through)
  }

  async takeMoved(source: QueueIdentity, arrivals: readonly Arrival[], destinations: readonly DestinationRecord[]) {
    this.#queue.movedTo = null
    for (const record of destinations) this.#addDestination(record)
    return arrivals.map((arrival) => {
      const known = this.#originOf(source, arrival.origin)
      if (known === undefined) return this.#take(source, arrival)
      if (arrival.staged !== null && this.#queue.staged.delete(arrival.staged)) this.#queue.bodies.delete(arrival.staged)
      return known.queueId
    })
  }

  async originsOf(source: QueueIdentity, origins: readonly Origin[]) {
    return origins.map((origin) => this.#originOf(source, origin)?.queueId ?? null)
  }

  async admitMoved(source: QueueIdentity, limit: number, now: QueueTime) {
    const entered = this.#arriving()
      .filter((one) => one.source === source)
      .slice(0, limit)
      .flatMap((one) => {
        const { moved } = one
        one.moved = null
        one.admittedAt = now
        return moved === null ? [] : [this.#enter(moved)]
      })
    return { messages: entered.map(({ message }) => message.id), woken: this.#due(entered) }
  }

  async takeRecords(
    source: QueueIdentity,
    { history, audit, destinations, access, tokens, grants, suspensions, suppressions, subscriptions }: MovedRecords,
  ) {
    const taken = { ...(await this.recordsTaken(source)) }
    for (const { seq, message, leftAt, record } of history.filter((one) => one.seq > taken.history)) {
      this.#addHistory(message, { ...record, queue: 'gone', leftAt })
      taken.history = seq
    }
    for (const entry of audit.filter((one) => one.id > taken.audit)) {
      TAKE_ENTRY.held(this.#queue.records, entry)
      taken.audit = entry.id
    }
    for (const record of destinations) this.#addDestination(record)
    const { records } = this.#queue
    for (const entry of access) takeAccess.held(records, entry)
    for (const token of tokens) ACCESS_TOKENS.add.held(records, token)
    for (const grant of grants) takeGrant.held(records, grant)
    for (const one of suppressions) takeSuppression.held(records, one)
    for (const one of suspensions) takeSuspension.held(records, one)
    for (const one of subscriptions) this.#queue.outbox.take(one)
    this.#queue.recordsTaken.set(source, taken)
  }

  async recordsTaken(source: QueueIdentity) {
    return this.#queue.recordsTaken.get(source) ?? { history: 0, audit: 0 }
  }

  #arriving() {
    return [...this.#queue.origins.values()].filter(({ moved }) => moved !== null).toSorted((a, b) => a.id - b.id)
  }

  #originOf(source: QueueIdentity, origin: Origin) {
    return this.#queue.origins.get(keyOf(source, origin))
  }

  #take(source: QueueIdentity, { origin, moved, staged, content }: Arrival): string {
    const queue = this.#queue
    const id = this.#isFree(origin.id) ? origin.id : ++queue.lastId
    queue.lastId = Math.max(queue.lastId, id)
    const message = { ...moved.message, id, contentId: staged ?? id }
    const queueId = queueIdOf(message)
    const kept = staged !== null && queue.staged.delete(staged) ? (queue.bodies.get(staged) ?? []) : []
    queue.bodies.set(message.contentId, [...kept, ...content])
    queue.origins.set(keyOf(source, origin), { id, source, queueId, moved: renumbered(structuredClone(moved), message), admittedAt: null })
    return queueId
  }

  #isFree(id: MessageId): boolean {
    const { messages, history, bodies, moving, origins } = this.#queue
    return ![messages, history, bodies, moving].some((map) => map.has(id)) && ![...origins.values()].some((one) => one.id === id)
  }

  #addDestination(record: DestinationRecord): void {
    if (!this.#queue.destinations.has(record.name)) this.#queue.destinations.set(record.name, record)
  }

  // --- both

  #addHistory(message: MessageId, details: MessageDetails): void {
    this.#queue.history.set(message, { seq: ++this.#queue.departures, details })
  }

  #enter(moved: MovedMessage): HeldMessage {
    const { message, placement, deletedAt, forcedExpire, warnings, warnAt, recipients, attempts } = moved
    const held = newMessage(
      message,
      recipients.map((one) => ({ ...one, leasedBy: null })),
      placement,
    )
    held.history.push(...attempts)
    this.#queue.messages.set(message.id, Object.assign(held, { deletedAt, forcedExpire, warnings, warnAt }))
    noteTraffic(this.#queue, { kind: 'accepted', at: message.arrivedAt, recipients: liveRecipients(moved) })
    return held
  }

  #due(entered: readonly HeldMessage[]): DestinationDue[] {
    const touched = new Set(entered.flatMap(({ recipients }) => recipients.filter(isWaiting).map(({ destination }) => destination)))
    const all = [...this.#queue.messages.values()].flatMap(({ recipients }) => recipients.filter(isWaiting))
    return [...touched].map((destination) => ({
      destination,
      dueAt: Math.min(...all.filter((one) => one.destination === destination).map(({ dueAt }) => dueAt)),
    }))
  }
}

const isWaiting = (one: HeldMessage['recipients'][number]): boolean => isLive(one) && one.state === 'waiting'

const keyOf = (source: QueueIdentity, { id, createdAt }: Origin): string => `${source} ${id} ${createdAt}`
