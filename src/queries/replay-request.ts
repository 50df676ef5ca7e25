/** Replays of events as the API and the forms of the page ask for them. */
import { z } from 'zod'
import { replayTime, type Replayed } from '../subscriptions/subscription-changes.ts'
import { durationText } from './message-query.ts'

export const replayRequest = z
  .strictObject({
    events: z.enum(['waiting', 'parked', 'since']).describe('those that wait, those that the target refused, or all of some time'),
    since: durationText.pipe(replayTime).optional().describe('with `"events": "since"`: the time, such as 2h or 3d'),
    dry_run: z.boolean().optional(),
  })
  .refine(({ events, since }) => (events === 'since') === (since !== undefined), {
    path: ['since'],
    message: 'expected with "events": "since", and only then',
  })

export const replayedBy = ({ events, since }: z.output<typeof replayRequest>): Replayed =>
  events === 'since' ? { kind: 'since', ago: since ?? 0 } : { kind: events }
