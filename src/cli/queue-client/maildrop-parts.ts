/** Formats the lines of the maildrop's entries for a listing. */
import { submissions } from '../../queue/intake/maildrop-listing.ts'
import { submissionJson } from '../../resources/message-json.ts'
import { submissionRowJson } from '../../resources/message-row-json.ts'
import { listRow } from '../render/list-row.ts'
import { jsonLines } from '../../presentation/text.ts'
import type { WallView } from '../../system/wall-view.ts'
import type { ListingOrder, ListingPart } from './listing-parts.ts'

/** Yields one part per batch of entries, up to the limit. */
export async function* maildropParts(queueDirectory: string, order: ListingOrder, wall: WallView): AsyncGenerator<ListingPart> {
  const { form } = order
  let left = order.limit ?? Infinity
  for await (const batch of submissions(queueDirectory, order.filter, wall)) {
    const listed = batch.slice(0, left)
    left -= listed.length
    const lines =
      form.kind === 'json'
        ? jsonLines(listed.map((one) => submissionJson(one, wall)))
        : Buffer.from(listed.map((one) => `${listRow(submissionRowJson(one, wall), { now: wall.of(order.now), form })}\n`).join(''))
    if (listed.length > 0) yield { count: listed.length, lines }
    if (left === 0) return
  }
}
