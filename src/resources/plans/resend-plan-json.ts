/** The effect that sending mail again would have. */
import { z } from 'zod'
import type { ResendPlan } from '../../queue/resend-selection.ts'
import { SUPPRESSION_REASONS } from '../../store/records/suppression-entry.ts'
import { listedText } from '../../suppression/refusal-text.ts'
import type { WallView } from '../../system/wall-view.ts'
import { departedMessageJson, departedMessageShape } from '../departed-message-json.ts'
import { count, time, type Json } from '../members.ts'

const suppressedShape = z
  .object({
    left_out: count.describe('failed recipients that are left out, with `suppression = yes`'),
    sent: count.describe('failed recipients to whom mail is sent all the same, with `suppression = warn`'),
    examples: z.array(
      z.object({
        recipient: z.string(),
        scope: z.string().describe('sender domain; * for all'),
        reason: z.enum(SUPPRESSION_REASONS).nullable(),
        text: z.string().describe('since when the address is listed, and the reply or text of the entry'),
      }),
    ),
  })
  .describe('failed recipients on the suppression list')

const planShape = z.object({
  messages: count.describe('messages that would be sent again'),
  recipients: count.describe('failed recipients of them, to whom alone they would be sent'),
  bytes: count,
  destinations: z.array(z.object({ destination: z.string(), recipients: count })).describe('those with the most recipients'),
  sent_before: count.describe('failed recipients that are left out because they were sent again before'),
  without_content: count.describe('failed recipients that are left out because the content is not kept (returned_content_retention)'),
  requeued: count.describe('failed recipients that are left out because the content went on with the others, when these were requeued'),
  suppressed: suppressedShape,
  unknown: z.array(z.string()).describe('ids that the history does not have'),
  examples: z.array(departedMessageShape),
  left_before: time.describe('mail that leaves the queue later is not selected, when this condition is repeated'),
})

export const resendPlanShape = z
  .object({ operation: z.literal('resend'), dry_run: z.literal(true), plan: planShape })
  .meta({ id: 'ResendPlan' })

export type ResendPlanJson = Json<typeof planShape>

const DESTINATIONS = 20

export const resendPlanJson = (plan: ResendPlan, at: number, wall: WallView): ResendPlanJson => ({
  messages: plan.messages,
  recipients: plan.recipients,
  bytes: plan.bytes,
  destinations: plan.destinations.slice(0, DESTINATIONS).map((one) => ({ ...one })),
  sent_before: plan.sentBefore,
  without_content: plan.withoutContent,
  requeued: plan.requeued,
  suppressed: {
    left_out: plan.suppressed,
    sent: plan.warned,
    examples: plan.listed.map(({ recipient, entry }) => ({
      recipient,
      scope: entry.scope,
      reason: entry.reason,
      text: listedText(entry, wall),
    })),
  },
  unknown: [...plan.unknown],
  examples: plan.examples.map((details) => departedMessageJson(details, details.recipients, wall)),
  left_before: wall.seconds(at),
})
