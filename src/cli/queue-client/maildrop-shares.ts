/** Formats the lines of the maildrop's entries for a listing. */
import { submissions } from '../../queue/intake/maildrop-listing.ts'
import { submissionJson } from '../../resources/message-json.ts'
import { submissionRow } from '../render/maildrop-entry.ts'
import { jsonLines } from '../../presentation/text.ts'
import type { WallView } from '../../system/wall-view.ts'
import type { ListingOrder, Share } from './listing-shares.ts'

/** Yields one share per batch of entries, up to the limit. */
export async function* maildropShares(queueDirectory: string, order: ListingOrder, wall: WallView): AsyncGenerator<Share> {
  const { form } = order
  let left = order.limit ?? Infinity
  for await (const batch of submissions(queueDirectory, order.filter, wall)) {
    const listed = batch.slice(0, left)
    left -= listed.length
    const lines =
      form.kind === 'json'
        ? jsonLines(listed.map((one) => submissionJson(one, wall)))
        : Buffer.from(listed.map((submission) => `${submissionRow(submission, { now: order.now, form, wall })}\n`).join(''))
    if (listed.length > 0) yield { count: listed.length, lines }
    if (left === 0) return
  }
}
