/** The routes of /api/v1. */
import type { ApiRoute } from './api-route.ts'
import { clientRoutes, type ClientRoutesDeps } from './client-routes.ts'
import { destinationOperations, destinationRoutes } from './destination-routes.ts'
import { auditRoute, historyRoute } from './history-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { nodeRoutes } from './node-routes.ts'
import { openApiRoute } from './openapi.ts'
import { Causes } from '../queries/causes.ts'
import { Senders } from '../queries/senders.ts'
import { Now } from '../queries/now.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { operationRoutes } from './operation-routes.ts'
import { messageRoutes } from './message-routes.ts'
import { ownMessageRoutes } from './own-message-routes.ts'
import { recordRoutes, type RecordChanges } from './record-routes.ts'
import { settingsRoutes, statusRoutes } from './status-routes.ts'
import { scheduleRoutes } from './schedule-routes.ts'
import { submissionRoute } from './submission-routes.ts'
import { subscriptionRoutes } from './subscription-routes.ts'
import { webhookRoutes, type WebhookChanges } from './webhook-routes.ts'

export interface ApiDeps extends ClientRoutesDeps {
  readonly records: () => RecordChanges
  readonly webhooks: () => WebhookChanges
}

export class Api {
  readonly view: QueueView
  readonly now: Now
  readonly causes: Causes
  readonly senders: Senders
  readonly #deps: ApiDeps

  constructor(view: QueueView, deps: ApiDeps) {
    this.view = view
    this.#deps = deps
    this.now = new Now(view)
    this.causes = new Causes(view)
    this.senders = new Senders(view)
  }

  get routes(): readonly ApiRoute[] {
    const { view } = this
    const routes = [
      ...clientRoutes(this.#deps),
      ...statusRoutes(view, this.now),
      ...messageRoutes(view, this.senders),
      ...ownMessageRoutes(view),
      ...destinationRoutes(view, this.causes),
      historyRoute(view),
      ...nodeRoutes(view),
      ...settingsRoutes(view),
      ...eventRoutes(view),
      ...subscriptionRoutes(view),
      ...webhookRoutes(this.#deps.webhooks),
      ...recordRoutes(this.#deps.records),
      ...scheduleRoutes(view),
      submissionRoute(view),
      ...operationRoutes(view),
      ...destinationOperations(view),
      auditRoute(view),
    ]
    return [...routes, openApiRoute(routes)]
  }

  /** Ends the ticks of the streams. */
  close(): void {
    this.now.close()
  }
}
