/**
 * The terms on which a database holds a queue: acknowledged mail survives a crash, and, unless the operator accepts the contrary, the
 * loss of the primary server. Decided for each session, because a failover may lead to a server with other settings.
 */

import type { Durability } from '../../membership/queue-database.ts'

/** Facts about a server and a session. */
export interface DatabaseFacts {
  /** The server's own description, such as `PostgreSQL 18.4 on x86_64-pc-linux-gnu`. */
  readonly version: string
  /** server_version_num, such as 180004. */
  readonly versionNumber: number
  readonly encoding: string
  readonly fsync: string | null
  readonly fullPageWrites: string | null
  readonly synchronousCommit: string
  readonly standbyNames: string | null
  readonly isolation: string
  /** Process ids of the server's session for two statements. */
  readonly backends: readonly [number, number]
  /** Session settings that were asked for and have another value. */
  readonly missing: readonly string[]
}

const OLDEST_VERSION = 150_000

const DURABLE_COMMITS: ReadonlySet<string> = new Set(['on', 'remote_apply'])

/** The reason why the database cannot hold a queue, with the setting and the remedy; null when it can. */
export function refusal(facts: DatabaseFacts, durability: Durability): string | null {
  if (!facts.version.startsWith('PostgreSQL ')) {
    return `it is ${facts.version.split(' ', 1)[0]}: use PostgreSQL 15 or newer, whose row locks deferd needs`
  }
  if (facts.versionNumber < OLDEST_VERSION) return `it is ${facts.version.split(' ', 2).join(' ')}: use PostgreSQL 15 or newer`
  return poolerRefusal(facts) ?? serverRefusal(facts) ?? commitRefusal(facts, durability)
}

function poolerRefusal({ missing, backends: [first, second] }: DatabaseFacts): string | null {
  const remedy = 'connect to the server directly, not through a pooler'
  if (missing.length > 0) return `the session settings ${missing.join(', ')} did not arrive: ${remedy}`
  return first === second ? null : `two statements of one connection ran in different sessions (pg_backend_pid): ${remedy}`
}

function serverRefusal({ encoding, isolation, fsync, fullPageWrites }: DatabaseFacts): string | null {
  if (encoding !== 'UTF8') return `server_encoding is ${encoding}: create the database with encoding 'UTF8'`
  if (isolation !== 'read committed') return `default_transaction_isolation is ${isolation}: set it to 'read committed'`
  if (fsync === 'off') return 'fsync is off, so that a crash loses acknowledged mail: set fsync = on'
  if (fullPageWrites === 'off') return 'full_page_writes is off, so that a crash damages the queue: set full_page_writes = on'
  return null
}

function commitRefusal({ synchronousCommit, standbyNames }: DatabaseFacts, durability: Durability): string | null {
  if (!DURABLE_COMMITS.has(synchronousCommit)) {
    return `synchronous_commit is ${synchronousCommit}, so that a crash loses acknowledged mail: set it to on, for the user of queue_database too`
  }
  if (durability === 'primary' || (standbyNames ?? '') !== '') return null
  return 'synchronous_standby_names is empty, so that the loss of this server loses acknowledged mail: name a standby there, or set queue_database_durability = "primary" when its storage is replicated otherwise'
}
