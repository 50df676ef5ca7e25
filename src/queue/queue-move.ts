/**
 * `deferd queue move`: moves the messages of a queue to another one. With `isFinal`, the whole queue moves, its records too, and no
 * daemon starts with it afterwards.
 */
import type { MovedFrom } from '../config/values/queue-place.ts'
import { queueIdOf, type MessageId } from '../mail/message.ts'
import type { AccessEntry } from '../store/records/access-entry.ts'
import { FIRST_KEY } from '../store/records/suppression-entry.ts'
import type { Suspension } from '../store/records/suspension.ts'
import { hasMovedTo, NO_RECORDS, type MovedRecords, type Origin } from '../store/move-store.ts'
import type { QueueReader } from '../store/queue-reader.ts'
import type { Actor, AuditId } from '../store/records/audit-log.ts'
import { SECOND, sleep, type Duration, type QueueTime } from '../system/clock.ts'
import { handedOver, subscriptionsOf, takeBackSubscriptions } from './subscription-move.ts'
import { MoveRefused, offsetBetween, QueueMover, type MovableQueue, type MovedQueue, type QueueMoverDeps } from './queue-mover.ts'

/** An operator's request to move a queue. */
export interface MoveRequest extends Actor {
  /** Place of the queue that the operator means to move: the daemon of a folder may have another one in a database. */
  readonly from: MovedFrom
  /** Directory of the target, as an absolute path, or its URL. */
  readonly to: string
  readonly isFinal: boolean
  /** Parameter `queue_database_durability` of the target, when that is in PostgreSQL. */
  readonly durability: 'replicated' | 'primary'
}

export interface MoveProgress {
  /** Number of messages that have moved. */
  readonly moved: number
  /** True while the move waits for deliveries and notices of the source to end. */
  readonly waiting: boolean
}

export interface MoveSummary {
  readonly moved: number
  /** Number of messages that stay because a recipient is in transfer. Its outcome is that of the source. */
  readonly inTransfer: number
  /** Queue ids of messages that stay because they cannot be read. */
  readonly unreadable: readonly string[]
}

/** Effects on the daemon of the source. */
export interface SourceControl {
  /** Stops accepting mail and starting deliveries. Resolves when no claim and no mail in memory is left. */
  close(): Promise<void>
  /** Reverses `close`, after a move that failed. */
  reopen(): Promise<void>
}

interface QueueMoveDeps extends Omit<QueueMoverDeps, 'source' | 'target'> {
  readonly source: MovedQueue
  readonly target: MovableQueue
  readonly control: SourceControl
  readonly progress: (soFar: MoveProgress) => void
}

/** Pause before another look at messages that are in transfer or wait for notices. */
const PAUSE: Duration = SECOND / 5
/** Number of records per page. */
const PAGE = 250

/**
 * Moves the messages that are in the queue now, except those in transfer and those with notices due; with `isFinal`, waits for these
 * and moves everything. Rejects with MoveRefused, or with StoreUnavailable; repeating the move then completes it.
 */
export async function moveQueue(
  { isFinal, who, requestId }: Pick<MoveRequest, 'isFinal' | keyof Actor>,
  deps: QueueMoveDeps,
): Promise<MoveSummary> {
  const { source, names, progress } = deps
  const mover = await QueueMover.begin({
    ...deps,
    pause: async (messages) => {
      progress({ moved: mover.moved, waiting: false })
      await deps.pause(messages)
    },
  })
  const words = `--to=${names.target}${isFinal ? ' --final' : ''}`
  const auditedAs = await source.store.records.audit.add({
    at: source.clock.now(),
    who,
    requestId,
    action: 'move',
    arguments: words,
    changed: 0,
  })
  await mover.complete(auditedAs)
  // Before the first message moves, so that its subscribers are told of what happens to it there.
  await sendRecords(deps, { subscriptions: await subscriptionsOf(source, offsetBetween(source.clock, deps.target.clock)) })
  await mover.pass(auditedAs)
  if (isFinal) await moveRest(mover, deps, auditedAs)
  return { moved: mover.moved, inTransfer: mover.inTransfer, unreadable: [...mover.unreadable.values()].map(queueIdOf) }
}

async function moveRest(mover: QueueMover, deps: QueueMoveDeps, auditedAs: AuditId): Promise<void> {
  const { source, names, control } = deps
  try {
    await control.close()
    do {
      await emptied(mover, deps, auditedAs)
      await moveRecords(deps)
    } while (!(await source.moves.markMoved(names.target)))
  } catch (error) {
    await control.reopen()
    await takeBackSubscriptions(source)
    throw error
  }
}

