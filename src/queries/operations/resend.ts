/** Sending mail of the history again, as clients ask for it. */
import { z } from 'zod'
import { Problem, invalidPart, type ProblemKind } from '../../http/problem-details.ts'
import { actorOf, type Requester } from '../../http/requests/requester.ts'
import { FINAL_STATES } from '../../mail/message.ts'
import { formatInstant, NAMED_INSTANT } from '../../mail/message-times.ts'
import { NothingToResend } from '../../queue/resending.ts'
import { namedIds } from '../../queue/operation-words.ts'
import { parseRate, RATE, rateText } from '../../queue/resend-rate.ts'
import type { DepartedSelection, ResendTerms } from '../../queue/resend-selection.ts'
import { resendPlanJson, type ResendPlanJson } from '../../resources/plans/resend-plan-json.ts'
import type { IdempotentRequest } from '../../store/records/audit-log.ts'
import { shellWord } from '../../system/shell-word.ts'
import { filterOf, type HistoryQuery } from '../departed-mail.ts'
import { durationText, maySee, statusText } from '../message-query.ts'
import { instantText, ordered } from '../named-time.ts'
import { begun, type Begun } from './operations-view.ts'
import type { QueueView } from '../queue-view.ts'

export const NOTHING_TO_RESEND: ProblemKind = {
  slug: 'nothing-to-resend',
  status: 409,
  title: 'Nothing can be sent again',
  about:
    'No selected message has a failed recipient that was not sent again before and is not on the suppression list, and whose content is kept; `detail` has the numbers. `"again": true` sends to the former once more.',
}

const pattern = z.string().min(1).max(1_000)

/** Conditions on mail that has left the queue. */
export const historyConditions = {
  sender: pattern.optional().describe('envelope sender; * matches any text, <> is the null sender'),
  recipient: pattern.optional().describe('recipient; * matches any text'),
  outcome: z.enum(FINAL_STATES).optional().describe('outcome of the recipient'),
  class: pattern.optional().describe('class of the message: the name of a [class.NAME] table'),
  status: statusText.optional().describe('status of the last attempt, or of the reply to it: 5.7.1; * matches any text'),
  since: durationText.optional().describe('left the queue less than this ago: 30m, 2h, 1d'),
  left_after: instantText.optional().describe(`left the queue at this time or later: ${NAMED_INSTANT}`),
  left_before: instantText.optional().describe(`left the queue before this time: ${NAMED_INSTANT}`),
}

const choices = {
  again: z.boolean().optional().describe('send to recipients again that were sent again before'),
  dry_run: z.boolean().optional().describe('answer with a plan, and change nothing'),
  reason: z.string().min(1).max(1_000).optional().describe('reason of the operator, for the audit log'),
}

export const resendOneShape = z.strictObject(choices)

export const resendShape = z.strictObject({
  ids: z.array(z.string().min(1).max(255)).min(1).max(50_000).optional().describe('queue ids of messages that have left the queue'),
  filter: z
    .strictObject(historyConditions)
    .refine(...ordered('left'))
    .optional(),
  rate: z
    .string()
    .max(50)
    .transform((text, context) => {
      const rate = parseRate(text)
      if (rate === undefined) context.addIssue({ code: 'custom', message: `expected ${RATE}` })
      return rate ?? z.NEVER
    })
    .optional()
    .describe(RATE),
  ...choices,
})
/** As a client writes it. */
export type ResendBody = z.input<typeof resendShape>
export type ResendOrder = z.output<typeof resendShape>

/** A filter without conditions would select all mail that did not reach its recipients. */
function selectionOf({ ids, filter }: ResendOrder, moment: Parameters<typeof filterOf>[1]): DepartedSelection {
  if (ids !== undefined && filter === undefined) return { kind: 'ids', ids }
  if (ids !== undefined || filter === undefined || Object.keys(filter).length === 0)
    throw invalidPart('/filter', 'expected either ids, or a filter with a condition')
  return { kind: 'filter', filter: filterOf(filter, moment) }
}

/** The selection as arguments of a command. Spans become instants, since the record of the audit log is of another time. */
function wordsOf({ ids = [], filter = {}, rate, again = false }: ResendOrder, now: number, wall: QueueView['clock']['wall']): string {
  const { since, left_after: after, left_before: before, ...texts }: HistoryQuery = filter
  const from = Math.max(after ?? -Infinity, since === undefined ? -Infinity : wall.of(now - since))
  const options = [
    ...Object.entries(texts).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(Number.isFinite(from) ? [`--left-after=${formatInstant(from)}`] : []),
    ...(before === undefined ? [] : [`--left-before=${formatInstant(before)}`]),
    ...(rate === undefined ? [] : [`--rate=${rateText(rate)}`]),
    ...(again ? ['--again'] : []),
  ]
  const { named, comment } = namedIds(ids)
  return `${[...options, ...named].map(shellWord).join(' ')}${comment}`
}

/** A client, and the end of its request. */
interface ResendClient {
  readonly requester: Requester
  readonly signal: AbortSignal
}

const termsOf = (view: QueueView, order: ResendOrder, { destinations }: Requester): ResendTerms => ({
  selection: selectionOf(order, { now: view.clock.now(), wall: view.clock.wall }),
  again: order.again === true,
  isVisible: (destination) => maySee(destinations, destination),
})

export async function planResending(view: QueueView, order: ResendOrder, { requester, signal }: ResendClient): Promise<ResendPlanJson> {
  const at = view.clock.now()
  return resendPlanJson(await view.operations().resending.plan(termsOf(view, order, requester), signal), at, view.clock.wall)
}

/** Begins to send mail again, and waits for the end for some seconds. */
export function beginResending(
  view: QueueView,
  order: ResendOrder,
  { requester, signal, request }: ResendClient & { readonly request: IdempotentRequest | null },
): Promise<Begun> {
  const { clock } = view
  const terms = termsOf(view, order, requester)
  const told = { ...actorOf(requester), words: wordsOf(order, clock.now(), clock.wall), reason: order.reason ?? null }
  return begun(view, request, async () => {
    try {
      return await view.operations().resending.start({ ...terms, ...told, rate: order.rate ?? null, request }, signal)
    } catch (error) {
      if (error instanceof NothingToResend) throw new Problem(NOTHING_TO_RESEND, error.message, { cause: error })
      throw error
    }
  })
}
