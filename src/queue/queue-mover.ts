/**
 * Moves messages from one queue to another in rounds, each of four commits (see store/move-store). After an interruption at any point,
 * `complete` brings every message into exactly one of the two queues.
 */
import { contentSize, type MessageId } from '../mail/message.ts'
import { CHUNK_BYTES } from '../store/chunks.ts'
import { ContentUnreadable } from '../store/errors.ts'
import type { Arrival, MovedMessage, MoveStore, MoveTarget, Origin, QueueIdentity } from '../store/move-store.ts'
import type { AuditId } from '../store/records/audit-log.ts'
import { NOTHING_TAKEN, type TakenBack } from '../store/membership/taken-back.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import type { QueueStore } from '../store/queue-store.ts'
import type { DestinationDue } from '../store/message-operation.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Clock, Duration } from '../system/clock.ts'

/** A move that cannot begin or cannot be finished, with one sentence for the operator. */
export class MoveRefused extends Error {
  override readonly name = 'MoveRefused'
  readonly exitCode: number

  /** `exitCode` is one of sysexits(3). */
  constructor(exitCode: number, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** A queue that its mover may change. */
export interface MovableQueue {
  readonly store: QueueStore
  readonly moves: MoveStore
  readonly clock: Clock
}

/** A queue whose messages move. */
export interface MovedQueue extends MovableQueue {
  readonly reader: QueueReader
}

/** Messages with ids above `after` and up to `through`. */
interface Slice {
  readonly after: MessageId
  readonly through: MessageId
}

export interface QueueMoverDeps {
  readonly source: MovedQueue
  readonly target: MovableQueue
  /** Names of the queues, for operators. */
  readonly names: { readonly source: string; readonly target: string }
  /** Whether a MAILER-DAEMON sends the notices of the source, so that messages with notices due stay until they are sent. */
  readonly sendsNotices: () => boolean
  /** Gives claimed mail of the source back that has no slot, see SchedulerControl. */
  readonly takeBack: SchedulerControl['takeBack']
  /** Called with mail that is back in the source. */
  readonly returned: (due: readonly DestinationDue[]) => void
  /** Called after each round with the number of its messages. The move waits for the promise. */
  readonly pause: (messages: number) => Promise<void>
  /** Maximum number of messages per round; ROUND when absent. */
  readonly round?: number | undefined
}

/** Number of messages per round. A round is one commit in each store, and it is small so that other commits wait little. */
const ROUND = 64
/** Number of chunks that are read and staged at a time. */
const STAGED_AT_ONCE = 4

export class QueueMover {
  readonly #deps: QueueMoverDeps
  readonly #identity: QueueIdentity
  readonly #target: MoveTarget
  readonly #unreadable = new Map<MessageId, Origin>()
  /** Messages that stayed in the last pass, because a recipient is in transfer. */
  #inTransfer: readonly MessageId[] = []
  #moved = 0

  private constructor(deps: QueueMoverDeps, identity: QueueIdentity, target: QueueIdentity) {
    this.#deps = deps
    this.#identity = identity
    this.#target = { identity: target, name: deps.names.target }
  }

  /** Rejects with MoveRefused when the queues are the same, or while messages are on their way to a third one. */
  static async begin(deps: QueueMoverDeps): Promise<QueueMover> {
    const { source, target, names } = deps
    const [from, to] = [await source.moves.moveState(), await target.moves.moveState()]
    if (from.identity === to.identity) throw new MoveRefused(64, `${names.target} is the queue of ${names.source}, or a copy of it`)
    await source.moves.claimMoves(null)
    const [left] = await source.moves.leaving(1)
    if (left !== undefined && left.target.identity !== to.identity) {
      const text = `${from.leaving} messages are on their way to ${left.target.name}: repeat deferd queue move --to ${left.target.name} first`
      throw new MoveRefused(75, text)
    }
    await target.moves.claimMoves(from.identity)
    return new QueueMover(deps, from.identity, to.identity)
  }

  /** Number of messages that the target has got. */
  get moved(): number {
    return this.#moved
  }

  /** Number of messages that stayed in the last pass, because a recipient is in transfer. */
  get inTransfer(): number {
    return this.#inTransfer.length
  }

  /** Messages that stay because they cannot be read. */
  get unreadable(): ReadonlyMap<MessageId, Origin> {
    return this.#unreadable
  }

  /** Completes the rounds of an interrupted move. */
  async complete(auditedAs: AuditId | null = null): Promise<void> {
    const { source, target, returned } = this.#deps
    for (let left = await source.moves.leaving(ROUND); left.length > 0; left = await source.moves.leaving(ROUND)) {
      const messages = left.map(({ moved }) => moved.message)
      const here = await target.moves.originsOf(this.#identity, messages)
      await this.#finish(
        messages.flatMap(({ id }, n) => arrivedAs(id, here[n])),
        auditedAs,
      )
      returned(await source.moves.undoMove(messages.filter((_, n) => (here[n] ?? null) === null).map(({ id }) => id)))
    }
    await this.#admit()
  }

  /** Moves the messages that are in the queue now and are neither in transfer nor wait for notices. */
  async pass(auditedAs: AuditId): Promise<void> {
    const { source, target, round = ROUND } = this.#deps
    const { last } = await source.moves.moveState()
    await target.moves.keepIds(this.#identity, last)
    this.#inTransfer = []
    for (let after = 0; after < last;) {
      const end = await source.reader.sliceEnd(after, round)
      if (end === null) return
      await this.#slice({ after, through: Math.min(end, last) }, auditedAs)
      after = end
    }
  }

  /** Moves the messages of a slice, again while mail of it was claimed meanwhile. */
  async #slice(slice: Slice, auditedAs: AuditId): Promise<void> {
    let taken = await this.#taken(slice)
    do {
      await this.#rounds(slice, auditedAs)
      taken = await this.#taken(slice)
    } while (taken.given.length > 0)
    this.#inTransfer = [...this.#inTransfer, ...taken.inTransfer]
  }

  /** Has claimed mail of a slice given back that has no slot. */
  async #taken({ after, through }: Slice): Promise<TakenBack> {
    const { source, takeBack, round = ROUND } = this.#deps
    const active = await source.reader.find({ ...ANY_MESSAGE, queue: 'active' }, { after, through, limit: round })
    if (active.length === 0) return NOTHING_TAKEN
    const messages = active.map(({ id }) => id)
    return takeBack(messages, { rests: true })
  }

  async #rounds({ after: from, through }: Slice, auditedAs: AuditId): Promise<void> {
    for (let after: MessageId | null = from; after !== null;) {
      const { source, sendsNotices, pause, round = ROUND } = this.#deps
      const selection = { target: this.#target, after, through, limit: round, withNoticesDue: !sendsNotices() }
      const { messages, unreadable, next } = await source.moves.beginMove(selection)
      for (const one of unreadable) this.#unreadable.set(one.id, one)
      if (messages.length > 0) await this.#carry(messages, auditedAs)
      await pause(messages.length)
      after = next
    }
  }

  /** Carries one round over. When that fails, the messages are brought into one of the queues, if both can be reached. */
  async #carry(messages: readonly MovedMessage[], auditedAs: AuditId): Promise<void> {
    try {
      await this.#carryRound(messages, auditedAs)
    } catch (error) {
      await this.complete(auditedAs).catch((cause: unknown) => {
        const text = `the move was interrupted, and up to ${messages.length} messages are between the queues: repeat the command when both can be used`
        throw new MoveRefused(75, `${errorMessage(error)}; ${text} (${errorMessage(cause)})`)
      })
      throw error
    }
  }

