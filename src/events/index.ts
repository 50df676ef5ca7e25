/**
 * `deferd/events`: types of the bodies of webhooks and of the answers of `GET /api/v1/events`, for programs that receive events. It has no
 * values, so that `import type` adds nothing to a program. docs/events.md has the types with examples.
 */
import '../system/supported-node.ts'

export type { FailureClass } from '../mail/failure-class.ts'
export type { AcceptedMembers, AttemptMembers, MessageMembers, RecipientMembers } from './event-members.ts'
export type { EventType, TypedEvent } from './event-types.ts'
export type { EventData, LimitMembers, QuotaMembers, SuppressionMembers } from './published-kinds.ts'
export type {
  CloudEvent,
  CloudEventOf,
  EventId,
  EventPage,
  ListedEvent,
  PublishedEvent,
  TestEvent,
  WebhookBatch,
  WebhookBody,
} from './wire-events.ts'
