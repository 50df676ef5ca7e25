/**
 * The QueueStore's promises in plain maps: for worlds that need no disk, and to be read. Each method runs to its end
 * in one turn, which makes it the transaction that the port promises.
 */
import type { Instant } from '../../mail/clock.ts'
import { applyOperation, depart } from './operations.ts'
import { emptyQueue, isKept, isLive, snapshot, type HeldMessage, type HeldRecipient, type MemoryQueue } from './held.ts'
import { MemoryReader } from './reader.ts'
import { enter, lease, settleOne } from './recipient.ts'
import { setAside, takeUp, type TakenUp } from './recovery.ts'
import { messageOf, packRequests, type DestinationName, recipientId, type Lease, type MessageId, type RecipientId } from '../message.ts'
import type { QueueReader } from '../reader.ts'
import type {
  AuditId,
  AuditRecord,
  Claim,
  DestinationDue,
  DestinationRecord,
  IndebtedMessage,
  Move,
  NewMessage,
  MessageOperation,
  QueueStore,
  Report,
  Settlement,
  SettleResult,
} from '../store.ts'
import { cut } from '../chunks.ts'

/** Opens an empty queue, or takes one up as its last owner left it; says what it found then. */
export function openMemoryStore(queue: MemoryQueue = emptyQueue()): {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly opened: TakenUp
} {
  const opened = takeUp(queue)
  return { store: new MemoryStore(queue, opened.lastId), reader: new MemoryReader(queue), opened }
}

class MemoryStore implements QueueStore {
  readonly #queue: MemoryQueue
  #lastId: MessageId

  constructor(queue: MemoryQueue, lastId: MessageId) {
    this.#queue = queue
    this.#lastId = lastId
  }

  nextId(): MessageId {
    return ++this.#lastId
  }

  // --- coming in

  async stage(body: number, from: number, chunks: readonly Uint8Array[]): Promise<void> {
    const kept = this.#queue.bodies.get(body) ?? []
    if (kept.length !== from) throw new Error(`content ${body} goes on at part ${kept.length}, not at ${from}`)
    this.#queue.staged.add(body)
    this.#queue.bodies.set(body, [...kept, ...cut(chunks)])
  }

