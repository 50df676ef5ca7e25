/** The QueueStore over PostgreSQL: writes go to the writing session in batches, reads to another session. */
import type { LeaseTerms, OwnerId } from '../../mail/message.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { Shard } from '../membership/shards.ts'
import { assertChunks } from '../chunks.ts'
import { ID_BLOCK, IdBuffer } from '../id-buffer.ts'
import { methodsOf, pending, remoteMethods, type Answers, type Arguments, type Call, type Method, type DirectMethod } from '../methods.ts'
import type { MovableStore } from '../move-store.ts'
import type { StoreSide } from '../store-health.ts'
import { Contents } from './writing/contents.ts'
import type { Connection, Statements } from './session/database-connection.ts'
import type { ShardKeys } from '../membership/shard-keys.ts'
import type { ShareCounter } from './share-counter.ts'
import type { ProviderMembers } from './provider-members.ts'
import { recordCall, recordsOver } from '../records/records.ts'
import { runRecord } from './session/record-calls.ts'
import { SearchIndex } from './search/search-index.ts'
import { recordWriter } from './writing/record-writer.ts'
import { DepartedWriter } from './departed/departed-writer.ts'
import { ErasureWriter } from './departed/erasure-writer.ts'
import { Housekeeping } from './writing/housekeeping.ts'
import { assertEntry, Intake } from './writing/enqueue.ts'
import { IncomingMoves, recordsTaken } from './moving/incoming-moves.ts'
import { Leases } from './writing/leases.ts'
import { MoveClaims, moveState } from './moving/move-claims.ts'
import { NoticesDue } from './writing/notices-due.ts'
import { Operating } from './writing/operate.ts'
import { Outcomes } from './writing/outcomes.ts'
import { ownSubscriptions, parkedDue, pullEvents } from './outbox-reader.ts'
import { SubscriptionWriter } from './writing/subscription-writer.ts'
import { WantedTypes } from './writing/transaction-events.ts'
import { OutgoingMoves } from './moving/outgoing-moves.ts'
import { OwnLeases } from './writing/own-leases.ts'
import { TallyQuery } from './writing/tally-query.ts'
import type { PendingWrite, Writers } from './committing/write-batch.ts'
import { FailoverCheck } from './committing/failover-check.ts'
import type { RecentMail } from './committing/recent-mail.ts'
import { Writer } from './committing/writer.ts'
import type { WritingEvent } from '../membership/writing-events.ts'

interface PostgresStoreDeps {
  readonly node: OwnerId
  /** Parameter `node_name`. */
  readonly name: string
  readonly clock: Clock
  /** Opens a writing session. */
  readonly connect: () => Promise<Connection>
  readonly reading: Statements
  readonly wake: (shards: readonly Shard[]) => void
  readonly onFenced: () => void
  /** True to reserve message ids. */
  readonly queuesMail: boolean
  /** Time for which a tally is used again. */
  readonly tallyKeptFor: Duration
  readonly recent: RecentMail
  readonly keys: ShardKeys
  readonly members: ProviderMembers
  readonly counter: ShareCounter
  readonly onEvent: (event: WritingEvent) => void
}

interface PostgresStore {
  readonly store: MovableStore
  readonly side: StoreSide & { readonly abandoned: AbortSignal }
  /** Closes the writing session at once, like the end of the process. */
  readonly destroy: () => void
}

/** Parts that are called at once for the methods that no transaction of the writing session makes. */
type DirectCalls = { readonly [M in DirectMethod]: (...args: Arguments[M]) => Promise<Answers[M]> }

