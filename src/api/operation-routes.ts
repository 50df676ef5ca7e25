/** Routes of the API for operations on messages and destinations, and for the audit log. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { auditName } from '../http/requester.ts'
import type { Answer } from '../http/route-table.ts'
import { jsonLine } from '../presentation/text.ts'
import { OPERATION_STATES } from '../store/audit-log.ts'
import { ANY_MESSAGE } from '../store/message-conditions.ts'
import { seconds, type Duration } from '../system/clock.ts'
import { every } from '../system/periodic-task.ts'
import { apiRoute, assertUnlimited, BASE, json, page, pageCursor, pageLimit, type ApiRequest, type ApiRoute } from './api-route.ts'
import { assertVisible, destinationDetails, UNKNOWN_DESTINATION } from './queries/destinations.ts'
import {
  auditPage,
  beginOperation,
  cancelOperation,
  ENDED,
  NOT_UNDOABLE,
  operationPlan,
  operationState,
  PLAN_OUTDATED,
  undoOperation,
  UNKNOWN_OPERATION,
  type Begun,
} from './queries/operations-view.ts'
import type { QueueView } from './queries/queue-view.ts'
import * as operationShapes from './values/operation-shapes.ts'
import * as destinationShapes from './values/destination-shapes.ts'
import { CURSOR_PROBLEM, numberIn } from './values/cursor.ts'
import { idempotent, KEY_REUSED, keyOf, REPLAYED } from './values/idempotency.ts'
import { durationText } from './values/message-query.ts'
import { askedBy, operationShape, type DirectRequest, type PlannedRequest } from './values/operation-request-shape.ts'
import { PLAN_PROBLEM, planOfToken } from './values/plan-token.ts'

/** Maximum size of the body of an operation. 150,000 queue ids fit, and each plan. */
const LARGE_BODY = 4 * 1024 * 1024
const SMALL_BODY = 64 * 1024

/** End of the year 9999, the last one of ISO 8601 with four digits, in seconds since 1970. */
const LATEST = 253_402_300_799

const KEY_HEADER = {
  'Idempotency-Key': 'a key that the client chooses: a request that is repeated with the same key within 24 hours has its effect once',
} as const

const idOf = ({ parameters }: ApiRequest<unknown, unknown>): number => numberIn(parameters['id'] ?? '') ?? Number.NaN

/** 200 with an operation that has ended, 202 with its path while it runs. */
function begunAnswer({ operation, isReplayed }: Begun): Answer {
  const replayed = isReplayed ? REPLAYED : {}
  const location = { location: `${BASE}/operations/${operation.id}` }
  return { kind: 'json', status: operation.state === 'running' ? 202 : 200, value: operation, headers: { ...replayed, ...location } }
}

const BEGUN = {
  200: { about: 'the operation, which has ended', shape: operationShapes.operation },
  202: { about: 'the operation, which runs; `Location` has its path', shape: operationShapes.operation },
} as const

const isPlanned = (body: DirectRequest | PlannedRequest): body is PlannedRequest => 'plan' in body

async function carryOut(view: QueueView, request: ApiRequest<unknown, DirectRequest | PlannedRequest>): Promise<Answer> {
  const { body, requester, headers } = request
  const reason = body.reason ?? null
  const acceptsGrowth = body.accept_growth === true
  const key = idempotent(keyOf(headers, requester), 'POST /operations', body)
  const carried = { requester, reason, request: key, acceptsGrowth }
  if (isPlanned(body)) return begunAnswer(await beginOperation(view, planOfToken(body.plan), carried))
  const asked = askedBy(body, view.clock.now())
  if (body.dry_run === true) return json({ operation: body.operation, dry_run: true, plan: await operationPlan(view, asked, requester) })
  return begunAnswer(await beginOperation(view, asked, carried))
}

const STATE_INTERVAL: Duration = seconds(0.5)

