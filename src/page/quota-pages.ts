/** Routes of the screen that lists quotas, and of the question before the counts of a key are reset. */
import { z } from 'zod'
import { assertUnlimited } from '../api/route/api-route.ts'
import { quotaReset, resetQuota } from '../api/quota-routes.ts'
import { formBody, shaped } from '../http/request-body.ts'
import { route, type Route } from '../http/route-table.ts'
import { differingSettings } from '../queries/nodes.ts'
import { quotaUses } from '../queries/records/quota-uses.ts'
import { FORM_LIMIT, requesterOf, screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { textsOf } from './markup/screen-parameters.ts'
import { quotaResetScreen, quotasScreen } from './screens/system/quotas-screen.ts'

const ROWS = 100

const resetForm = z.strictObject({ key: quotaReset.shape.key, quota: z.string().max(64) })

export const quotaPages = (deps: PageDeps): readonly Route[] => {
  const place = { path: '/quotas/reset', role: 'operator' } as const
  return [
    screenRoute(deps, { path: '/quotas' }, async (request, view) => {
      assertUnlimited(request)
      const { config } = deps.view.loaded()
      const { uses } = await quotaUses(deps.view, config, { limit: ROWS })
      const differing = (await differingSettings(deps.view)).filter((name) => name.startsWith('quota.'))
      return screenAnswer(view, quotasScreen(view, { uses, isOn: config.quota.size > 0, differing }))
    }),
    screenRoute(deps, { ...place, parameters: textsOf(resetForm.shape) }, async (request, view) => {
      assertUnlimited(request)
      return screenAnswer(view, quotaResetScreen(view, shaped(resetForm, Object.fromEntries(request.query))))
    }),
    route({
      method: 'POST',
      ...place,
      body: formBody(resetForm, FORM_LIMIT),
      handler: async (request) => {
        const requester = requesterOf(request)
        assertUnlimited({ requester })
        await resetQuota(deps.view, request.body, requester)
        return { kind: 'redirect', location: '../quotas' }
      },
    }),
  ]
}
