/** Web servers as targets: POST requests with events, to public addresses unless the subscription allows others. */
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import { eventRequest } from './event-request.ts'
import type { SendEvents } from './target.ts'
import { WebPoster, type WebPosterDeps } from './web-poster.ts'

interface WebTargetDeps extends Omit<WebPosterDeps, 'limit' | 'keepsConnections'> {
  readonly clock: Clock
  /** Name of the relay, for the CloudEvents member `source`. */
  readonly source: () => string
}

const TRY_LIMIT: Duration = 15 * SECOND

export function webTarget(deps: WebTargetDeps): { readonly send: SendEvents; readonly close: () => void } {
  const { clock, source } = deps
  const poster = new WebPoster({ ...deps, limit: TRY_LIMIT, keepsConnections: true })
  return {
    send: ({ events, settings, secrets, signal }) => {
      const { format, batch, to, allowPrivate } = settings
      const made = eventRequest(events, { format, isBatch: batch > 1, secrets, source: source(), now: clock.wall.now() })
      return poster.post(new URL(to), made, { allowPrivate, signal })
    },
    close: () => poster.close(),
  }
}
