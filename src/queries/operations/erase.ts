/** Erasing addresses of mail that has left the queue, as clients ask for it. */
import { z } from 'zod'
import { invalidPart } from '../../http/problem-details.ts'
import { actorOf, type Requester } from '../../http/requests/requester.ts'
import { NAMED_INSTANT } from '../../mail/message-times.ts'
import { erasurePlanJson, type ErasurePlanJson } from '../../resources/plans/erasure-plan-json.ts'
import type { IdempotentRequest } from '../../store/records/audit-log.ts'
import type { ErasureTerms } from '../../store/returned-mail.ts'
import { instantText } from '../named-time.ts'
import { begun, type Begun } from './operations-view.ts'
import type { QueueView } from '../queue-view.ts'

const pattern = z
  .string()
  .min(1)
  .max(1_000)
  .refine((text) => /[*@]/.test(text), { error: 'expected an address, or a pattern such as *@example.com' })

export const eraseShape = z.strictObject({
  recipient: pattern.optional().describe('addresses of recipients; * matches any text'),
  sender: pattern.optional().describe('envelope senders; * matches any text'),
  before: instantText.optional().describe(`mail that left the queue before this time: ${NAMED_INSTANT}; now when absent`),
  dry_run: z.boolean().optional().describe('answer with a plan, and change nothing'),
  reason: z.string().min(1).max(1_000).optional().describe('reason of the operator, for the audit log'),
})
/** As a client writes it. */
export type EraseBody = z.input<typeof eraseShape>
type EraseOrder = z.output<typeof eraseShape>

function termsOf({ clock }: QueueView, { recipient, sender, before }: EraseOrder): ErasureTerms {
  if ((recipient === undefined) === (sender === undefined)) throw invalidPart('/recipient', 'expected either recipient or sender')
  // Includes mail that left in this millisecond.
  const now = clock.now() + 1
  const until = before === undefined ? now : Math.min(now, clock.wall.queueTime(before))
  return { side: sender === undefined ? 'recipient' : 'sender', pattern: recipient ?? sender ?? '', before: until }
}

export async function planErasure(view: QueueView, order: EraseOrder): Promise<ErasurePlanJson> {
  const terms = termsOf(view, order)
  return erasurePlanJson(await view.operations().erasing.plan(terms), terms.before, view.clock.wall)
}

/** Begins an erasure, and waits for its end for some seconds. */
export function beginErasure(
  view: QueueView,
  order: EraseOrder,
  { requester, request }: { readonly requester: Requester; readonly request: IdempotentRequest | null },
): Promise<Begun> {
  const terms = termsOf(view, order)
  const told = { ...actorOf(requester), reason: order.reason ?? null }
  return begun(view, request, () => view.operations().erasing.start({ terms, ...told, request }))
}