/** Sends the state of an operation when it changes, until it has ended. Returns the function that ends the subscription. */
function watch(view: QueueView, request: ApiRequest<unknown, unknown>, send: (event: string) => void): () => void {
  let sent = ''
  const look = async (stopping: AbortSignal): Promise<void> => {
    const state = await operationState(view, idOf(request), request.requester).catch(() => null)
    const text = state === null ? sent : `event: operation\ndata: ${jsonLine(state)}\n`
    if (text !== sent && !stopping.aborted) send(text)
    sent = text
    if (state !== null && state.state !== 'running') void looks.stop()
  }
  const looks = every(view.clock, STATE_INTERVAL, look, { immediate: true })
  return () => void looks.stop()
}

function messageOperations(view: QueueView): readonly ApiRoute[] {
  return [
    apiRoute({
      method: 'POST',
      path: '/operations',
      role: 'operator',
      summary: 'Change messages: flush, hold, release, requeue, expire, delete, restore',
      about:
        'With `"dry_run": true`, nothing is changed and the answer is a plan. A request with the token of the plan carries it out on messages that existed at the dry run only. An operation of more than 2 s continues without its client. A filter has the names of the query of `GET /messages`; one without conditions needs `"all": true`.',
      headers: KEY_HEADER,
      body: jsonBody(operationShape, LARGE_BODY),
      example: {
        operation: 'hold',
        selection: { kind: 'filter', filter: { destination: 'gmail.com', reply: 'unusual rate of mail' } },
        dry_run: true,
      },
      answers: { 200: [BEGUN[200], { about: 'the plan of a dry run', shape: operationShapes.operationPlan }], 202: BEGUN[202] },
      problems: [PLAN_OUTDATED, PLAN_PROBLEM, KEY_REUSED],
      slots: 'operations',
      handler: (request) => carryOut(view, request),
    }),
    apiRoute({
      method: 'GET',
      path: '/operations/:id',
      role: 'viewer',
      summary: 'State of an operation',
      answers: { 200: { about: 'the operation', shape: operationShapes.operation } },
      problems: [UNKNOWN_OPERATION],
      handler: async (request) => json(await operationState(view, idOf(request), request.requester)),
    }),
    apiRoute({
      method: 'GET',
      path: '/operations/:id/stream',
      role: 'viewer',
      summary: 'State of an operation, when it changes',
      about: 'Server-sent events named `operation`, each with the value of `GET /operations/{id}`; the last one has the end.',
      answers: { 200: { about: 'events', type: 'text/event-stream', shape: operationShapes.operation } },
      problems: [UNKNOWN_OPERATION, HTTP_PROBLEMS.busy],
      handler: async (request) => {
        await operationState(view, idOf(request), request.requester)
        return { kind: 'events', subscribe: (send) => watch(view, request, send) }
      },
    }),
    apiRoute({
      method: 'DELETE',
      path: '/operations/:id',
      role: 'operator',
      summary: 'Cancel an operation',
      about: 'The operation ends after its present round of 64 messages. Changed messages stay changed, and can be undone.',
      answers: { 200: { about: 'the operation', shape: operationShapes.operation } },
      problems: [UNKNOWN_OPERATION, ENDED],
      handler: async (request) => json(await cancelOperation(view, idOf(request), request.requester)),
    }),
    apiRoute({
      method: 'POST',
      path: '/operations/:id/undo',
      role: 'operator',
      summary: 'Undo an operation',
      about: 'Changes those messages back that are still as the operation has placed them: a deletion restores, a hold releases.',
      headers: KEY_HEADER,
      answers: BEGUN,
      problems: [UNKNOWN_OPERATION, NOT_UNDOABLE, KEY_REUSED, HTTP_PROBLEMS.malformed],
      handler: async (request) => {
        const { requester, headers } = request
        const key = idempotent(keyOf(headers, requester), 'undo', idOf(request))
        return begunAnswer(await undoOperation(view, idOf(request), { requester, reason: null, request: key }))
      },
    }),
  ]
}

const suspensionShape = z.strictObject({
  reason: z.string().min(1).max(1_000).optional(),
  until: z.number().max(LATEST).optional().describe('time at which the suspension ends by itself'),
})

