/** Route of the API for the last warnings and errors of the log. */
import { z } from 'zod'
import { NAMED_INSTANT } from '../mail/message-times.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { logPage } from '../queries/log-page.ts'
import { instantText, ordered } from '../queries/named-time.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { logPageShape } from '../resources/log-json.ts'
import { KEPT_KINDS, KEPT_LEVELS, MOST_LINES } from '../telemetry/recent-log.ts'
import { apiRoute, assertUnlimited, nameOrPattern, page, pageCursor, pageLimit, type ApiRoute } from './route/api-route.ts'

export const logConditions = z.strictObject({
  level: z.enum(KEPT_LEVELS).optional().describe('this level or a worse one'),
  event: z.enum(KEPT_KINDS).optional().describe('kind of the event'),
  queue_id: z.string().min(1).max(100).optional().describe('lines that name this message'),
  destination: nameOrPattern.optional().describe('lines about this destination, or that name it; * matches any text'),
  text: nameOrPattern.optional().describe('text of the line; * matches any text'),
  node: nameOrPattern.optional().describe('name of the node; * matches any text'),
  logged_after: instantText.optional().describe(`at this time or later: ${NAMED_INSTANT}`),
  logged_before: instantText.optional().describe(`before this time: ${NAMED_INSTANT}`),
})

export type LogConditions = z.input<typeof logConditions>

const logQuery = logConditions.extend({ limit: pageLimit, before: pageCursor }).refine(...ordered('logged'))

export const logRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/log',
    role: 'viewer',
    summary: 'Warnings and errors of the log, the last one first',
    about: `The last ${MOST_LINES} of each node, from its memory: they end with its process, and the log has them all. \`nodes\` tells since when each node has all of them, and which one does not answer.`,
    query: logQuery,
    answers: { 200: { about: 'a page', shape: logPageShape } },
    problems: [CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      return page(await logPage(view, request.query), request.written, 'before')
    },
  })
