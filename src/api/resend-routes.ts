/** Routes of the API that change mail of the history: send it again, and erase its addresses. */
import { jsonBody } from '../http/request-body.ts'
import type { Answer } from '../http/route-table.ts'
import {
  beginResending,
  NOTHING_TO_RESEND,
  planResending,
  resendOneShape,
  resendShape,
  type ResendOrder,
} from '../queries/operations/resend.ts'
import { beginErasure, eraseShape, planErasure } from '../queries/operations/erase.ts'
import { idempotent, KEY_REUSED, keyOf } from '../queries/operations/idempotency.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { erasurePlanShape } from '../resources/plans/erasure-plan-json.ts'
import { resendPlanShape } from '../resources/plans/resend-plan-json.ts'
import { apiRoute, assertUnlimited, json, SMALL_BODY, type ApiRequest, type ApiRoute } from './route/api-route.ts'
import { BEGUN, begunAnswer, KEY_HEADER } from './operation-routes.ts'

/** Maximum size of the body: 50,000 queue ids fit. */
const LARGE_BODY = 2 * 1024 * 1024

const ANSWERS = { 200: [BEGUN[200], { about: 'the plan of a dry run', shape: resendPlanShape }], 202: BEGUN[202] } as const

const ABOUT =
  'A new message with a new queue id and a new lifetime goes to the failed recipients of a message alone, each of them once; those that got it never get it again. Routing and aliases are not applied again. The content must be kept (returned_content_retention). With `suppression = yes`, recipients on the suppression list are left out. The limits of the queue hold: above them the operation ends, and can be repeated.'

async function resend(view: QueueView, { headers, requester, signal }: ApiRequest<unknown, unknown>, order: ResendOrder): Promise<Answer> {
  if (order.dry_run === true)
    return json({ operation: 'resend', dry_run: true, plan: await planResending(view, order, { requester, signal }) })
  const request = idempotent(keyOf(headers, requester), 'resend', order)
  return begunAnswer(await beginResending(view, order, { requester, signal, request }))
}

export const resendRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/history/resend',
    role: 'operator',
    summary: 'Send mail of the history again to the recipients that it did not reach',
    about: `${ABOUT} The filter needs a condition.`,
    headers: KEY_HEADER,
    body: jsonBody(resendShape, LARGE_BODY),
    example: { filter: { status: '5.7.1', since: '2h' }, rate: '100/min', dry_run: true },
    answers: ANSWERS,
    problems: [NOTHING_TO_RESEND, KEY_REUSED],
    slots: 'operations',
    handler: (request) => resend(view, request, request.body),
  }),
  apiRoute({
    method: 'POST',
    path: '/history/:id/resend',
    role: 'operator',
    summary: 'Send a message of the history again to the recipients that it did not reach',
    about: ABOUT,
    headers: KEY_HEADER,
    body: jsonBody(resendOneShape, SMALL_BODY),
    example: { dry_run: true },
    answers: ANSWERS,
    problems: [NOTHING_TO_RESEND, KEY_REUSED],
    slots: 'operations',
    handler: (request) => resend(view, request, { ...request.body, ids: [request.parameters['id'] ?? ''] }),
  }),
]

export const eraseRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/history/erase',
    role: 'admin',
    summary: 'Erase addresses of mail that has left the queue',
    about:
      'Each address becomes a text such as `erased-1f0c9a3b`, equal for equal addresses, in all that the queue keeps of mail that has left: history, dialogues, events, audit log, search; kept contents of such mail are deleted. Counts and times stay. Mail in the queue and in the trash stays as it is. It cannot be undone. An operation that a restart ends goes on after it.',
    headers: KEY_HEADER,
    body: jsonBody(eraseShape, SMALL_BODY),
    example: { recipient: 'anna@example.com', dry_run: true },
    answers: { 200: [BEGUN[200], { about: 'the plan of a dry run', shape: erasurePlanShape }], 202: BEGUN[202] },
    problems: [KEY_REUSED],
    slots: 'operations',
    handler: async (request) => {
      assertUnlimited(request)
      const { body, headers, requester } = request
      if (body.dry_run === true) return json({ operation: 'erase', dry_run: true, plan: await planErasure(view, body) })
      const once = idempotent(keyOf(headers, requester), 'erase', body)
      return begunAnswer(await beginErasure(view, body, { requester, request: once }))
    },
  }),
]
