/** The admin API and the page over the queue that the daemon has open. */
import type { LoadedConfig } from '../config/load.ts'
import { Page } from '../page/web-page.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import type { Events } from '../telemetry/events.ts'
import { problemRoute } from '../api/api-pages.ts'
import { Admin } from './admin/admin.ts'
import type { OpenParts } from './opening.ts'
import { queueApi } from './queue-api.ts'
import { relayLight } from './relay-light.ts'

export interface QueueAdminDeps {
  readonly loaded: () => LoadedConfig
  readonly clock: Clock
  readonly events: Events
  /** Null while no queue is open. */
  readonly parts: () => OpenParts | null
}

export function queueAdmin({ loaded, clock, events, parts }: QueueAdminDeps): Admin {
  const open = (): OpenParts => {
    const opened = parts()
    if (opened === null) throw new StoreUnavailable('the queue is not open: the daemon starts, or this node joins it')
    return opened
  }
  const { config } = loaded()
  const api = queueApi({ clock, loaded, parts })
  const page = new Page({
    view: api.view,
    now: api.now,
    causes: api.causes,
    light: relayLight({ clock, parts }),
  })
  return new Admin({
    queueDirectory: config.queue_directory,
    config,
    clock,
    random: systemRandom,
    events,
    tokens: () => {
      const { reader, store } = open()
      return { clock, reader, store }
    },
    routes: [...page.routes, ...api.routes, problemRoute(api.routes)],
    closeRoutes: () => api.close(),
    refusalPage: page.refusal,
    loginPage: page.login,
  })
}
