/** Opens a queue in PostgreSQL to read it, or to list its nodes, from any machine, without becoming a node. */
import type { Clock } from '../../system/clock.ts'
import type { NodeDirectory } from '../membership/node-directory.ts'
import type { QueueDatabase } from '../membership/queue-database.ts'
import type { QueueReader } from '../queue-reader.ts'
import { openSession } from './session/client.ts'
import { CommandConnection, Connection } from './session/database-connection.ts'
import { LeastBusy } from './session/least-busy.ts'
import { assertReadable } from './migrations.ts'
import { PostgresNodeDirectory } from './node-directory.ts'
import { createPostgresReader } from './postgres-reader.ts'
import { ReadingSession } from './session/reading-session.ts'

/** Sessions of a command: the second one is opened when a statement is sent while another one is under way. */
const SESSIONS = 2

/** Rejects with DatabaseAway, DatabaseUnusable, NoSuchQueue or QueueTooNew. */
export async function openPostgresReader(database: QueueDatabase): Promise<QueueReader> {
  const terms = { ...database, application: 'deferd command', pipeline: true, settings: { statement_timeout: '15s' } }
  const connect = async () => new Connection(await openSession(terms))
  const sessions = Array.from({ length: SESSIONS }, () => new ReadingSession(connect))
  const close = async () => void (await Promise.all(sessions.map((session) => session.close())))
  const reading = new LeastBusy(sessions)
  try {
    await assertReadable(reading)
  } catch (error) {
    await close()
    throw error
  }
  return createPostgresReader(reading, close)
}

/** Opens the directory of the nodes. Rejects as openPostgresReader does. */
export async function openNodeDirectory(database: QueueDatabase, clock: Clock): Promise<NodeDirectory> {
  const connection = new CommandConnection(await openSession({ ...database, application: 'deferd command' }))
  try {
    await assertReadable(connection)
    return new PostgresNodeDirectory(connection, clock)
  } catch (error) {
    await connection.end()
    throw error
  }
}
