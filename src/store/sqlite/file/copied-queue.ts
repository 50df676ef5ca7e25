/** Copies a queue in a thread of its own. */
import { thread } from '../../../system/packaged-files.ts'
import { WorkerClient } from '../../../system/worker-rpc.ts'

export interface Copying {
  /** Folder of the queue. */
  readonly directory: string
  readonly path: string
}

/** Copies one consistent state of the queue to a file, which is not synced. Resolves with its size in bytes; rejects when `stopping` aborts. */
export async function copyInThread(copying: Copying, stopping: AbortSignal): Promise<number> {
  const copier = new WorkerClient<Copying, number>(thread('store/sqlite/file/backup-worker', { name: 'backup' }))
  const abandon = (): void => void copier.abandon(new Error('deferd was stopped'))
  stopping.addEventListener('abort', abandon, { once: true })
  try {
    if (stopping.aborted) abandon()
    return await copier.ask(copying)
  } finally {
    stopping.removeEventListener('abort', abandon)
    await copier.end()
  }
}
