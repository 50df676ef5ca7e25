/**
 * Table of all parameters: kind, default in the syntax of the file, whether a `[destination."…"]` table may override it, and one
 * sentence of documentation. The Config type, the validation, `deferd config` and docs/configuration.md are derived from this
 * table. Names and defaults are Postfix's where Postfix has the parameter (postconf(5)).
 */
import { ACCESS_OPTIONS } from './options/access-options.ts'
import type { TableSource } from './values/lookup-tables.ts'
import type { DkimTable } from './values/tables/dkim-tables.ts'
import type { EventsTable } from './values/tables/event-tables.ts'
import type { OauthTable } from './values/tables/oauth-table.ts'
import type { QuotaTable } from './values/tables/quota-table.ts'
import type { ScheduleTable } from './values/tables/schedule-table.ts'
import { ADMIN_OPTIONS } from './options/admin-options.ts'
import { CLASS_OPTIONS } from './values/tables/class-options.ts'
import { SHARE_OPTIONS } from './values/tables/share-options.ts'
import { DELIVERY_OPTIONS } from './options/delivery-options.ts'
import { GENERAL_OPTIONS } from './options/general-options.ts'
import { NODE_OPTIONS } from './options/node-options.ts'
import type { ClassTable } from './values/tables/class-table.ts'
import type { ProviderTable } from './values/tables/provider-table.ts'
import { NOTICE_OPTIONS } from './options/notice-options.ts'
import type { Option } from './values/option.ts'
import { RETRY_OPTIONS } from './options/retry-options.ts'
import { REWRITING_OPTIONS } from './options/rewriting-options.ts'
import { QUEUE_LIMIT_OPTIONS, SMTPD_OPTIONS } from './options/smtpd-options.ts'
import type { ProxyProtocol } from './values/values.ts'

/** All parameters, in the order of the documentation. */
export const OPTIONS = {
  ...GENERAL_OPTIONS,
  ...ADMIN_OPTIONS,
  ...NODE_OPTIONS,
  ...SMTPD_OPTIONS,
  ...QUEUE_LIMIT_OPTIONS,
  ...CLASS_OPTIONS,
  ...SHARE_OPTIONS,
  ...ACCESS_OPTIONS,
  ...REWRITING_OPTIONS,
  ...DELIVERY_OPTIONS,
  ...RETRY_OPTIONS,
  ...NOTICE_OPTIONS,
} as const satisfies Record<string, Option<unknown>>

type Options = typeof OPTIONS
/** Name of a parameter. */
export type OptionName = keyof Options
type ValueOf<O> = O extends Option<infer T> ? T : never
type PerDestinationName = { [K in OptionName]: Options[K]['perDestination'] extends true ? K : never }[OptionName]
type WithoutDefault<K extends string> = K extends `default_${infer Rest}` ? Rest : K

/** Parameters of a `[destination."…"]` table. */
export type DestinationSettings = { readonly [K in PerDestinationName as WithoutDefault<K>]?: ValueOf<Options[K]> | undefined }

type PerListenerName = { [K in OptionName]: Options[K] extends { readonly perListener: true } ? K : never }[OptionName]

/** Parameters of a `[[smtpd]]` table. */
export type ListenerSettings = { readonly [K in PerListenerName]?: ValueOf<Options[K]> }

/** A listener of the SMTP server. */
export interface Listener {
  readonly address: string
  readonly tls: 'none' | 'may' | 'encrypt' | 'wrapper'
  readonly auth: 'none' | 'may' | 'required'
  /** Protocol in which a proxy names the client of each connection; empty for none. */
  readonly upstream_proxy_protocol: ProxyProtocol
  /** Class of its mail; empty for that of the lookup tables. */
  readonly class: string
  /** Parameters that differ from those of the relay. */
  readonly settings: ListenerSettings
  /** Positions of the keys of its table, for problems that are found later. */
  readonly positions: Readonly<Record<string, string>>
}

/** The validated configuration, with the names of the file. Times are in ms, sizes in bytes. */
export type Config = { readonly [K in Exclude<OptionName, 'smtpd'>]: ValueOf<Options[K]> } & {
  /** Listeners of the `[[smtpd]]` tables. */
  readonly smtpd: readonly Listener[]
  /** Recipient domain, `.parent` or `*`, mapped to `transport:nexthop`. */
  readonly transport_maps: ReadonlyMap<string, string>
  /** Lookup tables of transport_maps when it is not a TOML table. */
  readonly transport_tables: readonly TableSource[]
  /** Domain, `.parent` or next hop, mapped to the parameters of its table. */
  readonly destination: ReadonlyMap<string, DestinationSettings>
  /** Groups of destinations that share limits, by name. */
  readonly provider: ReadonlyMap<string, ProviderTable<DestinationSettings>>
  /** Classes of mail, by name. */
  readonly class: ReadonlyMap<string, ClassTable>
  /** Domain or `.parent`, in lower case, mapped to its table of keys. */
  readonly dkim: ReadonlyMap<string, DkimTable>
  /** Subscriptions to events, by name. */
  readonly events: ReadonlyMap<string, EventsTable>
  /** Sources of access tokens for next hops, by name. */
  readonly oauth: ReadonlyMap<string, OauthTable>
  /** Work at times of the calendar, by name. */
  readonly schedule: ReadonlyMap<string, ScheduleTable>
  /** Limits of mail by key and time, by name. */
  readonly quota: ReadonlyMap<string, QuotaTable>
}

/** The parameters without those that a `[[smtpd]]` table may have: for parts of the SMTP server that all listeners share. */
export type SharedSettings = Omit<Config, PerListenerName>
