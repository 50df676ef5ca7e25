/**
 * Routes of the actions: the dry run of an operation, its start, progress, cancel and undo; the suspension of destinations; and the
 * audit log. Forms send the same requests as programs do, and lead to a screen with 303 (See Other).
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { destinationDetails } from '../queries/destinations.ts'
import {
  auditPage,
  beginOperation,
  cancelOperation,
  operationPlan,
  operationState,
  PLAN_OUTDATED,
  undoOperation,
} from '../queries/operations/operations-view.ts'
import { numberIn } from '../queries/cursor.ts'
import { idempotent } from '../queries/operations/idempotency.ts'
import { actionPattern } from '../presentation/action-words.ts'
import { alsoSuspendedWith } from '../presentation/destination-state.ts'
import type { DestinationDetailsJson } from '../resources/destination-json.ts'
import { conditionShape } from '../queries/message-query.ts'
import { askedBy, type Asked, type DirectRequest } from '../queries/operations/operation-request-shape.ts'
import { planOfToken } from '../queries/operations/plan-token.ts'
import { Problem } from '../http/problem-details.ts'
import { formBody, shaped } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import { momentOf, parseNamedTime, type Moment, type NamedTime } from '../mail/message-times.ts'
import { OPERATIONS } from '../queue/operation-request.ts'
import { namedTimeText } from '../queue/operation-words.ts'
import { queryText } from './markup/links.ts'
import { ANY_TIME, timeRangeIn } from './markup/time-range.ts'
import type { View } from './markup/view.ts'
import { auditScreen } from './screens/system/audit-screen.ts'
import { suspensionAnswer, suspensionBody } from './suspension-form.ts'
import { suspensionPanel, type Suspended, type SuspensionVerb } from './screens/suspension-panels.ts'
import { bodyOf, conditionsOf, describedFilter, filterTextOf, FILTER_PARAMETERS, optionsOf } from './screens/filter-text.ts'
import { classQuestion, nothingSelected, operationScreen, planScreen, timeQuestion, TYPED_FROM } from './screens/operation-screens.ts'
import type { CauseJson } from '../resources/cause-json.ts'
import { SEVERAL_TEXTS, texts } from './markup/screen-parameters.ts'
import {
  FORM_LIMIT,
  formRoute,
  orUndefined,
  requesterOf,
  screenAnswer,
  screenRoute,
  type PageDeps,
  type ScreenDeps,
  type ShownRequest,
} from './page-view.ts'

const RECORDS_PER_PAGE = 50

/** The place below the root to which a screen leads back; null when its query has none. */
const backOf = (query: URLSearchParams): string | null => {
  const back = query.get('back')
  return back === null ? null : placeOf(back)
}

/** The place to which a screen leads back. A place outside the page, such as another site, becomes the messages. */
export const placeOf = (back: string | null): string =>
  back !== null && /^(?:messages|destinations|causes|history|audit)(?:[/?][\u0021-\u007e]*)?$/.test(back) && !back.includes('..')
    ? back
    : 'messages'

/** Parameters of the screen of an operation: those that select, and those of the operation. */
const PLAN = {
  ...FILTER_PARAMETERS,
  ...texts('operation', 'scope', 'back', 'problem', 'not_before', 'to_class'),
  id: SEVERAL_TEXTS,
} as const

type PlanRequest = ShownRequest<typeof PLAN>

const operationOf = ({ operation }: PlanRequest['asked']): (typeof OPERATIONS)[number] =>
  shaped(z.object({ operation: z.enum(OPERATIONS) }), { operation: orUndefined(operation) }).operation

/** An operation as a query describes it, with its forms for the API, for a command, and for people. */
interface AskedAction {
  readonly asked: Asked
  readonly words: readonly string[]
  readonly selection: string
  /** The conditions, when they are those of a cause; null otherwise. */
  readonly causeFilter: NonNullable<CauseJson['filter']> | null
  readonly body: unknown
}

/** Conditions on reply, destination and queue alone may be those of a cause. */
function causeFilterOf(conditions: Readonly<Record<string, string>>): AskedAction['causeFilter'] {
  const { reply, destination = null, queue = null, ...others } = conditions as Readonly<Partial<Record<string, string>>>
  return reply === undefined || Object.keys(others).length > 0 ? null : { reply, destination, queue }
}

/** The time of a reschedule; undefined without a valid one. */
const releaseIn = ({ not_before: given }: PlanRequest['asked']): NamedTime | undefined => (given === '' ? undefined : parseNamedTime(given))

/** The class of a reclass; undefined for other operations, whose conditions may have a class, and without one. */
const classIn = (asked: PlanRequest['asked']): string | undefined =>
  operationOf(asked) === 'reclass' ? orUndefined(asked.to_class) : undefined

/** The parameters but one, for the form that asks for it. */
const keptOf = (query: URLSearchParams, without: string): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries([...query.keys()].filter((name) => name !== without).map((name) => [name, query.getAll(name)]))

