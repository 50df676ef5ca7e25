/** Worker thread that reads a database without a pause: each transaction begins before the previous one ends. */
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'better-sqlite3'

const { path, forMs } = workerData as { readonly path: string; readonly forMs: number }
const readers = [new Database(path, { readonly: true }), new Database(path, { readonly: true })] as const
const lock = new Int32Array(new SharedArrayBuffer(4))
const began = performance.now()
readers[0].exec('begin; select count(*) from meta')
parentPort?.postMessage('reading', [])
for (let turn = 0; performance.now() - began < forMs; turn++) {
  const [current, next] = turn % 2 === 0 ? readers : [readers[1], readers[0]]
  next.exec('begin; select count(*) from meta')
  Atomics.wait(lock, 0, 0, 10)
  current.exec('commit')
}
for (const reader of readers) reader.close()
