/**
 * deferd as a library: a relay inside another program. `startDaemon` runs it on the real ports with its own queue
 * folder; `loadConfig` makes a Config out of settings as they stand in a configuration file.
 */
export { startDaemon, type Daemon, type DaemonParts } from './daemon/daemon.ts'
export { ConfigError, loadConfig, type LoadedConfig } from './config/load.ts'
export type { Config } from './config/options.ts'
export { Events, type Listen, type QueueEvent } from './telemetry/events.ts'
export { parseNotice, type NoticeRecipient, type ParsedNotice } from './bounce/notice-parser.ts'
