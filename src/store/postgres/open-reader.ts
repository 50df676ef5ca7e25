/** Opens a queue in PostgreSQL to read it, from any machine, without becoming a node. */
import type { QueueReader } from '../queue-reader.ts'
import { openSession, type SessionTerms } from './session/client.ts'
import { Connection } from './session/database-connection.ts'
import { assertReadable } from './migrations.ts'
import { createPostgresReader } from './postgres-reader.ts'
import { ReadingSession } from './session/reading-session.ts'

/** Rejects with DatabaseAway, DatabaseUnusable, NoSuchQueue or QueueTooNew. */
export async function openPostgresReader(database: Pick<SessionTerms, 'url' | 'durability'>): Promise<QueueReader> {
  const terms = { ...database, application: 'deferd command', pipeline: true, settings: { statement_timeout: '15s' } }
  const reading = new ReadingSession(async () => new Connection(await openSession(terms)))
  try {
    await assertReadable(reading)
  } catch (error) {
    await reading.close()
    throw error
  }
  return createPostgresReader(reading, () => reading.close())
}
