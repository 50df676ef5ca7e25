/** Routes of the API for operations on messages. */
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import type { Answer } from '../http/route-table.ts'
import { momentOf } from '../mail/message-times.ts'
import { jsonLine } from '../presentation/text.ts'
import { seconds, type Duration } from '../system/clock.ts'
import { every } from '../system/periodic-task.ts'
import { BASE, NDJSON } from '../http/command-protocol.ts'
import { apiRoute, json, wantsLines, type ApiRequest, type ApiRoute } from './route/api-route.ts'
import { operationLine, operationLines } from './route/operation-lines.ts'
import {
  beginOperation,
  cancelOperation,
  ENDED,
  NOT_UNDOABLE,
  operationPlan,
  operationState,
  permitted,
  PLAN_OUTDATED,
  undoOperation,
  UNKNOWN_OPERATION,
  type Begun,
} from '../queries/operations/operations-view.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { numberIn } from '../queries/cursor.ts'
import { idempotent, KEY_REUSED, keyOf, REPLAYED } from '../queries/operations/idempotency.ts'
import {
  askedBy,
  operationRequestShape,
  type Asked,
  type DirectRequest,
  type PlannedRequest,
} from '../queries/operations/operation-request-shape.ts'
import { PLAN_PROBLEM, planOfToken } from '../queries/operations/plan-token.ts'
import { operationPlanShape, operationShape } from '../resources/operation-json.ts'

/** Maximum size of the body of an operation. 150,000 queue ids fit, and each plan. */
const LARGE_BODY = 4 * 1024 * 1024

export const KEY_HEADER = {
  'Idempotency-Key': 'a key that the client chooses: a request that is repeated with the same key within 24 hours has its effect once',
} as const

const idOf = ({ parameters }: ApiRequest<unknown, unknown>): number => numberIn(parameters['id'] ?? '') ?? Number.NaN

/** 200 with an operation that has ended, 202 with its path while it runs. */
export function begunAnswer({ operation, isReplayed }: Begun): Answer {
  const replayed = isReplayed ? REPLAYED : {}
  const location = { location: `${BASE}/operations/${operation.id}` }
  return { kind: 'json', status: operation.state === 'running' ? 202 : 200, value: operation, headers: { ...replayed, ...location } }
}

export const BEGUN = {
  200: { about: 'the operation, which has ended', shape: operationShape },
  202: { about: 'the operation, which runs; `Location` has its path', shape: operationShape },
} as const

const ACCEPT_LINES = { Accept: 'application/json, or application/x-ndjson for lines of progress' } as const

const LINES = { about: 'progress, then the outcome', type: NDJSON, shape: operationLine } as const

const isPlanned = (body: DirectRequest | PlannedRequest): body is PlannedRequest => 'plan' in body

const WITHOUT_KEY = 'an answer by lines cannot be repeated: send no Idempotency-Key, or accept application/json'

/** Carries an operation, or its dry run, out as lines. */
async function changeLines(
  view: QueueView,
  request: Pick<ApiRequest<unknown, DirectRequest>, 'body' | 'requester' | 'headers'>,
  given: Asked,
): Promise<Answer> {
  const { body, requester, headers } = request
  if (keyOf(headers, requester) !== null) throw new Problem(HTTP_PROBLEMS.malformed, WITHOUT_KEY)
  const asked = await permitted(view, given, requester)
  const actor = actorOf(requester)
  const isDry = body.dry_run === true
  return operationLines(view.clock, isDry, async (progress) => {
    if (isDry) return view.operations().perform({ ...asked, ...actor, dryRun: true }, progress)
    const started = await view
      .operations()
      .jobs.start({ ...asked, ...actor, reason: body.reason ?? null, plan: null, request: null }, progress)
    return started.ended
  })
}

