/**
 * Implements QueueStore with maps, for tests without a disk and as a readable reference. Each method runs in one turn of the
 * event loop, so it is atomic as the port requires.
 */
import { NO_CLASS, type Band } from '../../config/values/mail-classes.ts'
import type { QueueTime } from '../../system/clock.ts'
import { applyOperation, depart } from './operate.ts'
import {
  emptyQueue,
  isKept,
  newMessage,
  noteTraffic,
  snapshot,
  type HeldMessage,
  type HeldRecipient,
  type MemoryQueue,
} from './queue-state.ts'
import { MemoryReader } from './memory-reader.ts'
import { QueueOwner } from './queue-owner.ts'
import { KEEP_REQUEST, repeated, type Operated } from '../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND } from '../records/operation-round.ts'
import type { OperationRound } from '../records/audit-log.ts'
import { formerText } from '../former-times.ts'
import { formerOf } from '../decisions/operation-changes.ts'
import { settledMail, stateAt } from '../decisions/settlement.ts'
import type { DepartedMail } from '../returned-mail.ts'
import { departedMailOf } from './held-departures.ts'
import { intercepted } from '../methods.ts'
import { directReader } from '../reader-methods.ts'
import { enter, lease, settleOne } from './recipient-states.ts'
import { setAside, recover, type RecoveryReport } from './recovery.ts'
import {
  isLive,
  messageOf,
  packRequests,
  type DestinationName,
  recipientId,
  STARTS_UNTIL_SUSPECT,
  type LeasedMail,
  type LeaseTerms,
  type MessageId,
  type OwnerId,
  type RecipientId,
} from '../../mail/message.ts'
import type { NewEvent } from '../../events/kept-event.ts'
import { MemoryEvents } from './memory-events.ts'
import { joinProvider, type ProviderChange } from '../records/provider-state.ts'
import { CHARGE_QUOTAS } from '../records/quota-count.ts'
import { KEEP_SESSION } from '../records/stored-session.ts'
import { recordCall, recordsOver, type SentRecordCall } from '../records/records.ts'
import type { QueueReader } from '../queue-reader.ts'
import { countsAs } from '../share-counts.ts'
import type { StoreUpkeep } from '../store-upkeep.ts'
import { MemoryShares } from './memory-shares.ts'
import { upkeepOf } from './memory-upkeep.ts'
import type { QueueTally } from '../counts/queue-tally.ts'
import { tallyOf } from './memory-tally.ts'
import type { NewMessage } from '../new-message.ts'
import {
  Fenced,
  StoreUnavailable,
  type Claim,
  type DestinationRecord,
  type QueueStore,
  type ScheduledMail,
  type WaitingRecipient,
  type WaitingSlice,
} from '../queue-store.ts'
import type { DestinationDue, Move, MessageOperation } from '../message-operation.ts'
import type { MessageWithNoticesDue, Report, Settlement, SettleResult } from '../recorded-outcomes.ts'
import type { OutboxStore } from '../outbox-store.ts'
import { accepted } from '../decisions/series-notes.ts'
import { assertChunks } from '../chunks.ts'
import { MOVED_AWAY } from '../move-store.ts'

/** Opens an empty queue, or recovers an existing one and returns the report of the recovery. */
export function openMemoryStore(queue: MemoryQueue = emptyQueue()): {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly recovery: RecoveryReport
} {
  const recovery = recover(queue)
  const id = ++queue.openings
  queue.nodes.clear()
  queue.nodes.set(id, { id, name: '', program: '', settings: '', draining: false, beat: 0, beatAt: 0, joinedAt: 0, hint: () => undefined })
  return { ...openFor(queue, new QueueOwner(queue, id, 'sole')), recovery }
}

/** Opens a queue for one of several nodes, which has joined it. */
export const openShared = (
  queue: MemoryQueue,
  node: OwnerId,
  joined: () => void = () => undefined,
): { readonly store: QueueStore; readonly reader: QueueReader } => openFor(queue, new QueueOwner(queue, node, 'shared', joined))

