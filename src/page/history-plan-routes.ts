/** Operations on mail that has left the queue, in two steps: a screen with the plan, and the start by the form of that screen. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { formBody, shaped } from '../http/request-body.ts'
import type { Requester } from '../http/requests/requester.ts'
import { route, type Route } from '../http/route-table.ts'
import { idempotent } from '../queries/operations/idempotency.ts'
import type { Begun } from '../queries/operations/operations-view.ts'
import type { IdempotentRequest } from '../store/records/audit-log.ts'
import { placeOf } from './action-routes.ts'
import { queryText } from './markup/links.ts'
import type { View } from './markup/view.ts'
import { FORM_LIMIT, requesterOf, screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { texts } from './markup/screen-parameters.ts'
import { historyPlanScreen, type HistoryFields, type PlanParts } from './screens/history/plan-screen.ts'

interface Client {
  readonly requester: Requester
  readonly signal: AbortSignal
}

interface HistoryOperation<Order> {
  /** Name of the operation in the API, and of its command. */
  readonly operation: 'erase' | 'resend'
  readonly role: 'operator' | 'admin'
  /** Names of the fields that select. */
  readonly names: readonly string[]
  readonly shape: z.ZodType<Order>
  /** Body of the request of the API. */
  readonly bodyOf: (fields: HistoryFields) => object
  /** The plan, and the fields that select no mail that leaves the queue after it. */
  readonly plan: (
    order: Order,
    fields: HistoryFields,
    client: Client,
  ) => Promise<{ readonly selected: HistoryFields; readonly parts: (view: View) => PlanParts }>
  readonly begin: (order: Order, client: Client & { readonly request: IdempotentRequest | null }) => Promise<Begun>
}

/** The fields that select. Empty ones are left out. */
const fieldsIn = (names: readonly string[], given: Iterable<readonly [string, unknown]>): HistoryFields =>
  Object.fromEntries(
    [...given].flatMap(([name, value]) => (typeof value === 'string' && value !== '' && names.includes(name) ? [[name, value]] : [])),
  )

export function historyPlanRoutes<Order>(deps: PageDeps, one: HistoryOperation<Order>): readonly Route[] {
  const { operation, role, names, shape, bodyOf } = one
  const place = { path: `/history/${operation}`, role, slots: 'operations' } as const
  const form = z.strictObject({
    ...Object.fromEntries(names.map((name) => [name, z.string().max(1_000).optional()])),
    key: z.string().max(100),
    back: z.string().max(2_000),
    reason: z.string().trim().max(200).default(''),
  })
  return [
    screenRoute(deps, { ...place, parameters: texts(...names, 'back') }, async ({ asked, requester, signal }, view) => {
      const fields = fieldsIn(names, Object.entries(asked))
      const { selected, parts } = await one.plan(shaped(shape, bodyOf(fields)), fields, { requester, signal })
      const key = createHash('sha256')
        .update(`${JSON.stringify(selected)} ${view.now}`)
        .digest('hex')
      const shown = { operation, fields: selected, body: bodyOf(selected), key, back: placeOf(asked['back'] ?? null) }
      return screenAnswer(view, historyPlanScreen(view, parts(view), shown))
    }),
    route({
      method: 'POST',
      ...place,
      body: formBody(form, FORM_LIMIT),
      handler: async (request) => {
        const { key, back, reason, ...given } = request.body
        const requester = requesterOf(request)
        const fields = fieldsIn(names, Object.entries(given))
        const order = shaped(shape, { ...bodyOf(fields), ...(reason === '' ? {} : { reason }) })
        // A form that is sent twice, by a double click or a reload, has its effect once.
        const once = idempotent(`${requester.name} page ${key}`, operation, order)
        const { operation: begun } = await one.begin(order, { requester, signal: request.signal, request: once })
        return { kind: 'redirect', location: `../operations/${begun.id}${queryText({ back: placeOf(back) })}` }
      },
    }),
  ]
}
