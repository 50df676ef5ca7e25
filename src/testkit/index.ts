/** `deferd/testkit`: the whole relay in virtual time, with remote servers that fail as scripted. See docs/testkit.md. */
import '../system/supported-node.ts'

export { createWorld, type World } from './world.ts'
export type { WorldTransport } from './world-clients.ts'
export type { ParameterValue } from '../config/relay-config.ts'
export type { WorldConfig, WorldOptions } from './world-options.ts'
export type { RemoteDomain } from './remote-domain.ts'
export type { Attempt } from './recipient-log.ts'
export type { Mail, Mailbox, MailSignature, Notice } from './mailbox.ts'
export {
  type Asserting,
  type AssertionState,
  type BounceExpectation,
  type DeferdMatchers,
  type MatcherResult,
  matchers,
} from './matchers.ts'
export type { Authority, AuthorityRequest, FailureTerms } from './test-authority.ts'
export type { AuthorityFailures, AuthorityOptions, ProtectionOptions } from './authority-options.ts'
export type { AuthorityFailure } from './oauth/authority-rule.ts'
export type { AuthorityClient, AuthorityProvider, PreviousLogin } from './oauth/authority-settings.ts'
export type { AnsweredRequest, ScriptedRequest } from './oauth/authority-engine.ts'
export type { DeviceLogin } from './oauth/device-logins.ts'
export type { GuardedMailbox } from './oauth/submission-guard.ts'
export { WORLD_CA } from './world-certificates.ts'
export type { Recipient } from './recipient.ts'
export type { Webhook, WebhookHandler, WebhookOptions, WebhookRequest } from './webhook.ts'
export type { WorldEvent } from './world-events.ts'
export type { EventFilter } from '../events/event-filter.ts'
export type {
  AcceptedMembers,
  AttemptMembers,
  EventData,
  EventType,
  MessageMembers,
  RecipientMembers,
  TypedEvent,
} from '../events/event-types.ts'
export type { AddedEvent, History, HistoryEntry, HistoryEvent } from './world-history.ts'
export type { RuleText } from './remote/rule-keys.ts'
export type { RemoteEvent } from './remote/remote-events.ts'
export type { DnsFault, FaultStage, SpokenStage } from './remote/rule.ts'
export type { Time } from './time.ts'
export type { NoticeAction, NoticeRecipient, ParsedNotice } from '../bounce/dsn-parser.ts'
export type { OptionName } from '../config/options.ts'
export type { DestinationName, MessageId } from '../mail/message.ts'
export type { DeliveryStatus, Stage } from '../mail/smtp-reply.ts'
export type { OperationName, OperationSummary } from '../queue/operation-request.ts'
export type { DestinationState, LiveDestination, Suspension } from '../store/destination-status.ts'
export type { LiveProvider, RuleEffect } from '../store/provider-state.ts'
export type { RuleAction } from '../config/values/provider-table.ts'
export type { TlsFacts, TlsPolicySource, TlsState } from '../mail/tls-facts.ts'
export type { FailureClass } from '../mail/failure-class.ts'
export type { Clock, Duration, QueueTime, Timer, Timers, WallTime } from '../system/clock.ts'
export type { WallView } from '../system/wall-view.ts'
export type { Endpoint } from '../system/net.ts'
