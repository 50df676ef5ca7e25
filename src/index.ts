/**
 * `deferd`: a relay inside another program, with its own queue directory on the real ports; and a parser for notices. See docs/embedding.md,
 * and docs/compatibility.md for what stays as it is.
 */
import './system/supported-node.ts'

export { type EmbeddedRelay, type JsonLogRecord, type RelayOptions, startRelay } from './embedded-relay.ts'
export { CannotListen } from './config/values/endpoints.ts'
export { ConfigError, type Problem } from './config/values/problem.ts'
export type { OptionName } from './config/options.ts'
export type { RelayConfig } from './config/relay-config.ts'
export type { ParameterValue, RelayParameters } from './config/values/relay-parameters.ts'
export type { PublishedEvent } from './events/wire-events.ts'
export { type NoticeRecipient, parseNotice, type ParsedNotice } from './bounce/dsn-parser.ts'
export type { NoticeAction } from './bounce/dsn-status.ts'
export { QueueFolderUnusable, QueueIncompatible, QueueInUse, QueueTooNew } from './store/errors.ts'
export { StoreFailed, StoreUnavailable } from './store/queue-store.ts'
export type { Level as LogLevel } from './events/event-kind.ts'
export type { WallTime } from './system/clock.ts'
export type { Endpoint } from './system/net.ts'
