/**
 * Fills a queue folder with deferred mail, to see how the daemon and the commands do with a large one.
 *
 *   node scripts/fill-queue.ts DIRECTORY MESSAGES [DESTINATIONS] [MINUTES-UNTIL-DUE]
 */
import { takeOwnership } from '../src/queue/owner-lock.ts'
import { openInlineStore } from '../src/queue/sqlite/inline-store.ts'
import { fillBacklog } from '../test/support/backlog.ts'

const [directory, messages = '1000000', destinations = '10000', minutes = '120'] = process.argv.slice(2)
if (directory === undefined) throw new Error('usage: node scripts/fill-queue.ts DIRECTORY MESSAGES [DESTINATIONS] [MINUTES-UNTIL-DUE]')
const ownership = takeOwnership(directory)
const { store } = await openInlineStore({ directory })
const began = performance.now()
await fillBacklog(store, {
  messages: Number(messages),
  now: Date.now(),
  destinationOf: (n) => `d${String(n % Number(destinations)).padStart(5, '0')}.example`,
  // Over an hour, in the order they came, as attempts leave them.
  dueIn: (n) => Number(minutes) * 60_000 + (n / Number(messages)) * 3_600_000,
})
await store.close()
ownership.release()
console.log(`${messages} messages in ${((performance.now() - began) / 1000).toFixed(0)} s`)
