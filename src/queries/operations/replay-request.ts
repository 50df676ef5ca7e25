/** Replays of events as the API and the forms of the page ask for them. */
import { z } from 'zod'
import { replayKinds } from '../../resources/subscription-json.ts'
import { replayTime, type Replayed } from '../../subscriptions/subscription-changes.ts'
import { formatDuration } from '../../system/duration.ts'
import { durationText } from '../message-query.ts'

export const replayRequest = z
  .strictObject({
    events: replayKinds.describe('those that wait, those that the target refused, all of some time, or a single one'),
    since: durationText.pipe(replayTime).optional().describe('with `"events": "since"`: the time, such as 2h or 3d'),
    event: z.string().min(1).max(100).optional().describe('with `"events": "one"`: its id, as in the field `webhook-id`'),
    dry_run: z.boolean().optional(),
  })
  .refine(({ events, since }) => (events === 'since') === (since !== undefined), {
    path: ['since'],
    message: 'expected with "events": "since", and only then',
  })
  .refine(({ events, event }) => (events === 'one') === (event !== undefined), {
    path: ['event'],
    message: 'expected with "events": "one", and only then',
  })

export function replayedBy({ events, since = 0, event: id = '' }: z.output<typeof replayRequest>): Replayed {
  if (events === 'since') return { kind: events, ago: since }
  return events === 'one' ? { kind: events, id } : { kind: events }
}

/** The members of a request for a replay. */
export const replayMembers = (
  events: Replayed,
): { readonly events: Replayed['kind']; readonly since?: string; readonly event?: string } => ({
  events: events.kind,
  ...(events.kind === 'since' ? { since: formatDuration(events.ago) } : {}),
  ...(events.kind === 'one' ? { event: events.id } : {}),
})
