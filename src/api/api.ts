/** The routes of /api/v1. */
import type { ApiRoute } from './route/api-route.ts'
import { clientRoutes } from './client-routes.ts'
import { deliverabilityRoutes } from './deliverability-routes.ts'
import { destinationOperations, destinationRoutes } from './destination-routes.ts'
import { auditRoute, historyRoute } from './history-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { logRoute } from './log-routes.ts'
import { nodeRoutes } from './node-routes.ts'
import { openApiRoute } from './openapi.ts'
import { providerRoutes } from './provider-routes.ts'
import { Causes } from '../queries/counts/causes.ts'
import { Senders } from '../queries/counts/senders.ts'
import { Now } from '../queries/now.ts'
import type { QueueView } from '../queries/queue-view.ts'
import { quotaRoutes } from './quota-routes.ts'
import { shareRoutes } from './share-routes.ts'
import { operationRoutes } from './operation-routes.ts'
import { messageRoutes } from './message-routes.ts'
import { ownMessageRoutes } from './own-message-routes.ts'
import { recordRoutes, type RecordChanges } from './record-routes.ts'
import { eraseRoutes, resendRoutes } from './resend-routes.ts'
import { settingsRoutes, statusRoutes } from './status-routes.ts'
import { searchRoute } from './search-route.ts'
import { seriesRoute } from './series-route.ts'
import { scheduleRoutes } from './schedule-routes.ts'
import { submissionRoute } from './submission-routes.ts'
import { subscriptionRoutes } from './subscription-routes.ts'
import { suppressionRoutes } from './suppression-routes.ts'
import { webhookRoutes } from './webhook-routes.ts'

export interface ApiDeps {
  readonly records: () => RecordChanges
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
      ...clientRoutes(view),
      ...statusRoutes(this.now),
      seriesRoute(view),
      ...messageRoutes(view, this.senders),
      ...ownMessageRoutes(view),
      ...destinationRoutes(view, this.causes),
      historyRoute(view),
      searchRoute(view),
      ...resendRoutes(view),
      ...eraseRoutes(view),
      ...nodeRoutes(view),
      ...settingsRoutes(view),
      ...eventRoutes(view),
      ...subscriptionRoutes(view),
      ...webhookRoutes(view),
      ...recordRoutes(this.#deps.records),
      ...suppressionRoutes(view),
      ...quotaRoutes(view),
      ...shareRoutes(view),
      ...scheduleRoutes(view),
      submissionRoute(view),
      ...operationRoutes(view),
      ...destinationOperations(view),
      ...providerRoutes(view),
      ...deliverabilityRoutes(view),
      auditRoute(view),
      logRoute(view),
    ]
    return [...routes, openApiRoute(routes)]
  }

  /** Ends the ticks of the streams. */
  close(): void {
    this.now.close()
  }
}
