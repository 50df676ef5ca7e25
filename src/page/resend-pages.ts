/** Routes of the page that send mail of the history again. */
import type { Route } from '../http/route-table.ts'
import { formatInstant } from '../mail/message-times.ts'
import { instantOf } from '../presentation/text.ts'
import { beginResending, historyConditions, planResending, resendShape } from '../queries/operations/resend.ts'
import { historyPlanRoutes } from './history-plan-routes.ts'
import type { PageDeps } from './page-view.ts'
import { resendParts } from './screens/history/resend-screen.ts'

export const resendPages = (deps: PageDeps): readonly Route[] =>
  historyPlanRoutes(deps, {
    operation: 'resend',
    role: 'operator',
    names: ['id', ...Object.keys(historyConditions)],
    shape: resendShape,
    bodyOf: ({ id, ...filter }) => (id === undefined ? { filter } : { ids: [id] }),
    plan: async (order, fields, client) => {
      const plan = await planResending(deps.view, order, client)
      const isPinned = fields['id'] !== undefined || fields['left_before'] !== undefined
      const selected = isPinned ? fields : { ...fields, left_before: formatInstant(instantOf(plan.left_before)) }
      return { selected, parts: (view) => resendParts(view, plan) }
    },
    begin: (order, client) => beginResending(deps.view, order, client),
  })
