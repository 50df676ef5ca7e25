/** The QueueStore over PostgreSQL: writes go to the writing session in batches, reads to another session. */
import type { LeaseTerms, OwnerId } from '../../mail/message.ts'
import type { Clock, Duration } from '../../system/clock.ts'
import type { Shard } from '../membership/shards.ts'
import { assertChunks } from '../chunks.ts'
import { ID_BLOCK, IdBuffer } from '../id-buffer.ts'
import {
  isDirect,
  methodsOf,
  pending,
  remoteMethods,
  type Answers,
  type Arguments,
  type Call,
  type DirectMethod,
  type Method,
} from '../methods.ts'
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
import type { PendingWrite } from './committing/write-batch.ts'
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

type AsyncCalls = { readonly [M in Method]: (...args: Arguments[M]) => Promise<Answers[M]> }

/** The methods that no transaction of the writing session makes. They are called at once. */
type DirectCalls = Pick<AsyncCalls, DirectMethod>

/** Creates the store of a node in its first session, on `connection`. */
export async function createStore(connection: Connection, deps: PostgresStoreDeps): Promise<PostgresStore> {
  const { node } = deps
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
  const methods = methodsOf(...partsOf(deps, terms, leases, wanted))
  const writer = new Writer(connection, { ...deps, leases, examine, wanted, writers: methods })
  const directCalls: DirectCalls = { ...methods, ...directCallsOf(deps, wanted) }
  const write = <M extends Method>(call: Call<M>): Promise<Answers[M]> => pending(call, (waiting) => writer.add(waiting as PendingWrite))
  const submit = async <M extends Method>(call: Call<M>): Promise<Answers[M]> => {
    if (isDirect(call.method)) return (directCalls as AsyncCalls)[call.method](...call.args)
    assertCall(call as unknown as Call)
    return write(call)
  }
  const reserve = (count: number) => write({ method: 'nextIds', args: [count] })
  const ids = new IdBuffer(reserve, deps.queuesMail ? await reserve(ID_BLOCK) : [])
  const records = recordsOver((...sent) => {
    const call = recordCall(sent)
    return call.kind === 'read' ? runRecord(deps.reading, call, ...sent[2]) : write({ method: 'record', args: sent })
  })
  const remote = remoteMethods(submit)
  const store: MovableStore = {
    ...remote,
    records,
    nextId: () => ids.next(),
    leaseTerms: () => terms,
    shares: { ...remote.shares, onShares: (listener) => deps.keys.shares.feed.listen(listener) },
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

/** The parts that have the methods: those of a transaction of the writing session, and those that read only. */
function partsOf(deps: PostgresStoreDeps, terms: LeaseTerms, own: OwnLeases, wanted: WantedTypes) {
  const { node, name, clock, reading, keys, counter } = deps
  const intake = new Intake({ owner: node, name, leases: own })
  const operating = new Operating(node, own)
  const claims = new MoveClaims(node)
  return [
    intake,
    operating,
    claims,
    new SubscriptionWriter(wanted, name),
    new OutgoingMoves({ node, claims, operating }),
    new IncomingMoves({ node, name, claims, operating, intake }),
    new Leases({ terms, own, clock, reading, keys }),
    new Outcomes(node, own),
    new NoticesDue(node, intake, reading),
    new Housekeeping({ terms, name, operating, reading }),
    new Contents(reading, own),
    new TallyQuery(clock, deps.tallyKeptFor, reading),
    new SearchIndex(),
    new DepartedWriter(intake),
    new ErasureWriter(),
    counter,
    { record: recordWriter(node) },
  ] as const
}

/** Methods that need no transaction of the writing session, and that no part has. */
const directCallsOf = ({ node, reading, members }: PostgresStoreDeps, wanted: WantedTypes) =>
  ({
    joinProvider: (destination, provider) => members.join(destination, provider),
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
  }) satisfies Partial<DirectCalls>
