/** Reads the changes of the providers of destinations that a node has not seen. */
import type { OwnerId } from '../../../mail/message.ts'
import type { KeyChange, ShardKeys } from '../../membership/shard-keys.ts'
import type { Statements } from './database-connection.ts'
import { keysOf } from './node-queries.ts'

const keyChanges = 'select destination, provider from provider_member where keys > $1 and keys <= $2'

/** Applies the changes. Returns false, without an effect, when the node was taken over. */
export async function refreshKeys(statements: Statements, node: OwnerId, keys: ShardKeys): Promise<boolean> {
  const from = keys.version
  const [row] = await statements.query<{ keys: number; sharesSince: number | null }>(keysOf, [node])
  if (row === undefined || row.keys <= from) return row !== undefined
  const changes = await statements.query<KeyChange>(keyChanges, [from, row.keys])
  // Another session of this node may have read further.
  if (keys.version < row.keys) keys.apply(row.keys, changes, row.sharesSince)
  return true
}
