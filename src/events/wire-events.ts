/** Events as programs outside the relay get them: in requests of webhooks, in files, and from the HTTP API. */
import type { EventType, TypedEvent } from './event-types.ts'
import type { EventData } from './published-kinds.ts'

/** An event with its time: the body of a webhook, and the argument of `onEvent` of `startRelay`. */
export type PublishedEvent = TypedEvent & {
  /** Time of the event, ISO 8601 in UTC. */
  readonly timestamp: string
}

/** The event that `deferd webhook test NAME` sends. */
export interface TestEvent {
  readonly type: 'test'
  readonly timestamp: string
  /** Name of the subscription. */
  readonly data: { readonly subscription: string }
}

/** JSON body of a webhook with `format = "deferd"`. More types may be added: answer those that are unknown with 2xx, too. */
export type WebhookBody = PublishedEvent | TestEvent

/** Identification of an event. */
export interface EventId {
  /** Equal each time the event is sent, and the position after it. In a webhook with one event, it is the field `webhook-id`. */
  readonly id: string
}

/** JSON body of a webhook with `batch` above 1. */
export type WebhookBatch = readonly (WebhookBody & EventId)[]

/** An event of `GET /api/v1/events`, also as a line of `application/x-ndjson`, and a line of a subscription `file:` or `stdout`. */
export type ListedEvent = PublishedEvent & EventId

/** Answer of `GET /api/v1/events`. */
export interface EventPage {
  readonly events: readonly ListedEvent[]
  /** Position after the page, for the parameter `after` of the next request; null after the last page of `occurred_before` in the past. */
  readonly next: string | null
  /** Types to which a subscription exists; others are not kept. */
  readonly kept_types: readonly EventType[]
  /** Seconds since 1970. */
  readonly as_of: number
}

/** CloudEvents 1.0 in JSON. */
export interface CloudEventOf<T extends string, Data> {
  readonly specversion: '1.0'
  readonly id: string
  /** `smtp://` and the name of the relay. */
  readonly source: string
  readonly type: `deferd.${T}`
  /** ISO 8601, UTC. */
  readonly time: string
  readonly datacontenttype: 'application/json'
  readonly data: Data
}

/** JSON body of a webhook with `format = "cloudevents"`; with `batch` above 1, the body is an array of them. */
export type CloudEvent = { readonly [T in EventType]: CloudEventOf<T, EventData[T]> }[EventType] | CloudEventOf<'test', TestEvent['data']>
