/** Entries of the suppression list in JSON. */
import { z } from 'zod'
import { isListed, SUPPRESSION_REASONS, type Suppression } from '../../store/records/suppression-entry.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { count, next, textOrNull, time, timeOrNull, type Json } from '../members.ts'

export const suppressionShape = z
  .object({
    scope: z.string().describe('sender domain; * for all'),
    address: z.string().describe('address, or @domain'),
    state: z.enum(['listed', 'counting', 'ended']).describe('counting: it was refused, and is not listed yet'),
    reason: z.enum(SUPPRESSION_REASONS).nullable(),
    text: textOrNull.describe('the last reply that refused the address, or a text of an operator'),
    since_time: timeOrNull,
    expire_time: timeOrNull,
    hits: count.describe('replies that refused the address'),
    first_hit_time: timeOrNull,
    last_hit_time: timeOrNull,
    destination: textOrNull,
    added_by: z.string(),
    listings: count.describe('listings by refusals; each is twice as long as the one before, up to a year'),
  })
  .meta({ id: 'Suppression' })

export type SuppressionJson = Json<typeof suppressionShape>

export const suppressionPageShape = z.object({ entries: z.array(suppressionShape), next })

export type SuppressionPageJson = Json<typeof suppressionPageShape>

export const suppressionStopsShape = z.object({
  stops: z
    .array(z.object({ scope: z.string(), time }))
    .describe('sender domains for which no address is listed until an operator resumes it'),
})

export type SuppressionStopsJson = Json<typeof suppressionStopsShape>

export const suppressionRemovalShape = z.object({
  removed: count.describe('number of entries; with `dry_run`, of those that would be removed'),
  entries: z.array(suppressionShape).describe('the first 500 of them'),
})

export type SuppressionRemovalJson = Json<typeof suppressionRemovalShape>

export const suppressionJson = (
  one: Suppression,
  { now, wall }: { readonly now: QueueTime; readonly wall: WallView },
): SuppressionJson => ({
  scope: one.scope,
  address: one.address,
  state: isListed(one, now) ? 'listed' : one.strikes.length > 0 || one.reason === null ? 'counting' : 'ended',
  reason: one.reason,
  text: one.reply,
  since_time: wall.secondsOrNull(one.since),
  expire_time: one.reason === null ? null : wall.secondsOrNull(one.until),
  hits: one.hits,
  first_hit_time: wall.secondsOrNull(one.firstHitAt),
  last_hit_time: wall.secondsOrNull(one.lastHitAt),
  destination: one.destination,
  added_by: one.addedBy,
  listings: one.listings,
})
