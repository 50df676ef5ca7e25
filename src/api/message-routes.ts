/** Routes of the API for messages in the queue. */
import { z } from 'zod'
import { apiRoute, json, page, pageCursor, pageLimit, viewerOf, type ApiRoute } from './route/api-route.ts'
import { listFormat, wholeList, wholeListAnswers } from './route/whole-lists.ts'
import { messageSession, UNKNOWN_SESSION } from '../queries/messages/message-session.ts'
import { messageStory } from '../queries/messages/message-story.ts'
import { messageRowShape } from '../resources/message-row-json.ts'
import {
  CONTENT_PROBLEMS,
  contentBeginning,
  contentOf,
  LISTING_FORMS,
  messageCount,
  messageLines,
  messagePage,
  requireContentRight,
  UNKNOWN_MESSAGE,
} from '../queries/messages.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { conditionShape } from '../queries/message-query.ts'
import type { Senders } from '../queries/counts/senders.ts'
import { sendersShape } from '../resources/senders-json.ts'
import { sessionShape } from '../resources/session-json.ts'
import { messageStoryShape } from '../resources/message-story-json.ts'
import { contentPartsJson, contentPartsShape, messageCountShape, messageLineShape, messagePageShape } from '../resources/message-json.ts'

const listQuery = conditionShape.safeExtend({
  order: z.enum(['oldest', 'newest']).default('oldest'),
  limit: pageLimit,
  after: pageCursor,
  format: listFormat,
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
    query: conditionShape.safeExtend({
      waits: z
        .literal('true')
        .transform(() => true)
        .optional()
        .describe('`true` for mail that waits, also for a later time: not on hold or corrupt'),
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
      'Conditions are those of `deferd queue list`; a message must match all of them. The pages of a listing contain no message that arrived after the first page was read, and a message that stays in the queue is listed exactly once. With `Accept: application/x-ndjson`, all messages as the lines of `deferd queue list --json`; `format=csv` has a row per recipient.',
    query: listQuery,
    headers: { Accept: 'application/json, or application/x-ndjson for all messages' },
    answers: {
      200: [
        { about: 'a page', shape: messagePageShape },
        ...wholeListAnswers('all messages', z.union([messageLineShape, messageRowShape])),
      ],
    },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => {
      const { limit: most, after, order, form, format: _format, ...conditions } = request.query
      const whole = wholeList(request, {
        name: 'messages',
        ...(form === 'rows' ? { shape: messageRowShape, rowsOf: null } : { shape: messageLineShape, rowsOf: 'recipients' }),
        entries: () => messageLines(view, { ...conditions, form }, viewerOf(request)),
      })
      if (whole !== null) return whole
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
    path: '/messages/:id/sessions/:session',
    role: 'viewer',
    summary: 'Dialogue of an attempt with a host',
    about:
      'The lines of both sides with their times, without content, passwords and tokens, for an attempt whose `session` has this id. Attempts with the same destination, cause and minute share a dialogue, so that it may have the addresses of another message.',
    answers: { 200: { about: 'the dialogue', shape: sessionShape } },
    problems: [UNKNOWN_MESSAGE, UNKNOWN_SESSION],
    handler: async ({ parameters, requester }) =>
      json(await messageSession(view, parameters['id'] ?? '', parameters['session'] ?? '', requester.destinations)),
  }),
  apiRoute({
    method: 'GET',
    path: '/messages/:id/parts',
    role: 'viewer',
    summary: 'Fields, texts and attachments of a message',
    about:
      'The content as a reader of mail sees it: decoded fields, plain text, the source of the HTML, and a list of the attachments. The first megabyte is read. Needs the right `content` of a token or session.',
    answers: { 200: { about: 'the parts', shape: contentPartsShape } },
    problems: CONTENT_PROBLEMS,
    slots: 'searches',
    handler: async ({ parameters, requester }) => {
      const { content, whole } = await contentBeginning(view, parameters['id'] ?? '', requester)
      return json(contentPartsJson(content, whole))
    },
  }),
  apiRoute({
    method: 'GET',
    path: '/messages/:id/content',
    role: 'viewer',
    summary: 'Content of a message',
    about: 'The bytes as they are sent. Needs the right `content` of a token or session.',
    query: contentQuery,
    answers: { 200: { about: 'the bytes', type: 'text/plain; charset=utf-8' } },
    problems: CONTENT_PROBLEMS,
    handler: async ({ parameters, query, requester }) => {
      requireContentRight(requester)
      const chunks = await contentOf(view, parameters['id'] ?? '', { visible: requester.destinations, part: query.part })
      return {
        kind: 'stream',
        contentType: 'text/plain; charset=utf-8',
        chunks,
        headers: { 'content-disposition': `attachment; filename="${parameters['id'] ?? ''}.eml"`, 'x-content-type-options': 'nosniff' },
      }
    },
  }),
]

export const messageRoutes = (view: QueueView, senders: Senders): readonly ApiRoute[] => [
  ...listingRoutes(view),
  sendersRoute(senders),
  ...singleRoutes(view),
]