function destinationOperations(view: QueueView): readonly ApiRoute[] {
  const changed = async (request: ApiRequest<unknown, unknown>): Promise<Answer> =>
    json(await destinationDetails(view, nameOf(request), request.requester.destinations))
  const known = async (request: ApiRequest<unknown, unknown>): Promise<string> => {
    await destinationDetails(view, nameOf(request), request.requester.destinations)
    return nameOf(request)
  }
  const answers = { 200: { about: 'the destination after the change', shape: destinationShapes.destinationDetails } }
  return [
    apiRoute({
      method: 'POST',
      path: '/destinations/:name/suspend',
      role: 'operator',
      summary: 'Suspend a destination',
      body: jsonBody(suspensionShape, SMALL_BODY),
      example: { reason: 'rate limited', until: 1_764_000_000 },
      answers,
      problems: [UNKNOWN_DESTINATION],
      handler: async (request) => {
        const { body, requester } = request
        assertVisible(nameOf(request), requester.destinations)
        const duration = body.until === undefined ? null : Math.round(body.until * 1_000) - view.clock.wall.now()
        if (duration !== null && duration <= 0) throw past()
        await view.operations().suspend(nameOf(request), { by: auditName(requester), duration, reason: body.reason ?? null })
        return changed(request)
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/destinations/:name/resume',
      role: 'operator',
      summary: 'Resume deliveries to a suspended destination',
      answers,
      problems: [UNKNOWN_DESTINATION],
      handler: async (request) => {
        await view.operations().resume(await known(request), auditName(request.requester))
        return changed(request)
      },
    }),
    apiRoute({
      method: 'POST',
      path: '/destinations/:name/probe',
      role: 'operator',
      summary: 'Try one message of a destination now',
      about: 'Flushes the oldest message, also at a dead destination.',
      answers,
      problems: [UNKNOWN_DESTINATION],
      handler: async (request) => {
        const destination = await known(request)
        const who = auditName(request.requester)
        const selection = { kind: 'filter', filter: { ...ANY_MESSAGE, destination }, limit: 1 } as const
        const whole = { queues: null, purge: false, reason: null, plan: null, request: null }
        const { ended } = await view.operations().jobs.start({ operation: 'flush', selection, who, ...whole })
        await ended
        return changed(request)
      },
    }),
  ]
}

const nameOf = ({ parameters }: ApiRequest<unknown, unknown>): string => (parameters['name'] ?? '').toLowerCase()

const past = (): Problem => {
  const detail = 'the time has passed: name one in the future, or none'
  return new Problem(HTTP_PROBLEMS.invalid, `invalid request: /until: ${detail}`, { errors: [{ pointer: '/until', detail }] })
}

function auditRoute(view: QueueView): ApiRoute {
  const text = z.string().min(1).max(1_000).optional()
  return apiRoute({
    method: 'GET',
    path: '/audit',
    role: 'viewer',
    summary: 'Audit log, the last record first',
    about:
      'The members of `deferd audit --json`, with the state of operations. An operation has the id of its record, whose arguments are those of `deferd queue` that select the same messages, quoted for a shell.',
    query: z.strictObject({
      who: text.describe('name of the operator; * matches any text'),
      action: text.describe('such as hold or suspend; * matches any text'),
      state: z.enum(OPERATION_STATES).optional(),
      since: durationText.optional().describe('less long ago than this: 30m, 2h, 1d'),
      limit: pageLimit,
      before: pageCursor,
    }),
    answers: { 200: { about: 'a page', shape: operationShapes.auditPage } },
    problems: [CURSOR_PROBLEM],
    handler: async (request) => {
      assertUnlimited(request)
      return page(await auditPage(view, request.query), request.written, 'before')
    },
  })
}

/** Routes that change messages and destinations, and the record of the changes. */
export const operationRoutes = (view: QueueView): readonly ApiRoute[] => [
  ...messageOperations(view),
  ...destinationOperations(view),
  auditRoute(view),
]
