/**
 * Joining of a node, and the takeover of one that has failed. A node is one opening of the queue by one process; its number is the
 * owner of its leases.
 */
import { END_ABANDONED } from '../records/operation-round.ts'
import { runRecord } from './session/record-calls.ts'
import { messageOf, queueIdOf, STARTS_UNTIL_SUSPECT, type OwnerId, type RecipientId } from '../../mail/message.ts'
import { convictionOf } from '../decisions/conviction.ts'
import type { NodeParameters, Takeover } from '../membership/node-table.ts'
import { QueueTooNew } from '../errors.ts'
import { Fenced } from '../queue-store.ts'
import { MIGRATIONS, newestIn } from './migrations.ts'
import type { Connection } from './session/database-connection.ts'
import * as sql from './session/node-queries.ts'
import { TransactionEvents, WantedTypes } from './writing/transaction-events.ts'

/** Labels of a node, which other nodes and commands show. */
export interface NodeLabels extends NodeParameters {
  /** Parameter `node_name`. */
  readonly name: string
  /** Version of the program, for example `1.2.0`. */
  readonly program: string
  /** True for a node that takes no shards, such as a command. */
  readonly draining: boolean
}

/**
 * Adds a node whose last known migration is `knows`, and returns its number. Its first session is 1. Throws QueueTooNew when the upgrade
 * to a later migration was finished since the node has examined the tables.
 */
export async function joinNode(connection: Connection, labels: NodeLabels, knows: number = newestIn(MIGRATIONS)): Promise<OwnerId> {
  const { name, program, settings, hostname, draining } = labels
  const [next] = await connection.query<{ id: OwnerId }>(sql.nextNode)
  const [node] = await connection.query<{ id: OwnerId }>(sql.joinNode, [name, program, settings, hostname, draining, knows, next?.id ?? 0])
  if (node === undefined) throw new QueueTooNew('in PostgreSQL', knows + 1, knows)
  if (settings !== '') await connection.query(sql.removeLost, [name])
  return node.id
}

/** A takeover, with the number of deleted contents that belonged to no message. */
type Inheritance = Takeover & { readonly swept: number }

/** The labels of a removed node, and times as PostgreSQL writes them. */
interface Removed extends Pick<NodeLabels, 'name' | 'program' | 'settings'> {
  readonly joinedAt: string
  readonly seenAt: string
}

/**
 * Removes a node that has not beaten since `seenBeat`, in one transaction: ends its leases and operations, frees its shards and deletes its staged
 * contents. Returns null, without a change, when the node has beaten or is gone. `taker` is the node that acts, and records that the other
 * one is lost; absent for an operator. Rejects with Fenced when `taker` is gone itself, and with 55P03 when an open transaction of the node
 * lasts longer than lock_timeout.
 */
export const takeOverNode = (connection: Connection, node: OwnerId, seenBeat: number, taker?: OwnerId): Promise<Inheritance | null> =>
  remove(
    connection,
    node,
    async () => {
      const isFenced = taker !== undefined && (await connection.query(sql.shareNode, [taker])).length === 0
      if (isFenced) throw new Fenced(`node ${taker} was taken over`)
      return connection.query<Removed>(sql.removeNode, [node, seenBeat])
    },
    async ({ name, program, settings, joinedAt, seenAt }, { shards, leases }) => {
      if (taker === undefined || settings === '') return
      await connection.query(sql.addLost, [node, name, program, joinedAt, seenAt, shards, leases, taker])
    },
  )

/** Removes the node that acts, in the same way. Returns null when it is gone. */
export const leaveNode = (connection: Connection, node: OwnerId): Promise<Inheritance | null> =>
  remove(
    connection,
    node,
    () => connection.query(sql.removeOwnNode, [node]),
    async () => undefined,
  )

async function remove<Row extends object>(
  connection: Connection,
  node: OwnerId,
  deleteRow: () => Promise<readonly Row[]>,
  removed: (row: Row, takeover: Takeover) => Promise<void>,
): Promise<Inheritance | null> {
  await connection.command('begin')
  try {
    const [row] = await deleteRow()
    const takeover = row === undefined ? null : await inherit(connection, node)
    if (row !== undefined && takeover !== null) await removed(row, takeover)
    await connection.command('commit')
    return takeover
  } catch (error) {
    if (!connection.isLost) await connection.command('rollback')
    throw error
  }
}

async function inherit(connection: Connection, node: OwnerId): Promise<Inheritance> {
  const ended = await connection.query<{ id: RecipientId; starts: number }>(sql.endLeasesOf, [node, STARTS_UNTIL_SUSPECT])
  const corrupt: string[] = []
  const wanted = new WantedTypes()
  if (ended.some(({ starts }) => convictionOf(starts, 'node') !== null)) await wanted.read(connection)
  const events = new TransactionEvents(wanted)
  for (const { id, starts } of ended) {
    const why = convictionOf(starts, 'node')
    if (why === null) continue
    const message = messageOf(id)
    await connection.query(sql.parkRecipientsOf, [message])
    await connection.query(sql.uncountCorrupt, [message, node])
    const [placed] = await connection.query<{ createdAt: number; sender: string }>(sql.setCorrupt, [message, why])
    if (placed === undefined) continue
    corrupt.push(queueIdOf({ id: message, createdAt: placed.createdAt }))
    events.quarantined({ id: message, ...placed }, why)
  }
  await events.write(connection)
  const shards = await connection.query(sql.freeShardsOf, [node])
  const [staged] = await connection.query<{ swept: number }>(sql.deleteStagedOf, [node])
  await runRecord(connection, END_ABANDONED, node)
  await connection.query(sql.keepSharesOf, [node])
  await connection.query(sql.forgetPulse, [node])
  await connection.query(sql.forgetMarkedBatch, [node])
  await connection.query(sql.forgetQuestions, [node])
  await connection.query(sql.forgetRecalls, [node])
  return { shards: shards.length, leases: ended.length, corrupt, swept: staged?.swept ?? 0 }
}
