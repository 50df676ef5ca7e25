/** Requests with events by the Standard Webhooks specification, and in the formats of CloudEvents 1.0. Pure. */
import { createHmac } from 'node:crypto'
import type { SubscriptionTerms } from '../config/values/tables/event-tables.ts'
import type { CloudEventOf, EventId, WebhookBody } from '../events/wire-events.ts'
import { SECOND, type WallTime } from '../system/clock.ts'

/** An event, or the test of `deferd webhook test`. */
export type SentEvent = WebhookBody & EventId

export interface EventRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface RequestTerms {
  readonly format: SubscriptionTerms['format']
  /** True to send an array, also for a single event. */
  readonly isBatch: boolean
  /** Secrets that sign, as `whsec_` and base64. Without secrets the request is not signed. */
  readonly secrets: readonly string[]
  /** `source` of CloudEvents: the name of the relay. */
  readonly source: string
  /** Time of the wall clock. */
  readonly now: WallTime
}

export function eventRequest(events: readonly SentEvent[], { format, isBatch, secrets, source, now }: RequestTerms): EventRequest {
  const shaped = events.map((event) => (format === 'cloudevents' ? cloudEvent(event, source) : isBatch ? event : plain(event)))
  const body = JSON.stringify(isBatch ? shaped : shaped[0])
  const id = requestId(events)
  const timestamp = String(Math.floor(now / SECOND))
  const signatures = secrets.map((secret) => signature(secret, `${id}.${timestamp}.${body}`))
  return {
    body,
    headers: {
      'content-type': format === 'deferd' ? 'application/json' : `application/cloudevents${isBatch ? '-batch' : ''}+json`,
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
    },
  }
}

/** Id of the event; for several events, with the number of the last one. */
function requestId(events: readonly SentEvent[]): string {
  const [first, last] = [events[0]?.id ?? '', events.at(-1)?.id ?? '']
  return first === last ? first : `${first}-${last.slice(last.lastIndexOf('_') + 1)}`
}

const plain = ({ type, timestamp, data }: SentEvent) => ({ type, timestamp, data }) as WebhookBody

const cloudEvent = ({ id, type, timestamp, data }: SentEvent, source: string): CloudEventOf<SentEvent['type'], SentEvent['data']> => ({
  specversion: '1.0',
  id,
  source: `smtp://${source}`,
  type: `deferd.${type}`,
  time: timestamp,
  datacontenttype: 'application/json',
  data,
})

/** `v1,` and the HMAC-SHA256 of a text in base64. */
function signature(secret: string, text: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(text).digest('base64')}`
}
