/** Routes of the API for what is recorded: mail that has left the queue, and the audit log. */
import { FINAL_STATES } from '../mail/message.ts'
import { z } from 'zod'
import { OPERATION_STATES } from '../store/audit-log.ts'
import { NDJSON } from '../http/command-protocol.ts'
import {
  apiRoute,
  assertUnlimited,
  lines,
  nameOrPattern,
  page,
  pageCursor,
  pageLimit,
  viewerOf,
  wantsLines,
  type ApiRoute,
} from './api-route.ts'
import { historyLines, historyPage } from '../queries/departed-mail.ts'
import { auditPage } from '../queries/operations-view.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { durationText } from '../queries/message-query.ts'
import { NAMED_INSTANT } from '../mail/message-times.ts'
import { instantText, ordered } from '../queries/named-time.ts'
import { departedMessageShape, historyPageShape } from '../resources/departed-message-json.ts'
import { auditPageShape } from '../resources/operation-json.ts'

const historyQuery = z
  .strictObject({
    sender: nameOrPattern.optional().describe('envelope sender; * matches any text, <> is the null sender'),
    recipient: nameOrPattern.optional().describe('recipient; * matches any text'),
    outcome: z.enum(FINAL_STATES).optional().describe('outcome of the recipient'),
    since: durationText.optional().describe('left the queue less than this ago: 30m, 2h, 1d'),
    left_after: instantText.optional().describe(`left the queue at this time or later: ${NAMED_INSTANT}`),
    left_before: instantText.optional().describe(`left the queue before this time: ${NAMED_INSTANT}`),
    limit: pageLimit,
    before: pageCursor,
  })
  .refine(...ordered('left'))

export const historyRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/history',
    role: 'viewer',
    summary: 'Mail that has left the queue, the last one first',
    about:
      'A page may have fewer messages than `limit`, or none, and still have a next page. With `Accept: application/x-ndjson`, the lines of `deferd history list --json`.',
    query: historyQuery,
    answers: {
      200: [
        { about: 'a page', shape: historyPageShape },
        { about: 'all messages', type: NDJSON, shape: departedMessageShape },
      ],
    },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => {
      const { limit: _limit, before: _before, ...conditions } = request.query
      if (wantsLines(request)) return lines(historyLines(view, conditions, viewerOf(request)))
      return page(await historyPage(view, request.query, viewerOf(request)), request.written, 'before')
    },
  })

const auditQuery = z
  .strictObject({
    who: nameOrPattern.optional().describe('name of the operator; * matches any text'),
    action: nameOrPattern.optional().describe('such as hold or suspend; * matches any text'),
    state: z.enum(OPERATION_STATES).optional(),
    since: durationText.optional().describe('less long ago than this: 30m, 2h, 1d'),
    recorded_after: instantText.optional().describe(`at this time or later: ${NAMED_INSTANT}`),
    recorded_before: instantText.optional().describe(`before this time: ${NAMED_INSTANT}`),
    limit: pageLimit,
    before: pageCursor,
  })
  .refine(...ordered('recorded'))

export function auditRoute(view: QueueView): ApiRoute {
  return apiRoute({
    method: 'GET',
    path: '/audit',
    role: 'viewer',
    summary: 'Audit log, the last record first',
    about:
      'The members of `deferd audit --json`, with the state of operations. An operation has the id of its record, whose arguments are those of `deferd queue` that select the same messages, quoted for a shell.',
    query: auditQuery,
    answers: { 200: { about: 'a page', shape: auditPageShape } },
    problems: [CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      return page(await auditPage(view, request.query), request.written, 'before')
    },
  })
}