/** The screen that asks for the time of a reschedule; null when it has one, and for other operations. */
function askedForTime(view: View, { query, asked }: PlanRequest): Answer | null {
  if (operationOf(asked) !== 'reschedule' || releaseIn(asked) !== undefined) return null
  const problem = query.has('not_before') ? 'A time is expected, such as 2h or 2026-11-24T08:00:00Z.' : null
  return screenAnswer(view, timeQuestion(view, { query: keptOf(query, 'not_before'), back: placeOf(asked.back), problem }))
}

/** The screen that asks for the class of a reclass; null when it has one, and for other operations. */
function askedForClass(view: View, { query, asked }: PlanRequest): Answer | null {
  if (operationOf(asked) !== 'reclass' || classIn(asked) !== undefined) return null
  return screenAnswer(view, classQuestion(view, { query: keptOf(query, 'to_class'), back: placeOf(asked.back), classes: view.classes }))
}

/** Null when no message is checked. */
function actionOf({ query, asked: given }: PlanRequest, view: View, moment: Moment): AskedAction | null {
  const operation = operationOf(given)
  const filter = filterTextOf(given, view)
  const ids = query.getAll('id')
  const release = releaseIn(given)
  const named = classIn(given)
  const last = named === undefined ? [] : [named]
  const inBody = { ...(release === undefined ? {} : { not_before: given.not_before }), ...(named === undefined ? {} : { class: named }) }
  const time = release === undefined ? [] : [`${release.kind === 'span' ? '--in' : '--at'}=${namedTimeText(release)}`]
  if (given.scope === 'ids' || (ids.length > 0 && given.scope !== 'filter')) {
    if (ids.length === 0) return null
    const selection = { kind: 'ids', ids } as const
    const request: DirectRequest = { operation, selection, not_before: release, class: named }
    const asked = askedBy(request, moment)
    const body = { operation, selection, ...inBody }
    return { asked, words: ['queue', operation, ...time, ...ids, ...last], selection: '', causeFilter: null, body }
  }
  const written = conditionsOf(filter)
  const conditions = shaped(conditionShape, written)
  const all = Object.keys(written).length === 0
  const request: DirectRequest = {
    operation,
    selection: { kind: 'filter', filter: conditions },
    not_before: release,
    class: named,
    ...(all ? { all } : {}),
  }
  return {
    asked: askedBy(request, moment),
    words: ['queue', operation, ...time, ...(all ? ['--all'] : optionsOf(filter)), ...last],
    selection: all ? 'all mail in the queue' : describedFilter(filter, view),
    causeFilter: causeFilterOf(written),
    body: { operation, selection: { kind: 'filter', filter: bodyOf(filter) }, ...inBody, ...(all ? { all } : {}) },
  }
}

/** Sentences about a plan that was not carried out, by reason. */
const PROBLEMS: Readonly<Record<string, string>> = {
  outdated: 'The last try changed nothing, because many more messages matched than had been shown. These match now.',
  typed: 'The last try changed nothing, because the number was not the number of messages.',
}

async function planAnswer(deps: ScreenDeps, request: PlanRequest, view: View): Promise<Answer> {
  const question = askedForTime(view, request) ?? askedForClass(view, request)
  if (question !== null) return question
  const back = placeOf(request.asked.back)
  const action = actionOf(request, view, momentOf(deps.view.clock))
  if (action === null) return screenAnswer(view, nothingSelected(view, back))
  const { asked, words, selection, causeFilter, body } = action
  const plan = await operationPlan(deps.view, asked, request.requester)
  const again = new URLSearchParams(request.query)
  again.delete('problem')
  const key = createHash('sha256').update(`${plan.token} ${view.now}`).digest('hex')
  const facts = {
    plan: { ...plan, operation: asked.operation, release: asked.release, class: asked.class },
    selection,
    cause: causeFilter === null ? null : deps.causes.known(causeFilter, request),
    words,
    call: { method: 'POST', path: 'api/v1/operations', body } as const,
    again: again.toString(),
    key,
    back,
    problem: plan.matched === 0 ? null : (PROBLEMS[request.asked.problem] ?? null),
  }
  return screenAnswer(view, planScreen(view, facts))
}

const startShape = z.strictObject({
  plan: z.string().max(FORM_LIMIT),
  key: z.string().max(100),
  again: z.string().max(8_000),
  back: z.string().max(2_000),
  reason: z.string().trim().max(200).default(''),
  typed: z.string().trim().max(20).default(''),
})

