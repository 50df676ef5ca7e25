/** The web page: its routes, the page of a refused request, and the login. */
import type { LoginPage } from '../admin/account-routes.ts'
import { HTTP_PROBLEMS, type Problem } from '../http/problem-details.ts'
import type { Route } from '../http/route-table.ts'
import type { RefusalPage } from '../http/web-refusal.ts'
import { problemText } from './markup/fields.ts'
import { shownSummary, withShownTimes } from './markup/problem-times.ts'
import type { View } from './markup/view.ts'
import { failureScreen } from './screens/failure-screen.ts'
import { loginScreen } from './screens/login-screen.ts'
import { actionRoutes } from './action-routes.ts'
import { deliverabilityPages } from './deliverability-pages.ts'
import { historyRoute } from './history-route.ts'
import { logPages } from './log-pages.ts'
import { nodePages } from './node-pages.ts'
import { erasePages } from './erase-pages.ts'
import { resendPages } from './resend-pages.ts'
import { problemIn, screenAnswer, viewOf, type ScreenDeps } from './page-view.ts'
import { providerPages } from './provider-pages.ts'
import { screenRoutes } from './screen-routes.ts'
import { FILES_FOLDER, fileRoutes } from './static-files.ts'
import { quotaPages } from './quota-pages.ts'
import { sharePages } from './share-pages.ts'
import { suppressionPages } from './suppression-pages.ts'
import { tokenPages } from './token-pages.ts'
import { trendsRoute } from './trends-route.ts'
import { subscriptionPages } from './subscription-pages.ts'
import { webhookPages } from './webhook-pages.ts'
import { zoneRoutes } from './zone-routes.ts'

/** The detail of a problem for a person: parameters by their words, times in the zone of the page, without requests of the API. */
const detailOf = (problem: Problem, view: View): string =>
  problem.kind === HTTP_PROBLEMS.invalid ? problemText([], withShownTimes(problemIn(problem), view)) : shownSummary(problem, view)

export class Page {
  readonly #deps: ScreenDeps

  constructor(deps: ScreenDeps) {
    this.#deps = deps
  }

  get routes(): readonly Route[] {
    return [
      ...screenRoutes(this.#deps),
      historyRoute(this.#deps),
      trendsRoute(this.#deps),
      ...actionRoutes(this.#deps),
      ...subscriptionPages(this.#deps),
      ...webhookPages(this.#deps),
      ...tokenPages(this.#deps),
      ...suppressionPages(this.#deps),
      ...quotaPages(this.#deps),
      ...sharePages(this.#deps),
      ...nodePages(this.#deps),
      ...resendPages(this.#deps),
      ...erasePages(this.#deps),
      ...logPages(this.#deps),
      ...providerPages(this.#deps),
      ...deliverabilityPages(this.#deps),
      ...zoneRoutes(this.#deps),
      ...fileRoutes,
    ]
  }

  /** Shows a problem to a person. */
  readonly refusal: RefusalPage = (problem, { path, screen, headers, requester }) => {
    const view = viewOf(this.#deps, { requester, parameters: {}, query: new URLSearchParams(), headers }, path, null)
    const { title, detail } =
      problem.kind === HTTP_PROBLEMS.unknownPath
        ? { title: 'No such screen', detail: `the page has no screen ${path}` }
        : { title: problem.kind.title, detail: detailOf(problem, view) }
    const again = screen !== null && problem.kind.status >= 500 ? `${view.root}${screen.slice(1)}` : null
    const answer = screenAnswer(view, failureScreen(view, { title, detail, again }), problem.kind.status)
    return { ...answer, headers: { ...answer.headers, ...problem.headers } }
  }

  readonly login: LoginPage = (facts) => loginScreen({ ...facts, relay: this.#deps.view.loaded().config.myhostname, files: FILES_FOLDER })
}
