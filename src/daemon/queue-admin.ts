/** The admin API and the page over the queue that the daemon has open. */
import type { Config } from '../config/options.ts'
import type { Problem } from '../http/problem-details.ts'
import { route, type Answer } from '../http/route-table.ts'
import type { Clock } from '../system/clock.ts'
import { systemRandom } from '../system/system-random.ts'
import type { Events } from '../telemetry/events.ts'
import { Admin } from './admin/admin.ts'
import type { OpenParts } from './opening.ts'

export interface QueueAdminDeps {
  readonly config: Config
  readonly clock: Clock
  readonly events: Events
  /** The open queue; null while there is none. */
  readonly parts: () => OpenParts | null
}

/** The queue is not open at the moment (EX_TEMPFAIL). */
class QueueNotOpen extends Error {
  override readonly name = 'QueueNotOpen'
  readonly exitCode = 75
}

/** Shows a problem to a person. */
const refusalPage = ({ kind: { status, title }, message, headers }: Problem): Answer => ({
  kind: 'text',
  status,
  contentType: 'text/plain; charset=utf-8',
  text: `${title}: ${message}\n`,
  headers,
})

export function queueAdmin({ config, clock, events, parts }: QueueAdminDeps): Admin {
  const open = (): OpenParts => {
    const opened = parts()
    if (opened === null) throw new QueueNotOpen('this node joins the queue: try again in a few seconds')
    return opened
  }
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
    routes: [route({ method: 'GET', path: '/', role: 'known', handler: () => ({ kind: 'redirect', location: 'api/v1/whoami' }) })],
    refusalPage,
  })
}
