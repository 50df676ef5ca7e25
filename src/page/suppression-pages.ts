/** Routes of the screens that list, add and remove entries of the suppression list, and go on with listings that were stopped. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import {
  addSuppression,
  newSuppression,
  resumeListings,
  suppressionConditions,
  suppressionKey,
  suppressionScopeShape,
} from '../api/suppression-routes.ts'
import { formBody, shaped } from '../http/request-body.ts'
import { actorOf } from '../http/requests/requester.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import { checkValue } from '../presentation/checked-value.ts'
import { otherEntries, suppressionPage, suppressionStops, suppressionWith } from '../queries/records/suppression-entries.ts'
import { optionalField, spanField, textField } from './form-fields.ts'
import type { FormProblem } from './markup/fields.ts'
import type { View } from './markup/view.ts'
import {
  FORM_LIMIT,
  formRoute,
  given,
  orUndefined,
  problemOf,
  requesterOf,
  screenAnswer,
  screenRoute,
  type PageDeps,
  type SentForm,
  type ShownRequest,
} from './page-view.ts'
import { texts, textsOf } from './markup/screen-parameters.ts'
import {
  newSuppressionScreen,
  NO_ENTRIES,
  NO_SUPPRESSION,
  resumptionScreen,
  suppressionRemovalScreen,
  suppressionsScreen,
  type SuppressionText,
} from './screens/system/suppressions-screen.ts'

const ENTRIES_PER_PAGE = 50

const SUPPRESSIONS = { ...textsOf(suppressionConditions.shape), ...texts('after') }

async function listAnswer(
  { view: queue }: PageDeps,
  { asked: { after, ...filter } }: ShownRequest<typeof SUPPRESSIONS>,
  view: View,
): Promise<Answer> {
  const { stops } = await suppressionStops(queue)
  const { braked = [] } = await queue.live.brief()
  const shown = { filter, isFirst: after === '', stops, braked, setting: queue.loaded().config.suppression }
  const checked = checkValue(suppressionConditions, given(filter))
  if (!checked.ok)
    return screenAnswer(view, suppressionsScreen(view, { ...shown, page: NO_ENTRIES, problem: problemOf(checked.invalid) }), 422)
  const page = await suppressionPage(queue, { ...checked.value, limit: ENTRIES_PER_PAGE, after: orUndefined(after) })
  return screenAnswer(view, suppressionsScreen(view, { ...shown, page, problem: null }))
}

const entryForm = z.strictObject({ scope: textField, address: textField, reason: textField, text: textField, expires: textField })

const furtherFields = z.object({ text: optionalField, expires: spanField })

async function added(deps: PageDeps, { body, requester }: SentForm<SuppressionText>, view: View): Promise<Answer> {
  const refused = (problem: FormProblem): Answer => screenAnswer(view, newSuppressionScreen(view, body, problem), 422)
  const further = checkValue(furtherFields, body)
  if (!further.ok) return refused(problemOf(further.invalid))
  const { scope, address, reason } = body
  const checked = checkValue(newSuppression, { scope, address, reason, text: further.value.text, expires_in: further.value.expires })
  if (!checked.ok) return refused(problemOf(checked.invalid))
  await addSuppression(deps.view, checked.value, requester)
  return { kind: 'redirect', location: './suppressions' }
}

const additionRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/new-suppression', role: 'operator' } as const
  return [
    screenRoute(deps, place, async (request, view) => {
      assertUnlimited(request)
      return screenAnswer(view, newSuppressionScreen(view, NO_SUPPRESSION, null))
    }),
    formRoute(deps, { ...place, body: formBody(entryForm, FORM_LIMIT) }, async (request, view) => {
      assertUnlimited(request)
      return added(deps, request, view)
    }),
  ]
}

const removalRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/suppressions/remove', role: 'operator' } as const
  return [
    screenRoute(deps, { ...place, parameters: textsOf(suppressionKey.shape) }, async (request, view) => {
      assertUnlimited(request)
      const key = shaped(suppressionKey, Object.fromEntries(request.query))
      return screenAnswer(view, suppressionRemovalScreen(view, await suppressionWith(deps.view, key), await otherEntries(deps.view, key)))
    }),
    route({
      method: 'POST',
      ...place,
      body: formBody(suppressionKey, FORM_LIMIT),
      handler: async (request) => {
        const requester = requesterOf(request)
        assertUnlimited({ requester })
        const selection = { kind: 'keys', keys: [request.body] } as const
        await deps.view.suppressionChanges().remove({ selection, dryRun: false, ...actorOf(requester) })
        return { kind: 'redirect', location: '../suppressions' }
      },
    }),
  ]
}

const resumptionRoutes = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/suppressions/resume', role: 'operator' } as const
  return [
    screenRoute(deps, { ...place, parameters: textsOf(suppressionScopeShape.shape) }, async (request, view) => {
      assertUnlimited(request)
      const { scope } = shaped(suppressionScopeShape, Object.fromEntries(request.query))
      return screenAnswer(view, resumptionScreen(view, scope))
    }),
    route({
      method: 'POST',
      ...place,
      body: formBody(suppressionScopeShape, FORM_LIMIT),
      handler: async (request) => {
        const requester = requesterOf(request)
        assertUnlimited({ requester })
        await resumeListings(deps.view, request.body.scope, requester)
        return { kind: 'redirect', location: '../suppressions' }
      },
    }),
  ]
}

export const suppressionPages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/suppressions', parameters: SUPPRESSIONS }, (request, view) => {
    assertUnlimited(request)
    return listAnswer(deps, request, view)
  }),
  ...additionRoutes(deps),
  ...removalRoutes(deps),
  ...resumptionRoutes(deps),
]
