/**
 * `deferd`: a relay inside another program, with its own queue directory on the real ports; and a parser for notices. Times
 * are milliseconds, sizes bytes. See docs/embedding.md.
 */
import './system/supported-node.ts'

export { CannotListen } from './config/values/endpoints.ts'
export { type Daemon, type DaemonDeps, startDaemon } from './daemon/daemon.ts'
export { ConfigError, configFrom, type ConfigSources, type LoadedConfig, loadConfig } from './config/load.ts'
export type { WrittenTables } from './config/written-config.ts'
export type { Config, DestinationSettings, OptionName } from './config/options.ts'
export type { PatternSource, TableSource } from './config/values/lookup-tables.ts'
export type { DkimKeyName, DkimTable } from './config/values/dkim-tables.ts'
export type { EventsTable } from './config/values/event-tables.ts'
export type { EventFilter } from './events/event-filter.ts'
export type { OauthGrant, OauthProvider, OauthTable } from './config/values/oauth-table.ts'
export type { Problem } from './config/values/problem.ts'
export type { DefaultFiles } from './config/values/sources.ts'
export type { ActionName } from './checks/action.ts'
export {
  type AccessActionName,
  type ClientName,
  type ContentOrigin,
  type DoubtResolution,
  Events,
  type Listen,
  type QueueEvent,
  type UpstreamMessage,
} from './telemetry/events.ts'
export { type NoticeAction, type NoticeRecipient, parseNotice, type ParsedNotice } from './bounce/dsn-parser.ts'
export type { AttemptResult, AttemptTimes, Feedback, LoginFailure, RecipientOutcome } from './delivery/delivery-agent.ts'
export type { PeerCertificate, TlsConnection } from './delivery/tls/tls-connection.ts'
export type { SigningResult } from './dkim/message-signing.ts'
export type { ProviderTable, ReplyRule, RuleAction } from './config/values/provider-table.ts'
export type { Expression, Groups, Pattern, PatternType } from './patterns/pattern.ts'
export type { TlsPolicyFailure } from './delivery/tls/policy-failure.ts'
export type { Notify, Ret } from './mail/envelope.ts'
export type {
  ContentId,
  DeliveryRequest,
  DestinationName,
  LeasedRecipient,
  LeaseTerms,
  Message,
  MessageId,
  MessageSummary,
  NoticeDue,
  OwnerId,
  Progress,
  RecipientId,
} from './mail/message.ts'
export type { DeliveryStatus, SmtpReply, Stage } from './mail/smtp-reply.ts'
export type { TlsFacts, TlsPolicySource, TlsState } from './mail/tls-facts.ts'
export { QueueFolderUnusable, QueueIncompatible, QueueInUse, QueueTooNew } from './store/errors.ts'
export type { Suspension } from './store/destination-status.ts'
export { type AttemptRecord, StoreFailed, StoreUnavailable } from './store/queue-store.ts'
export type { Duration, Instant } from './system/clock.ts'
export type {
  DialOptions,
  Endpoint,
  Listener,
  ListenOptions,
  Lookup,
  MxRecord,
  Net,
  SecureLookup,
  SecureRecords,
  TlsaRecord,
} from './system/net.ts'
