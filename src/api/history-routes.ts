/** Routes of the API for what is recorded: mail that has left the queue, and the audit log. */
import { z } from 'zod'
import { OPERATION_STATES } from '../store/records/audit-log.ts'
import { apiRoute, assertUnlimited, nameOrPattern, page, pageCursor, pageLimit, viewerOf, type ApiRoute } from './route/api-route.ts'
import { listFormat, wholeList, wholeListAnswers } from './route/whole-lists.ts'
import { historyLines, historyPage } from '../queries/departed-mail.ts'
import { historyConditions } from '../queries/operations/resend.ts'
import { auditLines, auditPage } from '../queries/operations/operations-view.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { CURSOR_PROBLEM } from '../queries/cursor.ts'
import { durationText } from '../queries/message-query.ts'
import { NAMED_INSTANT } from '../mail/message-times.ts'
import { instantText, ordered } from '../queries/named-time.ts'
import { departedMessageShape, historyPageShape } from '../resources/departed-message-json.ts'
import { auditEntryShape, auditPageShape } from '../resources/operation-json.ts'

const historyQuery = z
  .strictObject({
    ...historyConditions,
    limit: pageLimit,
    before: pageCursor,
    format: listFormat,
  })
  .refine(...ordered('left'))

export const historyRoute = (view: QueueView): ApiRoute =>
  apiRoute({
    method: 'GET',
    path: '/history',
    role: 'viewer',
    summary: 'Mail that has left the queue, the last one first',
    about:
      'A page may have fewer messages than `limit`, or none, and still have a next page. With `Accept: application/x-ndjson`, the lines of `deferd history list --json`; `format=csv` has a row per recipient.',
    query: historyQuery,
    answers: {
      200: [{ about: 'a page', shape: historyPageShape }, ...wholeListAnswers('all messages', departedMessageShape)],
    },
    problems: [CURSOR_PROBLEM],
    slots: 'searches',
    handler: async (request) => {
      const { limit, before, format: _format, ...conditions } = request.query
      const whole = wholeList(request, {
        name: 'history',
        shape: departedMessageShape,
        rowsOf: 'recipients',
        entries: () => historyLines(view, conditions, viewerOf(request)),
      })
      if (whole !== null) return whole
      return page(await historyPage(view, { ...conditions, limit, before }, viewerOf(request)), request.written, 'before')
    },
  })

const auditQuery = z
  .strictObject({
    who: nameOrPattern.optional().describe('name of the operator; * matches any text'),
    action: nameOrPattern.optional().describe('such as hold or suspend; * matches any text'),
    request_id: z.string().min(1).max(64).optional().describe('X-Request-Id of the answer to the request that ordered the action'),
    state: z.enum(OPERATION_STATES).optional(),
    since: durationText.optional().describe('less long ago than this: 30m, 2h, 1d'),
    recorded_after: instantText.optional().describe(`at this time or later: ${NAMED_INSTANT}`),
    recorded_before: instantText.optional().describe(`before this time: ${NAMED_INSTANT}`),
    limit: pageLimit,
    before: pageCursor,
    format: listFormat,
  })
  .refine(...ordered('recorded'))

export function auditRoute(view: QueueView): ApiRoute {
  return apiRoute({
    method: 'GET',
    path: '/audit',
    role: 'viewer',
    summary: 'Audit log, the last record first',
    about:
      'The members of `deferd audit --json`, with the state of operations. An operation has the id of its record, whose arguments are those of `deferd queue` that select the same messages, quoted for a shell. With `Accept: application/x-ndjson`, all records.',
    query: auditQuery,
    answers: { 200: [{ about: 'a page', shape: auditPageShape }, ...wholeListAnswers('all records', auditEntryShape)] },
    problems: [CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      const { limit, before, format: _format, ...conditions } = request.query
      const entries = () => auditLines(view, conditions, request.signal)
      const whole = wholeList(request, { name: 'audit', shape: auditEntryShape, rowsOf: null, entries })
      return whole ?? page(await auditPage(view, { ...conditions, limit, before }), request.written, 'before')
    },
  })
}
