/** Thread of a reader. It opens the queue at the first call and answers calls until it is closed. */
import { statSync } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { answering } from '../../../system/worker-rpc.ts'
import { answerOf, type ReaderCall, type ReaderEngine } from '../../reader-methods.ts'
import { queueFile } from '../../folder/queue-folder.ts'
import { openReaderEngine } from '../reading/sqlite-reader.ts'

const directory = workerData as string
let engine: ReaderEngine | null = null
/** Device and inode of the file that the engine has open. */
let identity = ''

function identityOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? '' : `${stat.dev}:${stat.ino}`
}

answering(
  (call: ReaderCall) => {
    const found = identityOf(queueFile(directory))
    // The owner puts a new file in the place of a damaged one.
    if (found !== identity) engine?.close()
    engine = found === identity && engine !== null ? engine : openReaderEngine(directory)
    identity = found
    return { answer: answerOf(engine, call), transfer: [] }
  },
  () => engine?.close(),
)