  async #carryRound(messages: readonly MovedMessage[], auditedAs: AuditId): Promise<void> {
    const { source, target, returned } = this.#deps
    const prepared = await Promise.all(messages.map((moved) => this.#arrivalOf(moved)))
    const arrivals = prepared.filter((one) => 'origin' in one)
    const names = new Set(messages.flatMap(({ recipients }) => recipients.map(({ destination }) => destination)))
    const destinations = (await source.reader.destinationRecords()).filter(({ name }) => names.has(name))
    const queueIds = await target.moves.takeMoved(this.#identity, arrivals, destinations)
    await this.#finish(
      arrivals.flatMap(({ origin: { id } }, n) => arrivedAs(id, queueIds[n])),
      auditedAs,
    )
    await this.#admit()
    for (const one of prepared) {
      if ('origin' in one) continue
      const { message } = one.damaged
      this.#unreadable.set(message.id, message)
      returned(await source.moves.undoMove([message.id]))
      await source.store.quarantine(message.id, one.why)
    }
  }

  async #finish(finished: readonly { readonly id: MessageId; readonly as: string }[], auditedAs: AuditId | null): Promise<void> {
    if (finished.length === 0) return
    const { source } = this.#deps
    await source.moves.finishMove(finished, source.clock.now(), auditedAs)
    this.#moved += finished.length
  }