async function start(deps: PageDeps, request: RouteRequest<z.output<typeof startShape>>): Promise<Answer> {
  const { plan, key, again, back, reason, typed } = request.body
  const requester = requesterOf(request)
  const repeated = (problem: string): Answer => ({ kind: 'redirect', location: `operations/new?${again}&problem=${problem}` })
  const planned = planOfToken(plan)
  if (planned.matched > TYPED_FROM && typed.replace(/[ ,.]/g, '') !== String(planned.matched)) return repeated('typed')
  const carried = { requester, reason: reason === '' ? null : reason, acceptsGrowth: false }
  try {
    // A form that is sent twice, by a double click or a reload, has its effect once.
    const once = idempotent(`${requester.name} page ${key}`, plan, reason)
    const { operation } = await beginOperation(deps.view, planned, { ...carried, request: once })
    return { kind: 'redirect', location: `operations/${operation.id}${queryText({ back: placeOf(back) })}` }
  } catch (error) {
    if (error instanceof Problem && error.kind === PLAN_OUTDATED) return repeated('outdated')
    throw error
  }
}

const idOf = ({ parameters }: Pick<RouteRequest<unknown>, 'parameters'>): number => numberIn(parameters['id'] ?? '') ?? Number.NaN

function operationRoutes(deps: ScreenDeps): readonly Route[] {
  return [
    screenRoute(deps, { path: '/operations/new', role: 'operator', slots: 'operations', parameters: PLAN }, (request, view) =>
      planAnswer(deps, request, view),
    ),
    route({
      method: 'POST',
      path: '/operations',
      role: 'operator',
      body: formBody(startShape, FORM_LIMIT),
      slots: 'operations',
      handler: (request) => start(deps, request),
    }),
    screenRoute(deps, { path: '/operations/:id', parameters: texts('back') }, async (request, view) => {
      const operation = await operationState(deps.view, idOf(request), request.requester)
      return screenAnswer(view, operationScreen(view, { operation, back: backOf(request.query) }))
    }),
    route({
      method: 'POST',
      path: '/operations/:id/cancel',
      role: 'operator',
      handler: async (request) => {
        await cancelOperation(deps.view, idOf(request), requesterOf(request))
        return { kind: 'redirect', location: `../${idOf(request)}${queryText({ back: backOf(request.query) })}` }
      },
    }),
    route({
      method: 'POST',
      path: '/operations/:id/undo',
      role: 'operator',
      handler: async (request) => {
        const carried = { requester: requesterOf(request), reason: null, request: null }
        const { operation } = await undoOperation(deps.view, idOf(request), carried)
        return { kind: 'redirect', location: `../${operation.id}${queryText({ back: backOf(request.query) })}` }
      },
    }),
  ]
}

function suspensionRoutes(deps: PageDeps): readonly Route[] {
  const known = (request: RouteRequest<unknown>) =>
    destinationDetails(deps.view, request.parameters['name'] ?? '', requesterOf(request).destinations)
  const suspendedOf = (one: DestinationDetailsJson): Suspended => ({
    kind: 'destination',
    name: one.destination,
    waiting: one.waiting,
    alsoWith: alsoSuspendedWith(one),
  })
  const form = (verb: SuspensionVerb): Route =>
    screenRoute(deps, { path: `/destinations/:name/${verb}`, role: 'operator' }, async (request, view) => {
      return screenAnswer(view, suspensionPanel(view, verb, suspendedOf(await known(request))))
    })
  const back = (destination: string): Answer => ({ kind: 'redirect', location: `../${encodeURIComponent(destination)}` })
  return [
    form('suspend'),
    form('resume'),
    formRoute(deps, { path: '/destinations/:name/suspend', role: 'operator', body: suspensionBody }, async (request, view) => {
      const one = await known(request)
      const { destination: name } = one
      return suspensionAnswer(request, view, {
        suspended: async () => suspendedOf(one),
        suspend: async (asked) => {
          await deps.view.operations().suspend(name, asked)
          return back(name)
        },
      })
    }),
    route({
      method: 'POST',
      path: '/destinations/:name/resume',
      role: 'operator',
      handler: async (request) => {
        const { destination } = await known(request)
        await deps.view.operations().resume(destination, actorOf(requesterOf(request)))
        return back(destination)
      },
    }),
  ]
}

const AUDIT = texts('who', 'action', 'request_id', 'recorded_after', 'recorded_before', 'before')

const auditRoute = (deps: PageDeps): Route =>
  screenRoute(deps, { path: '/audit', parameters: AUDIT }, async (request, view) => {
    assertUnlimited(request)
    const { before, ...query } = request.asked
    const range = timeRangeIn({ after: query.recorded_after, before: query.recorded_before }, view)
    if (typeof range === 'string') {
      const facts = { page: { records: [], next: null }, query, range: ANY_TIME, before, problem: range }
      return screenAnswer(view, auditScreen(view, facts), 422)
    }
    const [who, action] = [orUndefined(query.who), orUndefined(actionPattern(query.action))]
    const asked = { who, action, request_id: orUndefined(query.request_id), recorded_after: range.after, recorded_before: range.before }
    const page = await auditPage(deps.view, { ...asked, limit: RECORDS_PER_PAGE, before: orUndefined(before) })
    return screenAnswer(view, auditScreen(view, { page, query, range, before, problem: null }))
  })

export const actionRoutes = (deps: ScreenDeps): readonly Route[] => [...operationRoutes(deps), ...suspensionRoutes(deps), auditRoute(deps)]
