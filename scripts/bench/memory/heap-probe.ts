/**
 * Preloaded into a daemon (`node --import`): at SIGUSR2 its main thread collects garbage, and appends a line of JSON with the bytes in use to the file
 * that BENCH_HEAP_FILE names.
 */
import { appendFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

export interface HeapUse {
  /** Bytes of reachable objects on the heap of the main thread, and of its buffers outside the heap. */
  readonly heap: number
  /** VmRSS of the process in bytes. */
  readonly resident: number
}

export const HEAP_FILE = 'BENCH_HEAP_FILE'

function tell(file: string, collect: () => void): void {
  // The finalizers of the first collection release more.
  collect()
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  const use: HeapUse = { heap: heapUsed + external, resident: rss }
  appendFileSync(file, `${JSON.stringify(use)}\n`)
}

const file = process.env[HEAP_FILE]
if (isMainThread && file !== undefined) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  process.on('SIGUSR2', () => tell(file, collect))
}
