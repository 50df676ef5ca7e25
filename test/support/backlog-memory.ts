/** Prints the bytes of tables that a backlog of 100,000 recipients of as many shares takes: `node --expose-gc backlog-memory.ts`. */
import { Backlog } from '../../src/queue/scheduler/turns/share-backlog.ts'

const COUNT = 100_000
const SLICE = 500

function used(): number {
  if (globalThis.gc === undefined) throw new Error('run node with --expose-gc')
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().arrayBuffers
}

const before = used()
const backlog = new Backlog()
for (let from = 0; from < COUNT; from += SLICE) {
  backlog.beginReading()
  const rows = Array.from({ length: SLICE }, (_, n) => ({
    id: (from + n + 1) * 131_072,
    dueAt: from + n,
    share: `tenant${from + n}.example`,
  }))
  backlog.read({ rows, size: SLICE, now: COUNT }, { weightOf: () => 1 })
}
console.log(JSON.stringify({ recipients: backlog.size, bytes: used() - before }))
