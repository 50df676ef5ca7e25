/** Deliverability in JSON: the domains of senders, with their keys, mail and checks, and the providers that get mail. */
import { z } from 'zod'
import type { SeriesCounts } from '../../store/records/series.ts'
import { domainCheckSummaryShape } from './domain-check-json.ts'
import { count, time, type Json } from '../members.ts'

const flowShape = {
  delivered: count,
  deferred: count.describe('failed attempts after which a recipient waits'),
  bounced: count,
  expired: count,
  delivered_share: z
    .number()
    .nullable()
    .describe('delivered recipients of those that left the queue, from 0 to 1; null before the first one'),
}

const senderDomainShape = z.object({
  sender_domain: z.string(),
  keys: z
    .array(z.object({ domain: z.string().describe('`d=` of the signatures'), selector: z.string(), signs: z.boolean() }))
    .describe('of the `[dkim]` table for the domain; empty without one'),
  accepted: count,
  ...flowShape,
  check: domainCheckSummaryShape.nullable().describe('the last check of the domain for its own senders; null without one'),
})

const providerFlowShape = z.object({ provider: z.string(), ...flowShape })

export const deliverabilityShape = z
  .object({
    since: time.describe('begin of the counts of mail'),
    sender_domains: z.array(senderDomainShape).describe('those with `[dkim]` tables, `myorigin`, and those that sent the most mail'),
    providers: z.array(providerFlowShape).describe('those with the most deferrals first'),
    checks: z.array(domainCheckSummaryShape).describe('the other kept checks, the newest first'),
    as_of: time,
  })
  .meta({ id: 'Deliverability' })

export type DeliverabilityJson = Json<typeof deliverabilityShape>
export type SenderDomainJson = DeliverabilityJson['sender_domains'][number]
export type ProviderFlowJson = DeliverabilityJson['providers'][number]

export function flowJson({ delivered, deferred, bounced, expired }: SeriesCounts): Json<z.ZodObject<typeof flowShape>> {
  const left = delivered + bounced + expired
  return { delivered, deferred, bounced, expired, delivered_share: left === 0 ? null : delivered / left }
}
