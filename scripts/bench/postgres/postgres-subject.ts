/**
 * The queue in PostgreSQL beside the one in SQLite.
 */
import { reasonWithoutPostgres } from '../../../test/support/postgres-server.ts'
import type { Subject } from '../figures/subject.ts'
import { DATABASE_AWAY, FAULTS, TAKEOVER } from './failure-part.ts'
import { RELAY, RELAYHOST, STANDBY } from './relay-part.ts'
import { STORE } from './store-part.ts'
import { SNAPSHOT, THROUGH } from './through-part.ts'
import { WAITING } from './waiting-part.ts'
import { WAKE_UP } from './wake-up-part.ts'

export const POSTGRES: Subject = {
  name: 'postgres',
  about: `Measures the queue in PostgreSQL beside the one in SQLite, in turns, and how
several nodes on one queue behave. PostgreSQL is the development dependency.`,
  missing: reasonWithoutPostgres,
  parts: [STORE, RELAY, STANDBY, RELAYHOST, WAKE_UP, WAITING, THROUGH, SNAPSHOT, TAKEOVER, DATABASE_AWAY, FAULTS],
}
