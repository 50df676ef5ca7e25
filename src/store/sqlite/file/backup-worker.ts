/** The thread that copies a queue for a backup, so that its reads and writes do not block the daemon. */
import { answering } from '../../../system/worker-rpc.ts'
import type { Copying } from './copied-queue.ts'
import { openForReading } from './database.ts'
import { copyDatabase } from './restore.ts'

answering(
  async ({ directory, path }: Copying) => {
    const db = openForReading(directory)
    try {
      return { answer: await copyDatabase(db, path, 'delete'), transfer: [] }
    } finally {
      db.close()
    }
  },
  () => undefined,
)
