/** Routes of the page that erase addresses of mail that has left. */
import { assertUnlimited } from '../api/route/api-route.ts'
import type { Route } from '../http/route-table.ts'
import { formatInstant } from '../mail/message-times.ts'
import { instantOf } from '../presentation/text.ts'
import { beginErasure, eraseShape, planErasure } from '../queries/operations/erase.ts'
import { historyPlanRoutes } from './history-plan-routes.ts'
import type { PageDeps } from './page-view.ts'
import { erasureParts } from './screens/history/erase-screen.ts'

export const erasePages = (deps: PageDeps): readonly Route[] =>
  historyPlanRoutes(deps, {
    operation: 'erase',
    role: 'admin',
    names: ['recipient', 'sender', 'before'],
    shape: eraseShape,
    bodyOf: (fields) => fields,
    plan: async (order, fields, client) => {
      assertUnlimited(client)
      const plan = await planErasure(deps.view, order)
      return { selected: { ...fields, before: formatInstant(instantOf(plan.before)) }, parts: (view) => erasureParts(view, plan, fields) }
    },
    begin: (order, client) => {
      assertUnlimited(client)
      return beginErasure(deps.view, order, client)
    },
  })