/** Creates the store of a node in its first session, on `connection`. */
export async function createStore(connection: Connection, deps: PostgresStoreDeps): Promise<PostgresStore> {
  const { node, clock } = deps
  const terms: LeaseTerms = { owner: node, until: Infinity }
  const leases = new OwnLeases()
  const check = new FailoverCheck(deps.recent, () => ids)
  const examine = async (statements: Statements): Promise<void> => {
    const failover = await check.run(statements)
    if (failover !== null) deps.onEvent({ kind: 'failover', ...failover })
  }
  await examine(connection)
  const wanted = new WantedTypes()
  await wanted.read(connection)
  const parts = partsOf(deps, terms, leases, wanted)
  const writer = new Writer(connection, { ...deps, leases, examine, wanted, writers: writersOf(parts) })
  const directCalls = directCallsOf(parts, deps, {
    tally: new TallyQuery(clock, deps.tallyKeptFor),
    contents: new Contents(deps.reading, leases),
    wanted,
  })
  const write = <M extends Method>(call: Call<M>): Promise<Answers[M]> => pending(call, (waiting) => writer.add(waiting as PendingWrite))
  const submit = async <M extends Method>(call: Call<M>): Promise<Answers[M]> => {
    const direct = (directCalls as { readonly [N in Method]?: (...args: Arguments[N]) => Promise<Answers[N]> })[call.method]
    if (direct !== undefined) return direct(...call.args)
    assertCall(call as unknown as Call)
    return write(call)
  }
  const reserve = (count: number) => write({ method: 'nextIds', args: [count] })
  const ids = new IdBuffer(reserve, deps.queuesMail ? await reserve(ID_BLOCK) : [])
  const records = recordsOver((...sent) => {
    const call = recordCall(sent)
    return call.kind === 'read' ? runRecord(deps.reading, call, ...sent[2]) : write({ method: 'record', args: sent })
  })
  const methods = remoteMethods(submit)
  const store: MovableStore = {
    ...methods,
    records,
    nextId: () => ids.next(),
    leaseTerms: () => terms,
    shares: { ...methods.shares, onShares: (listener) => deps.keys.shares.feed.listen(listener) },
    close: () => writer.close(),
  }
  return { store, side: writer, destroy: () => writer.destroy() }
}

/** Throws for a call that can never succeed. */
function assertCall(call: Call): void {
  if (call.method === 'enqueue') assertEntry(call.args[0])
  if (call.method === 'resend') call.args[0].forEach(({ entry }) => assertEntry(entry))
  if (call.method === 'report') call.args[0].notices.forEach(assertEntry)
  if (call.method === 'stage') assertChunks(call.args[2])
  if (call.method === 'takeMoved') for (const { content } of call.args[1]) assertChunks(content)
}

function partsOf({ node, name, clock }: PostgresStoreDeps, terms: LeaseTerms, leases: OwnLeases, wanted: WantedTypes) {
  const intake = new Intake({ owner: node, name, leases })
  const operating = new Operating(node, leases)
  const claims = new MoveClaims(node)
  return {
    intake,
    operating,
    claims,
    subscriptions: new SubscriptionWriter(wanted, name),
    outgoing: new OutgoingMoves({ node, claims, operating }),
    incoming: new IncomingMoves({ node, name, claims, operating, intake }),
    leases: new Leases(terms, leases, clock),
    outcomes: new Outcomes(node, leases),
    noticesDue: new NoticesDue(node, intake),
    housekeeping: new Housekeeping({ terms, name, operating }),
    search: new SearchIndex(),
    departed: new DepartedWriter(intake),
    erasures: new ErasureWriter(),
    records: { record: recordWriter(node) },
  }
}

type Parts = ReturnType<typeof partsOf>

const writersOf = (parts: Parts): Writers => methodsOf(...Object.values(parts))

/** Parts with a state. */
interface Kept {
  readonly tally: TallyQuery
  readonly contents: Contents
  readonly wanted: WantedTypes
}

const directCallsOf = (
  { noticesDue, housekeeping, leases }: Parts,
  { node, reading, members, counter, keys }: PostgresStoreDeps,
  { tally, contents, wanted }: Kept,
): DirectCalls => ({
  maildropFiles: () => housekeeping.maildropFiles(reading),
  readChunk: (content, index) => contents.readChunk(content, index),
  messagesWithNoticesDue: (after, limit) => noticesDue.messagesWithNoticesDue(reading, after, limit),
  noticesDueOf: (message) => noticesDue.noticesDueOf(reading, message),
  claimWarnings: (now, limit) => noticesDue.claimWarnings(reading, now, limit),
  waitingAt: (slice) => leases.waitingAt(reading, keys.shardOf(slice.destination), slice),
  scheduledMail: (now) => housekeeping.scheduledMail(reading, now),
  destinationsDue: () => housekeeping.destinationsDue(reading),
  nextDeadlines: () => housekeeping.nextDeadlines(reading),
  destinations: () => housekeeping.destinations(reading),
  joinProvider: (destination, provider) => members.join(destination, provider),
  countShares: (counts) => counter.countShares(counts),
  sharesElsewhere: () => counter.sharesElsewhere(),
  tally: (largest) => tally.tally(reading, largest),
  // The nodes follow the clock of the database.
  saveClock: async () => undefined,
  // The database has checksums of its own for pages and indexes.
  verify: async () => null,
  freeSpace: async () => Infinity,
  moveState: () => moveState(reading),
  recordsTaken: (source) => recordsTaken(reading, source),
  subscriptions: () => ownSubscriptions(reading, node),
  wantedTypes: () => wanted.read(reading),
  pullEvents: (name, limit) => pullEvents(reading, name, limit),
  parkedDue: (name, limit) => parkedDue(reading, name, limit),
})
