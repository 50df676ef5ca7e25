/**
 * The stores that are compared: SQLite in a thread of its own, and a node on PostgreSQL.
 */
import { parseDatabaseUrl } from '../../../src/config/values/database-url.ts'
import type { DestinationName } from '../../../src/mail/message.ts'
import { shardOf } from '../../../src/store/membership/shards.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { openSession } from '../../../src/store/postgres/session/client.ts'
import { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import type { QueueReader } from '../../../src/store/queue-reader.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { realClock } from '../../../test/support/real-clock.ts'

/** One of `of` stores that share the shards of a queue. */
export interface Share {
  readonly index: number
  readonly of: number
}

/** A store that is open in this process. */
export interface BenchStore {
  readonly store: QueueStore
  readonly reader: QueueReader
  readonly close: () => Promise<void>
}

/** Opens a queue by its folder, or by its URL as a node that owns its share of the shards. */
export async function openBenchStore(place: string, share: Share = { index: 0, of: 1 }): Promise<BenchStore> {
  const url = parseDatabaseUrl(place)
  if (url === null) return openStore(place, { threads: true, create: true })
  const labels = { name: `bench${share.index}`, program: '', settings: '', hostname: '', draining: false }
  const queue = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
  const session = new Connection(await openSession({ url, durability: 'primary', application: 'deferd bench', pipeline: true }))
  await session.query(`update shard set owner = ${queue.node} where id % ${share.of} = ${share.index}`)
  await session.end()
  return queue
}

/** So many destinations whose shards are those of a share. */
export function destinationsOf({ index, of }: Share, count: number): readonly DestinationName[] {
  const found: DestinationName[] = []
  for (let n = 0; found.length < count; n++) if (shardOf(`d${n}.example`) % of === index) found.push(`d${n}.example`)
  return found
}