async function carryOut(view: QueueView, request: ApiRequest<unknown, DirectRequest | PlannedRequest>): Promise<Answer> {
  const { body, requester, headers } = request
  const reason = body.reason ?? null
  const acceptsGrowth = body.accept_growth === true
  const key = idempotent(keyOf(headers, requester), 'POST /operations', body)
  const carried = { requester, reason, request: key, acceptsGrowth }
  if (isPlanned(body)) return begunAnswer(await beginOperation(view, planOfToken(body.plan), carried))
  const asked = askedBy(body, momentOf(view.clock))
  if (wantsLines(request)) return changeLines(view, { ...request, body }, asked)
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

const runningRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'POST',
    path: '/operations',
    role: 'operator',
    summary: 'Change messages: flush, hold, release, requeue, expire, delete, restore',
    about:
      'With `"dry_run": true`, nothing is changed and the answer is a plan. A request with the token of the plan carries it out on messages that existed at the dry run only. An operation of more than 2 s continues without its client. A filter has the names of the query of `GET /messages`; one without conditions needs `"all": true`. With `Accept: application/x-ndjson`, a request without a plan is answered by lines until the operation has ended; its dry run has the ids of all messages.',
    headers: { ...KEY_HEADER, ...ACCEPT_LINES },
    body: jsonBody(operationRequestShape, LARGE_BODY),
    example: {
      operation: 'hold',
      selection: { kind: 'filter', filter: { destination: 'gmail.com', reply: 'unusual rate of mail' } },
      dry_run: true,
    },
    answers: { 200: [BEGUN[200], { about: 'the plan of a dry run', shape: operationPlanShape }, LINES], 202: BEGUN[202] },
    problems: [PLAN_OUTDATED, PLAN_PROBLEM, KEY_REUSED],
    slots: 'operations',
    handler: (request) => carryOut(view, request),
  }),
  apiRoute({
    method: 'GET',
    path: '/operations/:id',
    role: 'viewer',
    summary: 'State of an operation',
    answers: { 200: { about: 'the operation', shape: operationShape } },
    problems: [UNKNOWN_OPERATION],
    handler: async (request) => json(await operationState(view, idOf(request), request.requester)),
  }),
  apiRoute({
    method: 'GET',
    path: '/operations/:id/stream',
    role: 'viewer',
    summary: 'State of an operation, when it changes',
    about: 'Server-sent events named `operation`, each with the value of `GET /operations/{id}`; the last one has the end.',
    answers: { 200: { about: 'events', type: 'text/event-stream', shape: operationShape } },
    problems: [UNKNOWN_OPERATION, HTTP_PROBLEMS.busy],
    handler: async (request) => {
      await operationState(view, idOf(request), request.requester)
      return { kind: 'events', subscribe: (send) => watch(view, request, send) }
    },
  }),
]

const endingRoutes = (view: QueueView): readonly ApiRoute[] => [
  apiRoute({
    method: 'DELETE',
    path: '/operations/:id',
    role: 'operator',
    summary: 'Cancel an operation',
    about: 'The operation ends after its present round of 64 messages. Changed messages stay changed, and can be undone.',
    answers: { 200: { about: 'the operation', shape: operationShape } },
    problems: [UNKNOWN_OPERATION, ENDED],
    handler: async (request) => json(await cancelOperation(view, idOf(request), request.requester)),
  }),
  apiRoute({
    method: 'POST',
    path: '/operations/:id/undo',
    role: 'operator',
    summary: 'Undo an operation',
    about: 'Changes those messages back that are still as the operation has placed them: a deletion restores, a hold releases.',
    headers: { ...KEY_HEADER, ...ACCEPT_LINES },
    query: z.strictObject({ reason: z.string().min(1).max(1_000).optional().describe('reason of the operator, for the audit log') }),
    answers: { 200: [BEGUN[200], LINES], 202: BEGUN[202] },
    problems: [UNKNOWN_OPERATION, NOT_UNDOABLE, KEY_REUSED, HTTP_PROBLEMS.malformed],
    handler: async (request) => {
      const { requester, headers, query } = request
      const reason = query.reason ?? null
      const undo = { operation: idOf(request), ...actorOf(requester), reason }
      if (wantsLines(request)) {
        await operationState(view, undo.operation, requester)
        return operationLines(view.clock, false, (progress) => view.operations().undo(undo, progress))
      }
      const key = idempotent(keyOf(headers, requester), 'undo', undo.operation)
      return begunAnswer(await undoOperation(view, undo.operation, { requester, reason, request: key }))
    },
  }),
]

export const operationRoutes = (view: QueueView): readonly ApiRoute[] => [...runningRoutes(view), ...endingRoutes(view)]
