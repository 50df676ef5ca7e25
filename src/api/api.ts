/** The routes of /api/v1. */
import type { ApiRoute } from './api-route.ts'
import { openApiRoute } from './openapi.ts'
import { Now } from './queries/now.ts'
import type { QueueView } from './queries/queue-view.ts'
import { readRoutes } from './read-routes.ts'

export class Api {
  readonly view: QueueView
  readonly now: Now

  constructor(view: QueueView) {
    this.view = view
    this.now = new Now(view)
  }

  get routes(): readonly ApiRoute[] {
    const routes = readRoutes(this)
    return [...routes, openApiRoute(routes)]
  }

  /** Ends the ticks of the streams. */
  close(): void {
    this.now.close()
  }
}
