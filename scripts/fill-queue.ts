/**
 * Fills a queue directory with deferred mail, to try the daemon and the commands on a large queue.
 *
 *   node scripts/fill-queue.ts DIRECTORY MESSAGES [DESTINATIONS] [MINUTES-UNTIL-DUE]
 */
import { openStore } from '../src/store/sqlite/open-store.ts'
import { fillBacklog } from '../test/support/backlog.ts'

const [directory, messages = '1000000', destinations = '10000', minutes = '120'] = process.argv.slice(2)
if (directory === undefined) throw new Error('usage: node scripts/fill-queue.ts DIRECTORY MESSAGES [DESTINATIONS] [MINUTES-UNTIL-DUE]')
const { store, close } = await openStore(directory, { threads: false, create: true })
const began = performance.now()
await fillBacklog(store, {
  messages: Number(messages),
  now: Date.now(),
  destinationOf: (n) => `d${String(n % Number(destinations)).padStart(5, '0')}.example`,
  // Spread over an hour in the order of arrival, as attempts leave them.
  dueIn: (n) => Number(minutes) * 60_000 + (n / Number(messages)) * 3_600_000,
})
await close()
console.log(`${messages} messages in ${((performance.now() - began) / 1000).toFixed(0)} s`)
