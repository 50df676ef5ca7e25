/** Route of the screen that lists the shares of the queue. */
import { assertUnlimited } from '../api/route/api-route.ts'
import type { Route } from '../http/route-table.ts'
import { sharesOf } from '../queries/shares.ts'
import { screenAnswer, screenRoute, type PageDeps } from './page-view.ts'
import { sharesScreen } from './screens/system/shares-screen.ts'

const ROWS = 100

export const sharePages = (deps: PageDeps): readonly Route[] => [
  screenRoute(deps, { path: '/shares' }, async (request, view) => {
    assertUnlimited(request)
    return screenAnswer(view, sharesScreen(await sharesOf(deps.view, { limit: ROWS })))
  }),
]