  async unstage(body: number): Promise<void> {
    if (this.#queue.staged.delete(body)) this.#queue.bodies.delete(body)
  }

  async enqueue(entry: NewMessage): Promise<void> {
    this.#enter(entry)
  }

  async readBody(body: number, index: number): Promise<Uint8Array | undefined> {
    return this.#queue.bodies.get(body)?.[index]?.slice()
  }

  #enter({ message, recipients, content, hold = false }: NewMessage): void {
    if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
    if (this.#queue.messages.has(message.id)) throw new Error(`message ${message.id} is queued already`)
    const entered = recipients.map((one, position) => enter(recipientId(message.id, position), one, hold))
    const staged = this.#queue.staged.delete(message.body) ? (this.#queue.bodies.get(message.body) ?? []) : []
    this.#queue.bodies.set(message.body, [...staged, ...cut(content)])
    this.#queue.messages.set(message.id, {
      message,
      placement: hold ? 'hold' : 'queued',
      deletedAt: null,
      forcedExpire: false,
      warnings: 0,
      warnAt: null,
      recipients: entered,
      history: [],
    })
  }

  // --- leases

  async claimDue({ destination, now, limit, recipientLimit }: Claim) {
    const there = this.#waiting((one) => one.destination === destination && one.starts < 2)
    const due = there.filter((one) => one.dueAt <= now).slice(0, limit)
    const requests = packRequests(
      due.map((one) => this.#lease(one)),
      recipientLimit,
    )
    return { requests, nextDueAt: there[due.length]?.dueAt ?? null }
  }

  async claimSuspect(now: Instant) {
    const [suspect] = this.#waiting((one) => one.starts >= 2 && one.dueAt <= now)
    return suspect === undefined ? undefined : packRequests([this.#lease(suspect)], 1)[0]
  }

  async claimExpired(now: Instant, limit: number, except: readonly DestinationName[] = []) {
    const over = this.#waiting((one) => one.expiresAt <= now && !except.includes(one.destination)).toSorted(
      (a, b) => a.expiresAt - b.expiresAt || a.id - b.id,
    )
    return packRequests(
      over.slice(0, limit).map((one) => this.#lease(one)),
      0,
    )
  }

  async giveBack(recipients: readonly RecipientId[]): Promise<void> {
    for (const id of recipients) {
      const [held, one] = this.#find(id)
      if (held === undefined || one?.state !== 'leased') continue
      one.state = held.placement === 'queued' ? 'waiting' : 'parked'
      one.starts = 0
    }
  }

  /** Earliest due first. */
  #waiting(wanted: (recipient: HeldRecipient) => boolean): HeldRecipient[] {
    const found: HeldRecipient[] = []
    for (const { recipients } of this.#queue.messages.values()) {
      for (const one of recipients) if (one.state === 'waiting' && wanted(one)) found.push(one)
    }
    return found.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id)
  }

  #lease(one: HeldRecipient): Lease {
    const held = this.#queue.messages.get(messageOf(one.id))
    if (held === undefined) throw new Error(`recipient ${one.id} belongs to no message`)
    return lease(one, held)
  }

  // --- outcomes

  async settle({ message, recipients, attempts, warnAt }: Settlement): Promise<SettleResult> {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, indebted: false }
    const applied = new Set<RecipientId>()
    for (const settled of recipients) {
      const one = held.recipients.find(({ id }) => id === settled.recipient)
      if (one?.state !== 'leased') continue
      applied.add(one.id)
      settleOne(one, settled, held)
    }
    held.history.push(...attempts.filter((attempt) => applied.has(attempt.recipient)))
    if (warnAt !== undefined && applied.size > 0) held.warnAt = warnAt
    return { removed: this.#leaves(held), indebted: held.recipients.some((one) => one.debt !== undefined) }
  }

  async quarantine(message: MessageId, _why: string): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held !== undefined) setAside(held)
  }

  // --- debts

  async indebted(after: MessageId, limit: number): Promise<IndebtedMessage[]> {
    const owing = [...this.#queue.messages.values()].filter((held) => held.message.id > after && held.recipients.some(owes))
    return owing
      .toSorted((a, b) => a.message.id - b.message.id)
      .slice(0, limit)
      .map((held) => told(held, owes))
  }

  async debtsOf(message: MessageId): Promise<IndebtedMessage | undefined> {
    const held = this.#queue.messages.get(message)
    if (held?.recipients.some(owes) !== true) return undefined
    return told(held, held.recipients.some(({ debt }) => debt === 'delay') ? (one) => owes(one) || isLive(one) : owes)
  }

  async claimWarnings(now: Instant, limit: number): Promise<IndebtedMessage[]> {
    const due = this.#toBeWarned().filter(({ at }) => at <= now)
    return due
      .toSorted((a, b) => a.at - b.at || a.held.message.id - b.held.message.id)
      .slice(0, limit)
      .map(({ held }) => told(held, isLive))
  }

  async postponeWarning(message: MessageId, warnAt: Instant | null): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held !== undefined) held.warnAt = warnAt
  }

  async oweDelay(message: MessageId, recipients: readonly RecipientId[]): Promise<void> {
    for (const one of this.#queue.messages.get(message)?.recipients ?? []) {
      if (recipients.includes(one.id) && isLive(one)) one.debt ??= 'delay'
    }
  }

  async report({ message, paid, late, notices, warnings, warnAt }: Report) {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, entered: false }
    const standing = held.recipients.filter((one) => paid.some(({ recipient, debt }) => recipient === one.id && debt === one.debt))
    const areLate = held.recipients.filter((one) => isLive(one) && late.includes(one.id))
    const isEcho = paid.length === 0 && warnings <= held.warnings
    if (isEcho || standing.length < paid.length || areLate.length < late.length) return { removed: false, entered: false }
    for (const notice of notices) this.#enter(notice)
    for (const one of standing) delete one.debt
    held.warnings = warnings
    held.warnAt = warnAt
    return { removed: this.#leaves(held), entered: true }
  }

  #toBeWarned(): { readonly held: HeldMessage; readonly at: Instant }[] {
    return [...this.#queue.messages.values()].flatMap((held) =>
      held.placement === 'queued' && held.warnAt !== null && held.recipients.some(isLive) ? [{ held, at: held.warnAt }] : [],
    )
  }

  // --- the scheduler's view

  async destinationsDue(): Promise<DestinationDue[]> {
    const earliest = new Map<string, DestinationDue>()
    for (const { destination, dueAt } of this.#waiting((one) => one.starts < 2)) {
      if (!earliest.has(destination)) earliest.set(destination, { destination, dueAt })
    }
    return [...earliest.values()].toSorted((a, b) => Buffer.compare(Buffer.from(a.destination), Buffer.from(b.destination)))
  }

  async nextDeadlines() {
    const expiries = this.#waiting(() => true).map((one) => one.expiresAt)
    return { expiresAt: least(expiries), warnAt: least(this.#toBeWarned().map(({ at }) => at)) }
  }

  async destinations() {
    return [...this.#queue.destinations.values()]
  }

  async saveDestination(record: DestinationRecord): Promise<void> {
    const ordinary = record.deadUntil === null && record.probeInterval === null && record.suspendedBy === null
    if (ordinary) this.#queue.destinations.delete(record.name)
    else this.#queue.destinations.set(record.name, record)
  }

  // --- operators and housekeeping

  async operate(operations: readonly MessageOperation[], auditedAs?: AuditId) {
    const results = operations.map((one) => applyOperation(this.#queue, one))
    const line = auditedAs === undefined ? undefined : this.#queue.audit[auditedAs - 1]
    if (line !== undefined) line.changed += results.filter(({ changed }) => changed).length
    return results
  }

  async move(moves: readonly Move[]) {
    for (const { recipient, destination, expiresAt } of moves) {
      const one = this.#queue.messages.get(messageOf(recipient))?.recipients.find(({ id }) => id === recipient)
      if (one?.state === 'waiting' || one?.state === 'parked') {
        Object.assign(one, { destination, expiresAt, dueAt: Math.min(one.dueAt, expiresAt) })
      }
    }
    const touched = new Set(moves.map(({ destination }) => destination))
    return (await this.destinationsDue()).filter(({ destination }) => touched.has(destination))
  }

  async audit(record: AuditRecord): Promise<AuditId> {
    return this.#queue.audit.push({ ...record })
  }

  async prune({ historyBefore, historyCount, trashBefore }: Parameters<QueueStore['prune']>[0]) {
    for (const held of this.#queue.messages.values()) {
      if (held.deletedAt === null || held.deletedAt >= trashBefore) continue
      applyOperation(this.#queue, { message: held.message.id, operation: { kind: 'delete', now: held.deletedAt, purge: true } })
    }
    for (const [id, { leftAt = 0 }] of this.#queue.departed) {
      if (leftAt >= historyBefore && this.#queue.departed.size <= historyCount) break
      this.#queue.departed.delete(id)
    }
    return { more: false }
  }

  async ping(): Promise<void> {}

  async freeSpace(): Promise<number> {
    return Infinity
  }

  async close(): Promise<void> {}

  #find(id: RecipientId): [HeldMessage | undefined, HeldRecipient | undefined] {
    const held = this.#queue.messages.get(messageOf(id))
    return [held, held?.recipients.find((one) => one.id === id)]
  }

  #leaves(held: HeldMessage): boolean {
    if (isKept(held)) return false
    depart(this.#queue, held)
    return true
  }
}

const owes = ({ debt }: HeldRecipient): boolean => debt !== undefined

const told = ({ message, warnings, recipients }: HeldMessage, wanted: (recipient: HeldRecipient) => boolean): IndebtedMessage => ({
  message,
  warnings,
  recipients: recipients.filter(wanted).map(snapshot),
})

const least = (times: readonly Instant[]): Instant | null =>
  times.reduce<Instant | null>((min, at) => (min === null || at < min ? at : min), null)