/** Passes until the queue is empty. Rejects with MoveRefused when only messages are left that cannot be read. */
async function emptied(mover: QueueMover, { source, progress }: QueueMoveDeps, auditedAs: AuditId): Promise<void> {
  const { reader, clock } = source
  for (;;) {
    await mover.pass(auditedAs)
    const [left, movable] = await remaining(mover, reader)
    if (left === null && movable === null) return
    if (left !== null && movable === null) {
      const text = 'of its messages cannot be read and stay in the queue: delete them, for example'
      throw new MoveRefused(
        65,
        `the queue cannot be retired, because some ${text} with deferd queue delete --now ${queueIdOf(left)}, then repeat`,
      )
    }
    progress({ moved: mover.moved, waiting: true })
    await sleep(clock, PAUSE)
  }
}

/** A message that stays because it cannot be read, and another message that is left; null for none. */
async function remaining(mover: QueueMover, reader: QueueReader): Promise<readonly [unreadable: Origin | null, movable: MessageId | null]> {
  let unreadable: Origin | null = null
  for (let id = await reader.sliceEnd(0, 1); id !== null; id = await reader.sliceEnd(id, 1)) {
    const known = mover.unreadable.get(id)
    if (known === undefined) return [unreadable, id]
    unreadable = known
  }
  return [unreadable, null]
}

async function sendRecords({ source, target }: QueueMoveDeps, records: Partial<MovedRecords>): Promise<void> {
  const { identity } = await source.moves.moveState()
  await target.moves.takeRecords(identity, { ...NO_RECORDS, ...records })
}

/** Copies the records of the queue that docs/move.md names as copied. Those that the target has are not sent again. */
async function moveRecords(deps: QueueMoveDeps): Promise<void> {
  const { source, target, names } = deps
  const { identity } = await source.moves.moveState()
  const offset = offsetBetween(source.clock, target.clock)
  const send = (records: Partial<MovedRecords>) => sendRecords(deps, records)
  await send({ destinations: await source.reader.destinationRecords() })
  const later = (await source.reader.records.access.all()).map((entry) => laterBy(offset, entry))
  for (let at = 0; at < later.length; at += PAGE) await send({ access: later.slice(at, at + PAGE) })
  await send({ tokens: (await source.reader.records.tokens.all()).map((token) => laterBy(offset, token)) })
  await send({ grants: (await source.reader.records.grants.all()).map((one) => ({ ...one, expiresAt: one.expiresAt + offset })) })
  const suspended = await source.reader.records.providers.suspensions()
  await send({ suspensions: suspended.map(({ provider, suspension }) => ({ provider, suspension: endsLater(offset, suspension) })) })
  await moveSuppressions(deps, send, offset)
  await send({ subscriptions: await handedOver(source, offset) })
  let { history: seq, audit: after } = await target.moves.recordsTaken(identity)
  for (let page = await source.moves.historyAfter(seq, PAGE); page.length > 0; page = await source.moves.historyAfter(seq, PAGE)) {
    await send({ history: page.filter(({ record }) => !hasMovedTo(names.target, record)) })
    seq = page.at(-1)?.seq ?? seq
  }
  for (
    let page = await source.reader.records.audit.after({ after, limit: PAGE });
    page.length > 0;
    page = await source.reader.records.audit.after({ after, limit: PAGE })
  ) {
    await send({ audit: page })
    after = page.at(-1)?.id ?? after
  }
}

/** Copies the suppression list. Refusals that do not list an address yet are not copied. */
async function moveSuppressions(
  { source }: QueueMoveDeps,
  send: (records: Partial<MovedRecords>) => Promise<void>,
  offset: Duration,
): Promise<void> {
  const later = (at: QueueTime | null): QueueTime | null => (at === null ? null : at + offset)
  const any = { scope: null, address: null, reason: null, destination: null, since: null, now: source.clock.now(), limit: PAGE }
  for (let after = FIRST_KEY; ;) {
    const page = await source.reader.records.suppressions.page({ ...any, after })
    const suppressions = page.map(({ seq: _seq, ...one }) => ({
      ...one,
      since: later(one.since),
      until: later(one.until),
      firstHitAt: later(one.firstHitAt),
      lastHitAt: later(one.lastHitAt),
      strikes: [],
    }))
    await send({ suppressions })
    if (page.length < PAGE) return
    after = page.at(-1) ?? after
  }
}

const endsLater = (offset: Duration, suspension: Suspension): Suspension => ({
  ...suspension,
  until: suspension.until === null ? null : suspension.until + offset,
})

/** The record with its times on a clock that is ahead by `offset` ms. */
const laterBy = <T extends Pick<AccessEntry, 'addedAt' | 'expiresAt'>>(offset: Duration, record: T): T => ({
  ...record,
  addedAt: record.addedAt + offset,
  expiresAt: record.expiresAt === null ? null : record.expiresAt + offset,
})
