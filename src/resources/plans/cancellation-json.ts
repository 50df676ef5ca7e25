/** Answers to a program that changes its own messages. */
import { z } from 'zod'
import type { Cancelled } from '../../queue/cancellation.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { WallView } from '../../system/wall-view.ts'
import { time, timeOrNull, type Json } from '../members.ts'

const recipients = z.array(z.object({ queue_id: z.string(), recipient: z.string() }))

export const cancellationShape = z
  .object({
    cancelled: recipients.describe('no delivery to these begins'),
    too_late: recipients.describe('with an outcome, or in transfer'),
  })
  .meta({ id: 'Cancellation' })

export const cancellationJson = (outcomes: readonly Cancelled[]): Json<typeof cancellationShape> => ({
  cancelled: outcomes.flatMap(({ queueId, cancelled }) => cancelled.map((recipient) => ({ queue_id: queueId, recipient }))),
  too_late: outcomes.flatMap(({ queueId, tooLate }) => tooLate.map((recipient) => ({ queue_id: queueId, recipient }))),
})

export const rescheduledShape = z.object({ queue_id: z.string(), not_before: time, expires: timeOrNull }).meta({ id: 'Rescheduled' })

export const rescheduledJson = (
  { queueId, notBefore, expires }: { readonly queueId: string; readonly notBefore: QueueTime; readonly expires: QueueTime | undefined },
  wall: WallView,
): Json<typeof rescheduledShape> => ({ queue_id: queueId, not_before: wall.seconds(notBefore), expires: wall.secondsOrNull(expires) })
