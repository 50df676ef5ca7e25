/** Routes of the API for messages in the queue. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { NDJSON } from '../http/command-protocol.ts'
import { apiRoute, json, lines, page, pageCursor, pageLimit, viewerOf, wantsLines, type ApiRoute } from './api-route.ts'
import { messageStory } from '../queries/message-story.ts'
import { messageRowShape } from '../resources/message-row-json.ts'
import { contentOf, LISTING_FORMS, messageCount, messageLines, messagePage, NO_CONTENT, UNKNOWN_MESSAGE } from '../queries/messages.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { conditionShape } from '../queries/message-query.ts'
import type { Senders } from '../queries/senders.ts'
import { sendersShape } from '../resources/senders-json.ts'
import { messageStoryShape } from '../resources/message-story-json.ts'
import { messageCountShape, messageLineShape, messagePageShape } from '../resources/message-json.ts'

const listQuery = conditionShape.extend({
  order: z.enum(['oldest', 'newest']).default('oldest'),
  limit: pageLimit,
  after: pageCursor,
  form: z.enum(LISTING_FORMS).default('messages').describe('of lines: whole messages, or the columns of `deferd queue list`'),
})

const contentQuery = z.strictObject({ part: z.enum(['all', 'header', 'body']).default('all') })

const sendersRoute = (senders: Senders): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/senders',
    role: 'viewer',
    summary: 'Senders of queued mail',
    about: 'The senders of the mail that matches, with the number of their messages: exact, and at most 30 s old.',
    query: conditionShape.extend({
      waits: z
        .literal('true')
        .transform(() => true)
        .optional()
        .describe('`true` for mail that waits: not on hold, corrupt or scheduled'),
      limit: pageLimit,
    }),
    answers: { 200: { about: 'the senders', shape: sendersShape } },
    slots: 'searches',
    handler: async (request) => {
      const { limit: most, ...query } = request.query
      return json(await senders.of(query, most, viewerOf(request)))
    },
  })

const listingRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/messages',
    role: 'viewer',
    summary: 'Messages, oldest or newest first',
    about:
      'Conditions are those of `deferd queue list`; a message must match all of them. The pages of a listing contain no message that arrived after the first page was read, and a message that stays in the queue is listed exactly once. With `Accept: application/x-ndjson`, all messages as the lines of `deferd queue list --json`.',
    query: listQuery,
    headers: { Accept: 'application/json, or application/x-ndjson for all messages' },
    answers: {
      200: [
        { about: 'a page', shape: messagePageShape },
        { about: 'all messages', type: NDJSON, shape: z.union([messageLineShape, messageRowShape]) },
      ],
    },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => {
      const { limit: most, after, order, form, ...conditions } = request.query
      if (wantsLines(request)) return lines(messageLines(view, { ...conditions, form }, viewerOf(request)))
      return page(
        await messagePage(view, { ...conditions, order, limit: most, after }, request.requester.destinations),
        request.written,
        'after',
      )
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/messages/count',
    role: 'viewer',
    summary: 'Number of messages',
    about: 'Counting ends at 100,000 messages and after 200 ms; `at_least` is then true.',
    query: conditionShape,
    answers: { 200: { about: 'the count', shape: messageCountShape } },
    slots: 'searches',
    handler: async (request) => json(await messageCount(view, request.query, { visible: request.requester.destinations })),
  }),
]

const singleRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'GET',
    path: '/messages/:id',
    role: 'viewer',
    summary: 'One message with its attempts and its future',
    about:
      'The members of `deferd queue show --json`, with the client that sent the message, the last operations on it, and the attempts that each recipient will get while it stays deferred. Also for a message that has left the queue, for `history_retention`.',
    answers: { 200: { about: 'the message', shape: messageStoryShape } },
    problems: [UNKNOWN_MESSAGE],
    handler: async ({ parameters, requester }) => json(await messageStory(view, parameters['id'] ?? '', requester)),
  }),
  apiRoute({
    method: 'GET',
    path: '/messages/:id/content',
    role: 'viewer',
    summary: 'Content of a message',
    about: 'The bytes as they are sent. Needs the right `content` of a token or session.',
    query: contentQuery,
    answers: { 200: { about: 'the bytes', type: 'text/plain; charset=utf-8' } },
    problems: [UNKNOWN_MESSAGE, NO_CONTENT],
    handler: async ({ parameters, query, requester }) => {
      if (!requester.content)
        throw new Problem(HTTP_PROBLEMS.notPermitted, 'the content of messages needs the right `content` of the token or session')
      const chunks = await contentOf(view, parameters['id'] ?? '', { visible: requester.destinations, part: query.part })
      return {
        kind: 'stream',
        contentType: 'text/plain; charset=utf-8',
        chunks,
        headers: { 'content-disposition': `attachment; filename="${parameters['id'] ?? ''}.txt"`, 'x-content-type-options': 'nosniff' },
      }
    },
  }),
]

export const messageRoutes = (view: QueueView, senders: Senders): readonly ApiRoute[] => [
  ...listingRoutes(view),
  sendersRoute(senders),
  ...singleRoutes(view),
]
