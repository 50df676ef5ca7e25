/** Names of the destinations with queued mail, which a reader returns in pages. */
import type { DestinationName } from '../mail/message.ts'
import type { QueueReader } from './queue-reader.ts'

const PAGE = 500

/** In the order of their names. */
export async function* busyDestinations(reader: Pick<QueueReader, 'destinationNames'>): AsyncGenerator<DestinationName> {
  for (let after = ''; ;) {
    const page = await reader.destinationNames({ after, limit: PAGE })
    yield* page
    if (page.length < PAGE) return
    after = page.at(-1) ?? after
  }
}
