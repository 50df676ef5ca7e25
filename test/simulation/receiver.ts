/** The receiver of webhooks of a scenario. */
import type { Webhook, WebhookRequest, World } from '../../src/testkit/index.ts'
import type { ReceivedEvent, ReceivedRequest } from './record.ts'
import type { SimulatedReceiver } from './scenario.ts'

/** Adds the receiver to a world. */
export function receive(world: World, { refuses, failsAt, down, batch }: SimulatedReceiver): Promise<Webhook> {
  const failed = new Set<number>()
  return world.webhook('app', {
    batch,
    handler: (request) => {
      const now = world.clock.monotonic()
      if (now >= down.from && now < down.until) return 503
      const numbers = eventsIn(request).map(({ id }) => Number(id.split('_')[2]))
      if (numbers.some((number) => number % refuses === 0)) return 422
      const failing = numbers.filter((number) => number % failsAt === 0 && !failed.has(number))
      for (const number of failing) failed.add(number)
      return failing.length > 0 ? 500 : 204
    },
  })
}

interface SentEvent extends Omit<ReceivedEvent, 'number'> {
  readonly id: string
}

/** The events of a request. */
function eventsIn({ headers, body }: Pick<WebhookRequest, 'headers' | 'body'>): readonly SentEvent[] {
  const sent = JSON.parse(body) as SentEvent | readonly SentEvent[]
  return Array.isArray(sent) ? (sent as readonly SentEvent[]) : [{ ...(sent as SentEvent), id: headers['webhook-id'] ?? '' }]
}

/** The requests of a receiver, with the numbers of events in place of their ids. */
export function receivedBy(hook: Webhook): readonly ReceivedRequest[] {
  const requests = hook.requests().map((request) => ({ status: request.status, events: eventsIn(request) }))
  const queue = requests[0]?.events[0]?.id.replace(/\d+$/, '') ?? ''
  return requests.map(({ status, events }) => ({
    status,
    events: events.map(({ id, type, data }) => ({
      number: id.startsWith(queue) ? Number(id.slice(queue.length)) : Number.NaN,
      type,
      data,
    })),
  }))
}
