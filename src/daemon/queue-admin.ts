/** The admin API and the page over the queue that the daemon has open. */
import type { LoadedConfig } from '../config/load.ts'
import type { Problem } from '../http/problem-details.ts'
import { route, type Answer } from '../http/route-table.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import type { Events } from '../telemetry/events.ts'
import { Admin } from './admin/admin.ts'
import type { OpenParts } from './opening.ts'
import { queueApi } from './queue-api.ts'

export interface QueueAdminDeps {
  readonly loaded: () => LoadedConfig
  readonly clock: Clock
  readonly events: Events
  /** The open queue; null while there is none. */
  readonly parts: () => OpenParts | null
}

/** Shows a problem to a person. */
const refusalPage = ({ kind: { status, title }, message, headers }: Problem): Answer => ({
  kind: 'text',
  status,
  contentType: 'text/plain; charset=utf-8',
  text: `${title}: ${message}\n`,
  headers,
})

export function queueAdmin({ loaded, clock, events, parts }: QueueAdminDeps): Admin {
  const open = (): OpenParts => {
    const opened = parts()
    if (opened === null) throw new StoreUnavailable('the queue is not open: the daemon starts, or this node joins it')
    return opened
  }
  const { config } = loaded()
  const api = queueApi({ clock, loaded, parts })
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
    routes: [
      route({ method: 'GET', path: '/', role: 'known', handler: () => ({ kind: 'redirect', location: 'api/v1/whoami' }) }),
      ...api.routes,
    ],
    closeRoutes: () => api.close(),
    refusalPage,
  })
}
