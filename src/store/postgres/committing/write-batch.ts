/**
 * Batches of calls: which calls one transaction takes, and how it runs. A batch whose statements are known from the start takes one
 * round trip: `begin`, the fence, the statements of each method, `commit`.
 */
import type { ShardKeys } from '../../membership/shard-keys.ts'
import type { Shard } from '../../membership/shards.ts'
import { contentBytes, type Call, type PendingCall } from '../../methods.ts'
import type { Connection } from '../session/database-connection.ts'
import { fenceWithKeys } from '../session/node-queries.ts'
import { failureKind, type FailureKind } from '../session/sql-errors.ts'
import { leavesTrace } from '../session/call-traces.ts'
import { isAlone, keysOf, type WriteCall, type WriteMethod } from './call-batching.ts'
import type { WantedTypes } from '../writing/transaction-events.ts'
import { Transaction, type Send, type Sent } from '../writing/write-transaction.ts'

/** Maximum number of calls in one transaction. */
export const BATCH = 128
/** Bytes of content after which a batch is complete. */
const CONTENT = 8 * 1024 * 1024

/** Way in which the calls of each method are sent. */
export type Writers = { readonly [M in WriteMethod]: Send<M> }

export interface PendingWrite extends PendingCall {
  readonly call: Call & WriteCall
}

/** Number of the first calls that make one batch. */
export function batchOf(waiting: readonly PendingWrite[]): number {
  const keys = new Set<string>()
  let bytes = 0
  for (const [n, { call }] of waiting.entries()) {
    bytes += contentBytes(call)
    const own = keysOf(call)
    if (n > 0 && (n === BATCH || bytes > CONTENT || isAlone(call) || own.some((key) => keys.has(key)))) return n
    if (isAlone(call)) return 1
    for (const key of own) keys.add(key)
  }
  return waiting.length
}

/** Result of one try of a batch. `answers` has those that arrived before a loss, by the position of the call. */
export type Tried =
  | { readonly outcome: 'committed'; readonly answers: readonly unknown[]; readonly told: readonly Shard[] }
  | { readonly outcome: 'fenced' }
  | { readonly outcome: 'failed'; readonly kind: FailureKind; readonly error: unknown }
  | { readonly outcome: 'lost'; readonly error: unknown }
  | {
      readonly outcome: 'in doubt'
      readonly error: unknown
      readonly answers: ReadonlyMap<number, unknown>
      readonly tx: Transaction
      readonly number: number
    }

interface BatchTerms {
  readonly node: number
  /** Parameter `node_name`. */
  readonly name: string
  readonly session: number
  /** Number of this transaction. */
  readonly number: number
  readonly writers: Writers
  readonly wanted: WantedTypes
  readonly keys: ShardKeys
}

interface Group {
  readonly positions: readonly number[]
  readonly sent: Sent<unknown>
}

/** Runs calls in one transaction. */
export async function tryBatch(connection: Connection, calls: readonly WriteCall[], terms: BatchTerms): Promise<Tried> {
  const tx = new Transaction(connection, terms)
  if (!calls.some(leavesTrace)) tx.events.markBatch(terms)
  connection.takeWarning()
  const begun = connection.together(() => {
    const opened = Promise.all([
      connection.command('begin'),
      connection.query(fenceWithKeys, [terms.node, terms.session, terms.keys.version]),
    ])
    const groups = send(tx, calls, terms.writers)
    const isLast = groups.every(({ sent }) => sent.isLast)
    return { opened, groups, commit: isLast ? commit(connection, tx, terms) : null }
  })
  const [opened, ...answered] = await Promise.allSettled([begun.opened, ...begun.groups.map(({ sent }) => sent.answers)])
  const failure = [opened, ...answered].find((one) => one.status === 'rejected')
  if (begun.commit === null && failure !== undefined && !connection.isLost && failureKind(failure.reason) !== 'lost')
    await rollBack(connection)
  const wasSent = begun.commit !== null || failure === undefined
  const [committed] = await Promise.allSettled([
    begun.commit ?? (failure === undefined ? connection.together(() => commit(connection, tx, terms)) : 'ROLLBACK'),
  ])
  const warning = connection.takeWarning()
  if (committed.status === 'fulfilled' && committed.value === 'COMMIT' && warning === null) {
    return { outcome: 'committed', answers: spread(begun.groups, answered, calls.length), told: tx.committed() }
  }
  const error: unknown =
    failure?.reason ?? (committed.status === 'rejected' ? committed.reason : new Error(warning ?? 'the transaction was rolled back'))
  const isLost = connection.isLost || warning !== null || failureKind(committed.status === 'rejected' ? committed.reason : error) === 'lost'
  if (isLost) {
    connection.destroy()
    if (!wasSent) return { outcome: 'lost', error }
    return {
      outcome: 'in doubt',
      error,
      tx,
      number: terms.number,
      answers: new Map(begun.groups.flatMap((group, n) => arrived(group, answered[n]))),
    }
  }
  if (opened.status === 'rejected' && failureKind(opened.reason) === 'unmet') return { outcome: 'fenced' }
  return { outcome: 'failed', kind: failureKind(error), error }
}

async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.command('rollback')
  } catch {
    connection.destroy()
  }
}

function send(tx: Transaction, calls: readonly WriteCall[], writers: Writers): readonly Group[] {
  const groups = Map.groupBy(calls.entries(), ([, { method }]) => method)
  return [...groups].map(([method, those]) => {
    const writer = writers[method] as (tx: Transaction, args: readonly unknown[]) => Sent<unknown>
    return {
      positions: those.map(([n]) => n),
      sent: sentBy(() =>
        writer(
          tx,
          those.map(([, { args }]) => args),
        ),
      ),
    }
  })
}

/** An error before all statements were sent leads to a rollback. */
function sentBy(write: () => Sent<unknown>): Sent<unknown> {
  try {
    return write()
  } catch (error) {
    return { answers: Promise.reject(error instanceof Error ? error : new Error(String(error))), isLast: false }
  }
}

/** Writes traffic and events, and commits. Resolves with the command tag, which is ROLLBACK when a statement failed. */
async function commit(connection: Connection, tx: Transaction, terms: BatchTerms): Promise<string> {
  const written = [tx.traffic.write(tx, terms), tx.shares.write(tx, terms.node), tx.events.write(tx)]
  const [tag] = await Promise.all([connection.command('commit'), ...written])
  return tag
}

function spread(
  groups: readonly Group[],
  answered: readonly PromiseSettledResult<readonly unknown[]>[],
  count: number,
): readonly unknown[] {
  const found = new Map(groups.flatMap((group, n) => arrived(group, answered[n])))
  return Array.from({ length: count }, (_, n) => found.get(n))
}

const arrived = ({ positions }: Group, result: PromiseSettledResult<readonly unknown[]> | undefined): [number, unknown][] =>
  result?.status === 'fulfilled' ? positions.map((position, n) => [position, result.value[n]]) : []