  async #admit(): Promise<void> {
    const { moves, clock } = this.#deps.target
    let admitted
    do admitted = await moves.admitMoved(this.#identity, ROUND, clock.now())
    while (admitted.messages.length === ROUND)
  }

  /** The message with its content, for the target; the reason when the content cannot be read. */
  async #arrivalOf(moved: MovedMessage): Promise<Arrival | { readonly damaged: MovedMessage; readonly why: string }> {
    const { source, target } = this.#deps
    const origin = { id: moved.message.id, createdAt: moved.message.createdAt }
    const shifted = laterBy(offsetBetween(source.clock, target.clock), moved)
    try {
      return { origin, moved: shifted, ...(await this.#contentOf(moved)) }
    } catch (error) {
      if (!(error instanceof ContentUnreadable)) throw error
      return { damaged: moved, why: error.message }
    }
  }

  /** The content. All chunks but the last are staged at the target, so that no long content is held in memory. */
  async #contentOf({ message }: MovedMessage): Promise<Pick<Arrival, 'staged' | 'content'>> {
    const { store } = this.#deps.target
    const count = Math.ceil(contentSize(message) / CHUNK_BYTES)
    if (count <= 1) return { staged: null, content: await this.#chunks(message.contentId, 0, count) }
    const [staged] = await store.nextIds(1)
    if (staged === undefined) throw new Error('the target reserved no id; this is a bug')
    try {
      for (let from = 0; from < count; from += STAGED_AT_ONCE)
        await store.stage(staged, from, await this.#chunks(message.contentId, from, Math.min(count, from + STAGED_AT_ONCE)))
    } catch (error) {
      await store.unstage(staged)
      throw error
    }
    return { staged, content: [] }
  }

  async #chunks(content: number, from: number, to: number): Promise<readonly Uint8Array[]> {
    const chunks: Uint8Array[] = []
    for (let index = from; index < to; index++) {
      const chunk = await this.#deps.source.store.readChunk(content, index)
      if (chunk === undefined) throw new ContentUnreadable(`part ${index} of content ${content} is missing`)
      chunks.push(chunk)
    }
    return chunks
  }
}

/** Milliseconds by which the clock of the target is ahead: by them, times of the wall clock stay the same to the millisecond. */
export const offsetBetween = (source: Clock, target: Clock): Duration => target.wall.queueTime(source.wall.of(0))

/** A message with its queue id at the target, as a list: empty when it is not there. */
const arrivedAs = (id: MessageId, as: string | null | undefined) => (as === null || as === undefined ? [] : [{ id, as }])

/** The message with all times of a clock that is ahead by `offset` ms. */
function laterBy(offset: Duration, moved: MovedMessage): MovedMessage {
  if (offset === 0) return moved
  const later = <T extends number | null | undefined>(at: T) => (typeof at === 'number' ? at + offset : at) as T
  const { message, deletedAt, warnAt, recipients, attempts } = moved
  return {
    ...moved,
    message: {
      ...message,
      createdAt: message.createdAt + offset,
      arrivedAt: message.arrivedAt + offset,
      ...(message.notBefore === undefined ? {} : { notBefore: message.notBefore + offset }),
      ...(message.expires === undefined ? {} : { expires: message.expires + offset }),
      ...(message.deliverBy === undefined ? {} : { deliverBy: message.deliverBy + offset }),
    },
    deletedAt: later(deletedAt),
    warnAt: later(warnAt),
    recipients: recipients.map((one) => ({
      ...one,
      dueAt: one.dueAt + offset,
      keptDueAt: later(one.keptDueAt),
      expiresAt: one.expiresAt + offset,
      ...(one.settledAt === undefined ? {} : { settledAt: one.settledAt + offset }),
    })),
    attempts: attempts.map((attempt) => ({ ...attempt, at: attempt.at + offset })),
  }
}
