/**
 * A process that queues mail as fast as possible and prints the acknowledged ids, until it is killed.
 */
import { openInlineStore } from '../../../src/store/sqlite/clients/inline-store.ts'
import { openWorkerStore } from '../../../src/store/sqlite/clients/worker-store.ts'
import { queue } from '../../conformance/mail.ts'

const [directory = '', shell] = process.argv.slice(2)
const { store } = await (shell === 'worker' ? openWorkerStore : openInlineStore)({ directory })
for (;;) {
  const ids = await Promise.all(Array.from({ length: 20 }, () => queue(store, { leased: true, content: [Buffer.alloc(20_000, 'x')] })))
  process.send?.(ids)
  await new Promise((resolve) => setImmediate(resolve))
}
