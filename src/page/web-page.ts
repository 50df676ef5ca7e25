/** The web page: its routes, the page of a refused request, and the login. */
import type { LoginPage } from '../admin/account-routes.ts'
import type { Route } from '../http/route-table.ts'
import type { RefusalPage } from '../http/web-refusal.ts'
import { failureScreen } from './screens/failure-screen.ts'
import { loginScreen } from './screens/login-screen.ts'
import { actionRoutes } from './action-routes.ts'
import { nodePages } from './node-pages.ts'
import { screenAnswer, viewOf, type ScreenDeps } from './page-view.ts'
import { screenRoutes } from './screen-routes.ts'
import { FILES_FOLDER, fileRoutes } from './static-files.ts'
import { subscriptionPages } from './subscription-pages.ts'
import { zoneRoutes } from './zone-routes.ts'

export class Page {
  readonly #deps: ScreenDeps

  constructor(deps: ScreenDeps) {
    this.#deps = deps
  }

  get routes(): readonly Route[] {
    return [
      ...screenRoutes(this.#deps),
      ...actionRoutes(this.#deps),
      ...subscriptionPages(this.#deps),
      ...nodePages(this.#deps),
      ...zoneRoutes(this.#deps),
      ...fileRoutes,
    ]
  }

  /** Shows a problem to a person. */
  readonly refusal: RefusalPage = ({ kind: { title, status }, message: detail, headers }, { path, requester }) => {
    const view = viewOf(this.#deps, { requester, parameters: {}, query: new URLSearchParams(), headers: {} }, path, null)
    const answer = screenAnswer(view, failureScreen(view, { title, detail }), status)
    return { ...answer, headers: { ...answer.headers, ...headers } }
  }

  readonly login: LoginPage = (facts) => loginScreen({ ...facts, relay: this.#deps.view.loaded().config.myhostname, files: FILES_FOLDER })
}
