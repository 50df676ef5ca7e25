/** The routes of /api/v1. */
import type { ApiRoute } from './api-route.ts'
import { clientRoutes, type ClientRoutesDeps } from './client-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { openApiRoute } from './openapi.ts'
import { Causes } from './queries/causes.ts'
import { Now } from './queries/now.ts'
import type { QueueView } from './queries/queue-view.ts'
import { operationRoutes } from './operation-routes.ts'
import { readRoutes } from './read-routes.ts'
import { submissionRoute } from './submission-routes.ts'
import { subscriptionRoutes } from './subscription-routes.ts'

export class Api {
  readonly view: QueueView
  readonly now: Now
  readonly causes: Causes
  readonly #clients: ClientRoutesDeps

  constructor(view: QueueView, clients: ClientRoutesDeps) {
    this.view = view
    this.#clients = clients
    this.now = new Now(view)
    this.causes = new Causes(view)
  }

  get routes(): readonly ApiRoute[] {
    const routes = [
      ...clientRoutes(this.#clients),
      ...readRoutes(this),
      ...eventRoutes(this.view),
      ...subscriptionRoutes(this.view),
      submissionRoute(this.view),
      ...operationRoutes(this.view),
    ]
    return [...routes, openApiRoute(routes)]
  }

  /** Ends the ticks of the streams. */
  close(): void {
    this.now.close()
  }
}
