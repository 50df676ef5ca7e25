/** The admin API and the page over the queue that the daemon has open. */
import type { LoadedConfig } from '../config/load.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { Page } from '../page/web-page.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import type { Events } from '../telemetry/events.ts'
import { problemRoute } from '../api/api-pages.ts'
import { Admin } from './admin/admin.ts'
import type { OpenParts } from './opening.ts'
import { localRoutes } from './local-routes.ts'
import { NOT_OPEN, queueApi } from './queue-api.ts'

interface QueueAdminDeps {
  readonly loaded: () => LoadedConfig
  /** Addresses in events. */
  readonly addresses: ToldAddresses
  readonly clock: Clock
  readonly events: Events
  /** Null while no queue is open. */
  readonly parts: () => OpenParts | null
  /** Reads the files of the configuration in effect again. */
  readonly readFiles: () => Promise<void>
  /** Reads the configuration itself again. */
  readonly rereads: () => Promise<void>
}

export function queueAdmin({ loaded, addresses, clock, events, parts, readFiles, rereads }: QueueAdminDeps): Admin {
  const open = (): OpenParts => {
    const opened = parts()
    if (opened === null) throw new StoreUnavailable(NOT_OPEN)
    return opened
  }
  const { config } = loaded()
  const api = queueApi({ clock, loaded, addresses, parts })
  const page = new Page({
    view: api.view,
    now: api.now,
    causes: api.causes,
    senders: api.senders,
  })
  const commands = localRoutes({
    clock,
    queue: () => {
      const opened = parts()
      if (opened === null || opened.services === null) return null
      const { services, relay, store, node } = opened
      const { operations, moves } = services
      const { traces } = relay.recordings
      return {
        destinations: () => operations.destinations(),
        status: () => relay.status.all(),
        moves,
        traces,
        audit: store.records.audit,
        node,
      }
    },
    newCode: (user) => admin.newCode(user),
    url: () => admin.url,
    readFiles,
    rereads,
  })
  const admin: Admin = new Admin({
    queueDirectory: config.queue_directory,
    config,
    clock,
    random: systemRandom,
    events,
    tokens: () => {
      const { reader, store } = open()
      return { clock, reader: reader.records.tokens, store: store.records.tokens }
    },
    routes: [...page.routes, ...api.routes, ...commands, problemRoute(api.routes)],
    closeRoutes: () => api.close(),
    refusalPage: page.refusal,
    loginPage: page.login,
  })
  return admin
}