function openFor(queue: MemoryQueue, owner: QueueOwner): { readonly store: QueueStore; readonly reader: QueueReader } {
  return { store: fenced(queue, owner), reader: directReader(new MemoryReader(queue)) }
}

/** The store, whose transactions reject once the queue was taken from its owner. */
function fenced(queue: MemoryQueue, owner: QueueOwner): QueueStore {
  const store = new MemoryStore(queue, owner)
  return intercepted<QueueStore>(store, (_method, _args, perform) => {
    if (owner.isFenced) return Promise.reject(new Fenced(`node ${owner.id} was taken over`))
    return queue.countsShares ? perform().finally(() => store.shares.tell()) : perform()
  })
}

class MemoryStore implements QueueStore {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #terms: LeaseTerms
  readonly outbox: OutboxStore
  readonly shares: MemoryShares
  readonly upkeep: StoreUpkeep
  readonly departed: DepartedMail
  readonly records = recordsOver(async (...call) => this.#record(call))

  constructor(queue: MemoryQueue, owner: QueueOwner) {
    this.#queue = queue
    this.#owner = owner
    this.outbox = new MemoryEvents(queue, owner)
    this.shares = new MemoryShares(queue)
    this.upkeep = upkeepOf(queue)
    this.departed = departedMailOf(queue, (entry) => this.#enter(entry, this.#queue.bodies.get(entry.message.contentId)))
    this.#terms = { owner: owner.id, until: Infinity }
  }

  nextId(): MessageId {
    return ++this.#queue.lastId
  }

  async nextIds(count: number): Promise<readonly MessageId[]> {
    return Array.from({ length: count }, () => this.nextId())
  }

  leaseTerms(): LeaseTerms {
    return this.#terms
  }

  // --- records

  async joinProvider(destination: DestinationName, provider: string | null): Promise<void> {
    joinProvider.held(this.#queue.records, destination, provider)
    // The mail may be that of another owner now.
    const waiting = [...this.#queue.messages.values()].flatMap(({ recipients }) =>
      recipients.filter((one) => one.destination === destination && one.state === 'waiting').map(({ dueAt }) => dueAt),
    )
    if (waiting.length > 0) this.#owner.due({ destination, dueAt: Math.min(...waiting), revive: false })
    const record = this.#queue.destinations.get(destination)
    if (record !== undefined) this.#owner.destination(record)
    this.#owner.joined()
  }

  #record(sent: SentRecordCall): unknown {
    const call = recordCall(sent)
    const answer = call.held({ ...this.#queue.records, caller: { owner: this.#owner.id, name: null } }, ...sent[2])
    if (call.tells !== undefined) this.#owner.provider(sent[2][0] as ProviderChange)
    return answer
  }

  // --- intake

  async stage(body: number, from: number, chunks: readonly Uint8Array[], keeps = false): Promise<void> {
    const kept = this.#queue.bodies.get(body) ?? []
    if (kept.length !== from) throw new Error(`content ${body} continues at chunk ${kept.length}, not at ${from}`)
    this.#queue.staged.set(body, this.#owner.id)
    assertChunks(chunks)
    this.#queue.bodies.set(body, [...kept, ...(keeps ? chunks.map(copied) : chunks)])
  }

  async unstage(body: number): Promise<void> {
    if (this.#queue.staged.delete(body)) this.#queue.bodies.delete(body)
  }

  async enqueue(entry: NewMessage): Promise<void> {
    this.#enter(entry)
  }

  async maildropFiles(): Promise<readonly string[]> {
    return [...this.#queue.maildropFiles].toSorted()
  }

  async forgetMaildropFiles(files: readonly string[]): Promise<void> {
    for (const file of files) this.#queue.maildropFiles.delete(file)
  }

  async readChunk(body: number, index: number): Promise<Uint8Array | undefined> {
    const chunk = this.#queue.bodies.get(body)?.[index]
    return chunk === undefined ? undefined : new Uint8Array(chunk)
  }

  #enter(
    {
      message,
      band = NO_CLASS,
      recipients,
      content,
      givesContent,
      hold = false,
      maildropFile,
      request,
      warnings = 0,
      charges,
      events,
    }: NewMessage,
    kept?: Uint8Array[],
  ): void {
    if (this.#queue.movedTo !== null) throw new StoreUnavailable(MOVED_AWAY)
    if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
    if (this.#queue.messages.has(message.id)) throw new Error(`message ${message.id} is queued already`)
    if (maildropFile !== undefined && this.#queue.maildropFiles.has(maildropFile)) throw new Error(`${maildropFile} is queued already`)
    assertChunks(content)
    if (request !== undefined && !KEEP_REQUEST.held(this.#queue.records, { ...request, at: message.createdAt })) throw repeated(request.key)
    const entered = recipients.map((one, position) => enter(recipientId(message.id, position), one, hold, this.#owner.id))
    const staged = this.#queue.staged.delete(message.contentId) ? (this.#queue.bodies.get(message.contentId) ?? []) : []
    this.#queue.bodies.set(message.contentId, kept ?? [...staged, ...(givesContent === true ? content : content.map(copied))])
    if (maildropFile !== undefined) this.#queue.maildropFiles.add(maildropFile)
    noteTraffic(this.#queue, ...accepted(message, recipients))
    if (charges !== undefined) CHARGE_QUOTAS.held({ ...this.#queue.records, caller: { owner: this.#owner.id, name: null } }, charges)
    this.#queue.messages.set(message.id, { ...newMessage(message, entered, hold ? 'hold' : 'queued'), band, warnings })
    for (const one of entered) this.#tellDue(one)
    this.#queue.outbox.keep(events)
  }

  // --- leases

  async claimDue({ destination, now, bands, recipientLimit }: Claim) {
    this.#queue.outbox.passed(now)
    const there = this.#waiting((one) => one.destination === destination && one.deliveryStarts < STARTS_UNTIL_SUSPECT)
    const next: { band: Band; dueAt: QueueTime }[] = []
    const due = bands.flatMap(({ band, limit, from = 0, recipients }) => {
      if (recipients !== undefined)
        return there.filter((one) => this.#bandOf(one) === band && one.dueAt <= now && recipients.includes(one.id))
      const ofBand = there.filter((one) => this.#bandOf(one) === band && one.dueAt >= from)
      const claimed = ofBand.filter((one) => one.dueAt <= now).slice(0, limit)
      const left = ofBand[claimed.length]
      if (left !== undefined) next.push({ band, dueAt: left.dueAt })
      return claimed
    })
    const leases = due.map((one) => this.#lease(one))
    return { requests: packRequests(leases, this.#terms, recipientLimit), next }
  }

  async waitingAt({ destination, band, after, limit }: WaitingSlice): Promise<readonly WaitingRecipient[]> {
    const isBehind = ({ dueAt, id }: HeldRecipient): boolean => dueAt > after.dueAt || (dueAt === after.dueAt && id > after.id)
    const there = this.#waiting((one) => one.destination === destination && one.deliveryStarts < STARTS_UNTIL_SUSPECT && isBehind(one))
    const ofBand = there.filter((one) => this.#bandOf(one) === band).slice(0, limit)
    return ofBand.map(({ id, dueAt }) => ({ id, dueAt, share: this.#queue.messages.get(messageOf(id))?.message.share ?? null }))
  }

  #bandOf({ id }: { readonly id: RecipientId }): Band {
    return this.#queue.messages.get(messageOf(id))?.band ?? NO_CLASS
  }

  async claimSuspect(now: QueueTime) {
    this.#queue.outbox.passed(now)
    const [suspect] = this.#waiting((one) => one.deliveryStarts >= STARTS_UNTIL_SUSPECT && one.dueAt <= now)
    return suspect === undefined ? undefined : packRequests([this.#lease(suspect)], this.#terms, 1)[0]
  }

  async claimExpired(now: QueueTime, limit: number, except: readonly DestinationName[] = []) {
    this.#queue.outbox.passed(now)
    const over = this.#waiting((one) => one.expiresAt <= now && !except.includes(one.destination)).toSorted(
      (a, b) => a.expiresAt - b.expiresAt || a.id - b.id,
    )
    return packRequests(
      over.slice(0, limit).map((one) => this.#lease(one)),
      this.#terms,
      0,
    )
  }

  async giveBack(recipients: readonly RecipientId[], owner: OwnerId): Promise<void> {
    for (const id of recipients) {
      const [held, one] = this.#find(id)
      if (held === undefined || !this.#isLease(one, owner)) continue
      one.leasedBy = null
      one.state = stateAt(held.placement)
      one.deliveryStarts = 0
      this.#tellDue(one)
    }
  }

  /** Waiting recipients at own destinations that satisfy `wanted`, earliest due first. */
  #waiting(wanted: (recipient: HeldRecipient) => boolean): HeldRecipient[] {
    const found: HeldRecipient[] = []
    for (const { recipients } of this.#queue.messages.values()) {
      for (const one of recipients) if (one.state === 'waiting' && wanted(one) && this.#owner.owns(one.destination)) found.push(one)
    }
    return found.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id)
  }

  #lease(one: HeldRecipient): LeasedMail {
    const held = this.#queue.messages.get(messageOf(one.id))
    if (held === undefined) throw new Error(`recipient ${one.id} belongs to no message`)
    return lease(one, held, this.#owner.id)
  }

  // --- outcomes

  async settle({ owner, message, recipients, attempts, warnAt, events = [], sessions = [], keepUntil }: Settlement): Promise<SettleResult> {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, noticeDue: false }
    const applied = new Set<RecipientId>()
    for (const settled of recipients) {
      const one = held.recipients.find(({ id }) => id === settled.recipient)
      if (!this.#isLease(one, owner)) continue
      applied.add(one.id)
      settleOne(one, settled, held)
      this.#tellDue(one)
    }
    const made = attempts.filter((attempt) => applied.has(attempt.recipient))
    const [path] = held.recipients.filter(({ id }) => applied.has(id))
    const settled = recipients.filter(({ recipient }) => applied.has(recipient))
    if (path !== undefined)
      noteTraffic(this.#queue, ...settledMail({ sender: held.message.sender, destination: path.destination }, settled, made))
    held.history.push(...made)
    if (warnAt !== undefined && applied.size > 0) held.warnAt = warnAt
    if (applied.size > 0) for (const one of sessions) KEEP_SESSION.held(this.#queue.records, one)
    this.#queue.outbox.keep(events.filter(({ recipient }) => applied.has(recipient)))
    return { removed: this.#leaves(held, keepUntil), noticeDue: this.#noticeDue(held, warnAt) }
  }

  /** Whether this owner must send a notice. A notice, or the time of a warning, at another owner is reported there. */
  #noticeDue(held: HeldMessage, warnAt: QueueTime | null | undefined): boolean {
    const isDue = held.recipients.some(owes)
    if (isDue || typeof warnAt === 'number') this.#owner.notice(held)
    return isDue && this.#owner.isHome(held)
  }

  async quarantine(message: MessageId, why: string): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held !== undefined) setAside(this.#queue, held, why, (one) => this.#owner.leases(one))
  }

  // --- notices due

  async messagesWithNoticesDue(after: MessageId, limit: number): Promise<MessageWithNoticesDue[]> {
    const owing = [...this.#queue.messages.values()].filter(
      (held) => held.message.id > after && held.recipients.some(owes) && this.#owner.isHome(held),
    )
    return owing
      .toSorted((a, b) => a.message.id - b.message.id)
      .slice(0, limit)
      .map((held) => this.#told(held, owes))
  }

  async noticesDueOf(message: MessageId): Promise<MessageWithNoticesDue | undefined> {
    const held = this.#queue.messages.get(message)
    if (held?.recipients.some(owes) !== true) return undefined
    return this.#told(held, held.recipients.some(({ noticeDue }) => noticeDue === 'delay') ? (one) => owes(one) || isLive(one) : owes)
  }

  async claimWarnings(now: QueueTime, limit: number): Promise<MessageWithNoticesDue[]> {
    this.#queue.outbox.passed(now)
    const due = this.#toBeWarned().filter(({ at }) => at <= now)
    return due
      .toSorted((a, b) => a.at - b.at || a.held.message.id - b.held.message.id)
      .slice(0, limit)
      .map(({ held }) => this.#told(held, isLive))
  }

  async postponeWarning(message: MessageId, warnAt: QueueTime | null): Promise<void> {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return
    held.warnAt = warnAt
    if (warnAt !== null) this.#owner.notice(held)
  }

  async markDelayNoticeDue(message: MessageId, recipients: readonly RecipientId[]): Promise<void> {
    for (const one of this.#queue.messages.get(message)?.recipients ?? []) {
      if (recipients.includes(one.id) && isLive(one)) one.noticeDue ??= 'delay'
    }
  }

  async report({ message, noticesSettled, late, notices, warnings, warnAt, events, keepUntil }: Report) {
    const held = this.#queue.messages.get(message)
    if (held === undefined) return { removed: false, entered: false }
    const stillDue = held.recipients.filter((one) =>
      noticesSettled.some(({ recipient, noticeDue }) => recipient === one.id && noticeDue === one.noticeDue),
    )
    const areLate = held.recipients.filter((one) => isLive(one) && late.includes(one.id))
    const isEcho = noticesSettled.length === 0 && warnings <= held.warnings
    if (isEcho || stillDue.length < noticesSettled.length || areLate.length < late.length) return { removed: false, entered: false }
    for (const notice of notices) this.#enter(notice)
    for (const one of stillDue) delete one.noticeDue
    held.warnings = warnings
    held.warnAt = warnAt
    this.#queue.outbox.keep(events)
    return { removed: this.#leaves(held, keepUntil), entered: true }
  }

  #toBeWarned(): { readonly held: HeldMessage; readonly at: QueueTime }[] {
    return [...this.#queue.messages.values()].flatMap((held) =>
      held.placement === 'queued' && held.warnAt !== null && held.recipients.some(isLive) && this.#owner.isHome(held)
        ? [{ held, at: held.warnAt }]
        : [],
    )
  }

  // --- queries of the scheduler

  async destinationsDue(): Promise<DestinationDue[]> {
    const earliest = new Map<string, DestinationDue>()
    for (const { destination, dueAt } of this.#waiting((one) => one.deliveryStarts < STARTS_UNTIL_SUSPECT)) {
      if (!earliest.has(destination)) earliest.set(destination, { destination, dueAt })
    }
    return [...earliest.values()].toSorted((a, b) => Buffer.compare(Buffer.from(a.destination), Buffer.from(b.destination)))
  }

  async endSchedules(now: QueueTime) {
    const scheduled = [...this.#queue.messages.values()].filter(({ message }) => message.scheduled === true)
    const isOver = ({ message: { notBefore = 0 } }: HeldMessage): boolean => notBefore <= now
    const over = scheduled.filter(isOver)
    for (const held of over) held.message = { ...held.message, scheduled: undefined }
    const left = scheduled.filter((held) => !isOver(held))
    return { ended: over.map(({ message }) => message.id), next: least(left.map(({ message: { notBefore = 0 } }) => notBefore)) }
  }

  async scheduledMail(now: QueueTime) {
    const counts = new Map<string, ScheduledMail>()
    for (const { message, placement } of this.#queue.messages.values()) {
      if (message.scheduled !== true || (message.notBefore ?? 0) <= now || !countsAs(placement)) continue
      const { sender, saslUsername = null, client = null } = message
      const key = JSON.stringify([sender, saslUsername, client])
      counts.set(key, { sender, saslUsername, client, messages: (counts.get(key)?.messages ?? 0) + 1 })
    }
    return [...counts.values()]
  }

  async nextDeadlines() {
    const expiries = this.#waiting(() => true).map((one) => one.expiresAt)
    return { expiresAt: least(expiries), warnAt: least(this.#toBeWarned().map(({ at }) => at)) }
  }

  async destinations() {
    return [...this.#queue.destinations.values()].filter(({ name }) => this.#owner.owns(name))
  }

  async saveDestination(record: DestinationRecord, events?: readonly NewEvent[]): Promise<void> {
    this.#queue.outbox.keep(events)
    const ordinary = record.deadUntil === null && record.probeInterval === null && record.suspension === null
    if (ordinary) this.#queue.destinations.delete(record.name)
    else this.#queue.destinations.set(record.name, record)
    this.#owner.destination(record)
  }

  // --- operators and housekeeping

  async operate(operations: readonly MessageOperation[], round?: OperationRound) {
    if (round !== undefined && !BEGIN_ROUND.held(this.#queue.records, round)) return null
    const operated: Operated[] = []
    const results = operations.map((one) => {
      const held = this.#queue.messages.get(one.message)
      const was = held?.placement ?? 'queued'
      const former = held === undefined ? null : formerOf(held, one.operation)
      const result = applyOperation(this.#queue, one)
      for (const due of result.woken) this.#owner.due({ ...due, revive: one.operation.kind === 'flush' })
      if (result.changed) operated.push([one.message, was, former && formerText(former)])
      if (result.changed && one.operation.kind === 'requeue') operated.push([one.operation.newId, 'queued', null])
      return result
    })
    if (round !== undefined) END_ROUND.held(this.#queue.records, round, results.filter(({ changed }) => changed).length, operated)
    return results
  }

  async move(moves: readonly Move[]) {
    for (const { recipient, destination, expiresAt } of moves) {
      const one = this.#queue.messages.get(messageOf(recipient))?.recipients.find(({ id }) => id === recipient)
      if (one?.state === 'waiting' || one?.state === 'parked') {
        Object.assign(one, { destination, expiresAt, dueAt: Math.min(one.dueAt, expiresAt) })
        this.#tellDue(one)
      }
    }
    const touched = new Set(moves.map(({ destination }) => destination))
    return (await this.destinationsDue()).filter(({ destination }) => touched.has(destination))
  }

  async tally(largest: number): Promise<QueueTally> {
    return tallyOf(this.#queue, largest)
  }

  async close(): Promise<void> {}

  #find(id: RecipientId): [HeldMessage | undefined, HeldRecipient | undefined] {
    const held = this.#queue.messages.get(messageOf(id))
    return [held, held?.recipients.find((one) => one.id === id)]
  }

  /** Reports a waiting recipient to the owner of its destination. */
  #tellDue({ state, destination, dueAt }: HeldRecipient): void {
    if (state === 'waiting') this.#owner.due({ destination, dueAt, revive: false })
  }

  /** Whether a recipient is leased by this owner, which the caller names. */
  #isLease(one: HeldRecipient | undefined, owner: OwnerId): one is HeldRecipient {
    return one !== undefined && owner === this.#owner.id && this.#owner.leases(one)
  }

  #told(held: HeldMessage, wanted: (recipient: HeldRecipient) => boolean): MessageWithNoticesDue {
    const { message, warnings, recipients } = held
    const elsewhere = this.#owner.elsewhere(held)
    return { message, warnings, recipients: recipients.filter(wanted).map(snapshot), ...(elsewhere === undefined ? {} : { elsewhere }) }
  }

  #leaves(held: HeldMessage, keepUntil?: QueueTime): boolean {
    if (isKept(held)) return false
    depart(this.#queue, held, keepUntil)
    return true
  }
}

const copied = (chunk: Uint8Array): Uint8Array => new Uint8Array(chunk)

const owes = ({ noticeDue }: HeldRecipient): boolean => noticeDue !== undefined

const least = (times: readonly QueueTime[]): QueueTime | null =>
  times.reduce<QueueTime | null>((min, at) => (min === null || at < min ? at : min), null)
