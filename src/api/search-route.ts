/** Route of the API for searches in the queue and in the history together. */
import { z } from 'zod'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { searchPage } from '../queries/messages/search.ts'
import { searchPageShape } from '../resources/found-message-json.ts'
import { apiRoute, page, pageCursor, pageLimit, type ApiRoute } from './route/api-route.ts'

export const searchRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/search',
    role: 'viewer',
    summary: 'Messages in the queue and in the history, by any text',
    about:
      'The kind of the text decides: a queue id; a Message-ID, an address or a domain (`@example.com`), each whole or by its beginning of at least 3 characters; else all words of the subject, each in the same way, which needs the right `content`. These searches use an index, which has the mail that was queued with `queue_index_headers`, and give the newest message first. A text with a `*` that is not at its end is searched in all addresses of all mail: a page ends after 0.3 s, may have no message, and `progress` tells how much was read; a client that asks for no next page stops the search.',
    query: z.strictObject({ q: z.string().trim().min(1).max(1_000).describe('the text'), limit: pageLimit, after: pageCursor }),
    answers: { 200: { about: 'a page', shape: searchPageShape } },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => page(await searchPage(view, request.query, request), request.written, 'after'),
  })
