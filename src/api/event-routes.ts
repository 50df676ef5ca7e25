/** Events that the queue keeps for programs. */
import { z } from 'zod'
import { EVENT_TYPES } from '../events/event-types.ts'
import { selectedTypes } from '../events/event-filter.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import type { Answer } from '../http/route-table.ts'
import { NAMED_INSTANT } from '../mail/message-times.ts'
import {
  accepts,
  apiRoute,
  json,
  nameOrPattern,
  pageCursor,
  pageLimit,
  viewerOf,
  type ApiRequest,
  type ApiRoute,
} from './route/api-route.ts'
import { listFormat, wholeList, wholeListAnswers } from './route/whole-lists.ts'
import { eventLines, eventPage, eventStream } from '../queries/event-feed.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { instantText, ordered } from '../queries/named-time.ts'
import { eventPageShape, eventShape } from '../resources/event-json.ts'

const SERVER_SENT = 'text/event-stream'

const typePatterns = z
  .string()
  .max(1_000)
  .optional()
  .transform((text) => text?.split(',') ?? [])
  .refine((types) => types.every((one) => selectedTypes([one]).length > 0), `expected types separated by commas: ${EVENT_TYPES.join(', ')}`)

export const eventQuery = z.strictObject({
  after: pageCursor.describe('id of the last event, or `next` of the last answer; the oldest event that is kept when absent'),
  types: typePatterns.describe('types separated by commas; * matches any text'),
  destination: nameOrPattern.optional().describe('destination of the event; * matches any text'),
  sender: nameOrPattern.optional().describe('envelope sender of the event; * matches any text'),
  limit: pageLimit,
})

const rangedQuery = eventQuery
  .extend({
    format: listFormat,
    occurred_after: instantText.optional().describe(`at this time or later: ${NAMED_INSTANT}`),
    occurred_before: instantText.optional().describe(`before this time: ${NAMED_INSTANT}`),
  })
  .refine(...ordered('occurred'))

export const eventRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/events',
    role: 'viewer',
    summary: 'Events, in the order in which they were committed',
    about:
      'Events are kept while an `[events.NAME]` table or a webhook wants their type; the order is that of their commits, and an event never follows one with a later position. `next` is the position after the page, also when nothing follows yet: ask again with `after` to get what is new. It is null when `occurred_before` is over a minute ago and all events before that time were told. Deleted events (`event_retention`, `event_limit`) after the position are told first, by an event `events.lost` with their number. With `Accept: application/x-ndjson`, all events that are kept, one per line; with `Accept: text/event-stream`, these and then each new one, until the client disconnects; a client continues with `Last-Event-ID`.',
    query: rangedQuery,
    headers: {
      Accept: 'application/json, application/x-ndjson or text/event-stream',
      'Last-Event-ID': 'instead of `after`, as a browser sends it when it connects again',
    },
    answers: {
      200: [
        { about: 'a page', shape: eventPageShape },
        ...wholeListAnswers('all events that are kept', eventShape),
        { about: 'all events and those to come', type: SERVER_SENT, shape: eventShape },
      ],
    },
    problems: [CURSOR_PROBLEM, HTTP_PROBLEMS.busy],
    handler: async (request): Promise<Answer> => {
      const { limit, after = lastEventId(request), format, ...conditions } = request.query
      const asked = { ...conditions, after }
      if (format === undefined && accepts(request, SERVER_SENT))
        return { kind: 'complete-events', chunks: eventStream(view, asked, viewerOf(request)) }
      const entries = () => eventLines(view, asked, viewerOf(request))
      const whole = wholeList(request, { name: 'events', shape: eventShape, rowsOf: null, entries })
      return whole ?? json(await eventPage(view, { ...asked, limit }, viewerOf(request)))
    },
  }),
]

export function lastEventId({ headers }: Pick<ApiRequest<unknown, unknown>, 'headers'>): string | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id : undefined
}
