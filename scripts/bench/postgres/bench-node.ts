/**
 * Daemons as nodes of one queue in PostgreSQL.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { PostgresServer } from '../../../test/support/postgres-server.ts'
import { startDaemon, type BenchDaemon, type Settings } from '../figures/bench-daemon.ts'
import type { Setting } from '../figures/subject.ts'

const JOIN_LIMIT = 60_000

/** Starts a node; `url` names the database of its queue. */
export const startNode = (setting: Setting, name: string, url: string, settings: Settings): Promise<BenchDaemon> =>
  startDaemon(setting, name, { queue_database: url, queue_database_durability: 'primary', node_name: name, ...settings })

/** Resolves when these nodes have all shards among them, and each has some. */
export async function shared(server: PostgresServer, database: string, names: readonly string[]): Promise<void> {
  const deadline = performance.now() + JOIN_LIMIT
  for (;;) {
    const shards = await shardsOf(server, database)
    const owners = new Set(shards.values())
    if (shards.size === 256 && owners.size === names.length && names.every((name) => owners.has(name))) return
    if (performance.now() > deadline) throw new Error(`${names.join(', ')} do not share the shards after ${JOIN_LIMIT / 1_000} s`)
    await pause(50)
  }
}

/** Names of the nodes that own the shards, by shard. */
export async function shardsOf(server: PostgresServer, database: string): Promise<ReadonlyMap<number, string>> {
  const rows = await server.query(`select shard.id, node.name from shard join node on node.id = shard.owner`, database)
  return new Map(rows.map(({ id, name }) => [Number(id), String(name)]))
}
