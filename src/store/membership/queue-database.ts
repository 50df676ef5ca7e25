/** The database of a queue that several nodes share (queue_database). */
import type { Config } from '../../config/options.ts'
import { parseDatabaseUrl, type DatabaseUrl } from '../../config/values/database-url.ts'

/** The promise of a 250: `replicated`, the commit is on a standby too; `primary`, the server's own storage is safe enough. */
export type Durability = 'replicated' | 'primary'

export interface QueueDatabase {
  readonly url: DatabaseUrl
  readonly durability: Durability
}

/** Database and durability of the configured queue. Throws when queue_database is empty; its form was checked with the configuration. */
export function databaseOf(config: Pick<Config, 'queue_database' | 'queue_database_durability'>): QueueDatabase {
  const url = parseDatabaseUrl(config.queue_database)
  if (url === null) throw new Error('queue_database names no database')
  return { url, durability: config.queue_database_durability }
}
