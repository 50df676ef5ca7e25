/** Routes of the API by which a program cancels the messages that it has submitted, and gives them other times. */
import { z } from 'zod'
import { jsonBody } from '../http/request-body.ts'
import { cancelByEnvid, cancelOne, rescheduleOne, TOO_LATE, TOO_MANY } from '../queries/messages/own-messages.ts'
import { UNKNOWN_MESSAGE } from '../queries/messages.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { cancellationJson, cancellationShape, rescheduledJson, rescheduledShape } from '../resources/plans/cancellation-json.ts'
import { apiRoute, json, type ApiRoute } from './route/api-route.ts'
import { assertTimes, TIMES } from './submitted/submission-times.ts'
import { namedTime } from '../queries/named-time.ts'
import { envid } from './submitted/submitted-mail.ts'

const OWN =
  "Only the mail of the token itself, and of the SMTP login of its name; a token of the role `admin` may change all mail. Another's is unknown (404)."

/** Maximum size of a body. */
const BODY = 16_384

const timesShape = z.strictObject({
  not_before: namedTime.nullable().optional().describe('as in POST /messages; null sends the message now'),
  expires: namedTime.nullable().optional().describe('as in POST /messages; null takes the time away'),
})

export const ownMessageRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'DELETE',
    path: '/messages/:id',
    role: 'sender',
    summary: 'Cancel a message',
    about: `After the answer 200, no delivery to a recipient in \`cancelled\` begins, at any node and after any crash. A recipient with an outcome, or in transfer, is in \`too_late\`. No notice is sent, and the content is deleted. A repeated request has the same answer while the history has the message. ${OWN}`,
    answers: { 200: { about: 'the recipients', shape: cancellationShape } },
    problems: [UNKNOWN_MESSAGE, TOO_LATE],
    handler: async ({ parameters, requester }) => json(cancellationJson(await cancelOne(view, parameters['id'] ?? '', requester))),
  }),
  apiRoute({
    method: 'DELETE',
    path: '/messages',
    role: 'sender',
    summary: 'Cancel the messages with an envelope id',
    about: `Up to 1,000 messages in the queue that were submitted with this ENVID, over SMTP or by the API. ${OWN}`,
    query: z.strictObject({ envid }),
    answers: { 200: { about: 'the recipients', shape: cancellationShape } },
    problems: [UNKNOWN_MESSAGE, TOO_LATE, TOO_MANY],
    handler: async ({ query, requester }) => json(cancellationJson(await cancelByEnvid(view, query.envid, requester))),
  }),
  apiRoute({
    method: 'PATCH',
    path: '/messages/:id',
    role: 'sender',
    summary: 'Give a scheduled message other times',
    about: `Members that are absent stay as they are. ${OWN}`,
    body: jsonBody(timesShape, BODY),
    example: { not_before: '2026-11-24T08:00:00Z', expires: null },
    answers: { 200: { about: 'the new times', shape: rescheduledShape } },
    problems: [UNKNOWN_MESSAGE, TIMES, TOO_LATE],
    handler: async ({ parameters, body, requester }) => {
      const { not_before: release, expires } = body
      const check = (sender: string): void => assertTimes({ sender, release: release ?? undefined, expires: expires ?? undefined }, view)
      const times = await rescheduleOne(view, parameters['id'] ?? '', { requester, times: body, check })
      return json(rescheduledJson(times, view.clock.wall))
    },
  }),
]
