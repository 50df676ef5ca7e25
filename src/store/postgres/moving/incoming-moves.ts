/** Moves of messages of another queue into this one. */
import { takeSubscriptions } from '../writing/subscription-writer.ts'
import { queueIdOf, type Message, type MessageId, type OwnerId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { TAKE_ENTRY } from '../../records/operation-round.ts'
import { encodeHistory } from '../../history-record.ts'
import { ID_BLOCK } from '../../id-buffer.ts'
import type { Shard } from '../../membership/shards.ts'
import {
  renumbered,
  type Admitted,
  type Arrival,
  type MovedMessage,
  type MovedRecords,
  type Origin,
  type QueueIdentity,
  type RecordsTaken,
} from '../../move-store.ts'
import type { DestinationRecord } from '../../queue-store.ts'
import { fromStatus } from '../../stored-values.ts'
import { int8s, storableText, texts } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import { takeAccess } from '../../records/access-entry.ts'
import { ACCESS_TOKENS } from '../../records/access-token.ts'
import { takeGrant } from '../../records/kept-grant.ts'
import { takeSuppression } from '../../records/suppression-entry.ts'
import { takeSuspension } from '../../records/provider-state.ts'
import { tellProvider } from '../writing/record-writer.ts'
import { runRecord } from '../session/record-calls.ts'
import type { Intake } from '../writing/enqueue.ts'
import type { MoveClaims } from './move-claims.ts'
import * as sql from './move-queries.ts'
import { decoded, dueOf, encoded, enterMoved, type RecordRow } from './moved-messages.ts'
import type { Operating } from '../writing/operate.ts'
import { reserveIds } from '../writing/queries.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'

interface IncomingDeps {
  readonly node: OwnerId
  /** Parameter `node_name`, for the audit log. */
  readonly name: string
  readonly claims: MoveClaims
  readonly operating: Operating
  readonly intake: Intake
}

/** An arrival with its ids here. */
interface Taken {
  readonly arrival: Arrival
  readonly moved: MovedMessage
  readonly queueId: string
}

export class IncomingMoves {
  readonly #deps: IncomingDeps
  readonly keepIds: Send<'keepIds'>
  readonly takeMoved: Send<'takeMoved'>
  readonly originsOf: Send<'originsOf'>
  readonly admitMoved: Send<'admitMoved'>
  readonly takeRecords: Send<'takeRecords'>

  constructor(deps: IncomingDeps) {
    const { claims } = deps
    const from = ([source]: readonly [QueueIdentity, ...unknown[]]) => source
    this.#deps = deps
    this.keepIds = claims.sender<'keepIds'>(from, (tx, [source, through]) => keepIds(tx, source, through))
    this.takeMoved = claims.sender<'takeMoved'>(from, (tx, [source, arrivals, destinations]) =>
      this.#take(tx, source, arrivals, destinations),
    )
    this.originsOf = claims.sender<'originsOf'>(from, (tx, [source, origins]) => originsOf(tx, source, origins))
    this.admitMoved = claims.sender<'admitMoved'>(from, (tx, [source, limit, now]) => this.#admit(tx, source, limit, now))
    this.takeRecords = claims.sender<'takeRecords'>(from, (tx, [source, records]) => this.#takeRecords(tx, source, records))
  }

  async #take(
    tx: Transaction,
    source: QueueIdentity,
    arrivals: readonly Arrival[],
    destinations: readonly DestinationRecord[],
  ): Promise<readonly string[]> {
    if ((await tx.query(sql.unmarkMoved)).length > 0) await tx.query(sql.acceptMail)
    await addDestinations(tx, destinations)
    const known = await originsOf(
      tx,
      source,
      arrivals.map(({ origin }) => origin),
    )
    const unknown = arrivals.filter((_, n) => known[n] === null)
    const repeated = arrivals.flatMap(({ staged }, n) => (known[n] === null || staged === null ? [] : [staged]))
    const taken = await numbered(tx, source, unknown)
    const contents = taken.map(({ arrival: { content }, moved: { message } }) => ({ contentId: message.contentId, content }))
    await Promise.all([
      insertOrigins(tx, source, taken),
      this.#deps.intake.completeContents(tx, contents),
      repeated.length === 0 ? [] : this.#deps.intake.dropStaged(tx, repeated),
    ])
    const queueIds = new Map(taken.map(({ arrival, queueId }) => [arrival, queueId]))
    return arrivals.map((arrival, n) => known[n] ?? queueIds.get(arrival) ?? '')
  }

  async #admit(tx: Transaction, source: QueueIdentity, limit: number, now: QueueTime): Promise<Admitted> {
    const { operating } = this.#deps
    const rows = await tx.query<RecordRow>(sql.arrivingRows, [source, limit])
    const messages = rows.map(({ message }) => message)
    if (messages.length === 0) return { messages, woken: [] }
    await tx.query(sql.admitOrigins, [int8s(messages), now])
    await enterMoved(
      tx,
      rows.map((row) => ({ moved: decoded(row), sharesContent: false })),
    )
    return { messages, woken: await dueOf(tx, messages, operating) }
  }

  async #takeRecords(
    tx: Transaction,
    source: QueueIdentity,
    { history, audit, destinations, access, tokens, grants, suspensions, suppressions, subscriptions }: MovedRecords,
  ): Promise<void> {
    const taken = await recordsTaken(tx, source)
    const left = history.filter(({ seq }) => seq > taken.history)
    const entries = audit.filter(({ id }) => id > taken.audit)
    await Promise.all([
      addDestinations(tx, destinations),
      ...access.map((entry) => runRecord(tx, takeAccess, entry)),
      ...tokens.map((token) => runRecord(tx, ACCESS_TOKENS.add, token)),
      ...grants.map((grant) => runRecord(tx, takeGrant, grant)),
      ...suppressions.map((one) => runRecord(tx, takeSuppression, one)),
      ...suspensions.map(async (one) => {
        if (await runRecord(tx, takeSuspension, one)) await tellProvider(tx, this.#deps.node, one)
      }),
      takeSubscriptions(tx, subscriptions),
      tx.query(sql.insertHistory, [
        this.#deps.node,
        int8s(left.map(({ message }) => message)),
        int8s(left.map(({ leftAt }) => leftAt)),
        texts(left.map(({ record }) => encodeHistory(record))),
      ]),
      ...entries.map((entry) => runRecord(tx, TAKE_ENTRY, entry)),
      tx.query(sql.saveRecordsTaken, [source, left.at(-1)?.seq ?? taken.history, entries.at(-1)?.id ?? taken.audit]),
    ])
  }
}

export async function recordsTaken(statements: Statements, source: QueueIdentity): Promise<RecordsTaken> {
  const [row] = await statements.query<RecordsTaken>(sql.recordsTaken, [source])
  return row ?? { history: 0, audit: 0 }
}

/**
 * Reserves the ids up to `through` that no node has reserved. The next block is reserved with them, so that a source in use needs this
 * seldom.
 */
async function keepIds(tx: Transaction, source: QueueIdentity, through: MessageId): Promise<void> {
  if ((await lastId(tx)) >= through) return
  await tx.query(sql.lockIds)
  const last = await lastId(tx)
  if (last >= through) return
  await Promise.all([tx.query(sql.keepIds, [source, last + 1, through + ID_BLOCK]), tx.query(sql.raiseIds, [through + ID_BLOCK])])
}

async function lastId(tx: Transaction): Promise<MessageId> {
  const [row] = await tx.query<{ last: MessageId }>(sql.lastId)
  return row?.last ?? 0
}

async function originsOf(tx: Transaction, source: QueueIdentity, origins: readonly Origin[]): Promise<readonly (string | null)[]> {
  const rows = await tx.query<{ n: number; queueId: string }>(sql.originsOf, [
    source,
    int8s(origins.map(({ id }) => id)),
    int8s(origins.map(({ createdAt }) => createdAt)),
  ])
  const found = new Map(rows.map(({ n, queueId }) => [n - 1, queueId]))
  return origins.map((_, n) => found.get(n) ?? null)
}

/** Gives arrivals their ids: those of the source where they are kept and free, new ones otherwise. */
async function numbered(tx: Transaction, source: QueueIdentity, arrivals: readonly Arrival[]): Promise<readonly Taken[]> {
  if (arrivals.length === 0) return []
  const wanted = arrivals.map(({ origin: { id } }) => id)
  await keepIds(tx, source, Math.max(...wanted))
  const rows = await tx.query<{ id: MessageId }>(sql.freeIds, [source, int8s(wanted)])
  const free = new Set(rows.map(({ id }) => id))
  const reserved = await tx.query<{ id: MessageId }>(reserveIds, [arrivals.length - free.size])
  const unused = reserved.map(({ id }) => id)
  return arrivals.map((arrival) => {
    const { origin, moved, staged } = arrival
    const id = free.delete(origin.id) ? origin.id : (unused.shift() ?? 0)
    const message: Message = { ...moved.message, id, contentId: staged ?? id }
    return { arrival, moved: renumbered(moved, message), queueId: queueIdOf(message) }
  })
}

async function insertOrigins(tx: Transaction, source: QueueIdentity, taken: readonly Taken[]): Promise<void> {
  if (taken.length === 0) return
  await tx.query(sql.insertOrigins, [
    source,
    int8s(taken.map(({ moved }) => moved.message.id)),
    int8s(taken.map(({ arrival }) => arrival.origin.id)),
    int8s(taken.map(({ arrival }) => arrival.origin.createdAt)),
    texts(taken.map(({ queueId }) => queueId)),
    texts(taken.map(({ moved }) => encoded(moved))),
  ])
}

async function addDestinations(tx: Transaction, destinations: readonly DestinationRecord[]): Promise<void> {
  const added = await Promise.all(
    destinations.map(({ name, deadUntil, probeInterval, suspension, siteStatus, ...rest }) => {
      const { by = null, until = null, reason = null } = suspension ?? {}
      const record = storableText(JSON.stringify({ name, deadUntil, probeInterval, suspension, siteStatus, ...rest }))
      const values = [deadUntil, probeInterval, by, until, reason === null ? null : storableText(reason), fromStatus(siteStatus)]
      return tx.query<{ shard: Shard }>(sql.addDestination, [name, tx.shardOf(name), record, ...values])
    }),
  )
  tx.told(added.flat())
}
