/**
 * Validates values that other modules parse: listen addresses, networks, next hops, transports. Each is parsed with the parser
 * that is used later, so that a start does not fail half-way.
 */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { addressesIn } from '../mail/address-list.ts'
import { parseAddress } from '../mail/address-path.ts'
import { errorMessage } from '../system/caught-error.ts'
import { seconds, type Duration } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'
import { assertAdminHosts, assertReach } from './admin-reach.ts'
import type { SettingName } from './destination-settings.ts'
import { parseDatabaseUrl } from './values/database-url.ts'
import { assertFamily, listenAt } from './values/endpoints.ts'
import { Networks } from './values/networks.ts'
import type { NextHop } from './values/next-hop.ts'
import { assertKnownClasses, classReaders } from './values/tables/class-tables.ts'
import { shareReaders } from './values/tables/share-options.ts'
import type { Config, Listener, OptionName } from './options.ts'
import { foreignTableType } from './values/postfix-parameters.ts'
import { assertShareLimit, Clients } from './values/limit-terms.ts'
import type { Problem } from './values/problem.ts'
import { signedFieldsMistake, type SignedLists } from './values/signed-fields.ts'
import { assertTableWrapperLevel, assertWrapperLevel, parseTlsPolicy } from './tls-policy-map.ts'
import { assertClasses, assertClosed } from './values/restrictions.ts'
import { parseSenderRelayhost, parseSenderTransport } from './sender-routes.ts'
import { valuesOf } from './values/lookup-tables.ts'
import { parseNextHops, parseTransport, type Transport } from './transport-map.ts'

/** Positions of values; undefined for a default. */
export interface Origins {
  readonly parameter: (name: OptionName) => string | undefined
  readonly transport: (key: string) => string
  /** Position of transport_maps when it is not a TOML table. */
  readonly transportTables: string
  /** Position in the table of a destination; undefined when the table does not have the parameter. */
  readonly table: (heading: string, name: SettingName) => string | undefined
  /** Malformed parameters, which have the default value. */
  readonly malformed: ReadonlySet<OptionName>
}

interface Trial {
  readonly where: string
  readonly read: () => unknown
}

export function semanticProblems(config: Config, origins: Origins): readonly Problem[] {
  return trials(config, origins).flatMap(({ where, read }) => {
    try {
      read()
      return []
    } catch (error) {
      return [{ where, text: errorMessage(error) }]
    }
  })
}

/** Throws an Error that names the parameter when `text` is not a host or domain name (RFC 1123 §2.1). */
function assertHostName(text: string, parameter: string): void {
  const labels = domainToASCII(text).split('.')
  if (labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label))) return
  throw new Error(`${parameter}: ${JSON.stringify(text)} is not a domain name; write the name itself, such as "relay.example.com"`)
}

/** Throws an Error that names the parameter when a host name is not ASCII: EHLO and Received lines cannot have another one (RFC 6531 §3.7.1). */
function assertAscii(name: string, parameter: string): void {
  const encoded = domainToASCII(name)
  if (/[^\x20-\x7e]/.test(name)) throw new Error(`${parameter}: ${JSON.stringify(name)} is not ASCII; write "${encoded}"`)
}

/** Throws an Error that names the parameter when a path is empty. */
function assertPath(path: string, parameter: string): void {
  if (path === '') throw new Error(`${parameter}: is empty; write the path of a folder, such as "/var/lib/deferd"`)
}

/** Throws an Error when `text` is not an address of a server, with or without a port. */
function assertDnsServer(text: string): void {
  const [, address = text] = /^\[(.+)\](?::\d+)?$/.exec(text) ?? /^([\d.]+):\d+$/.exec(text) ?? []
  if (isIP(address) !== 0) return
  throw new Error(`dns_servers: ${JSON.stringify(text)} is not an address; write an address such as "127.0.0.1" or "127.0.0.1:5353"`)
}

/** Throws an Error that names the parameter when `text` is neither empty nor one address. */
function assertAddress(text: string, origin: string, parameter: string): void {
  const [listed, ...others] = addressesIn(text)
  const isOne = others.length === 0 && listed?.address !== null && parseAddress(listed?.address ?? '', origin) !== undefined
  if (text === '' || isOne) return
  throw new Error(`${parameter}: ${JSON.stringify(text)} is not one address; write an address such as "archive@example.com"`)
}

/** Throws an Error that names the parameter when a text names a lookup table of Postfix that deferd cannot read. */
function assertNoForeignTable(texts: readonly string[], parameter: string, remedy: string): void {
  const type = texts.map(foreignTableType).find((found) => found !== undefined)
  if (type !== undefined) throw new Error(`${parameter}: deferd does not read ${type}: tables; ${remedy}`)
}

/** Throws an Error that names the parameter when a next hop is an address of a family that is not enabled. */
function assertFamilies(hops: readonly NextHop[], { inet_protocols }: Pick<Config, 'inet_protocols'>): void {
  for (const { host, origin } of hops) assertFamily(host, origin, inet_protocols)
}

function assertTransportFamilies(transport: Transport | null, config: Config): void {
  if (transport !== null && 'nexthops' in transport) assertFamilies(transport.nexthops, config)
}

/** Throws an Error when the mistake is in `name`, or in another parameter that has its default value. */
function assertSignedFields(name: keyof SignedLists, config: Config, { parameter }: Pick<Origins, 'parameter'>): void {
  const mistake = signedFieldsMistake(config)
  if (mistake === null || (mistake.parameter !== name && parameter(mistake.parameter) !== undefined)) return
  throw new Error(mistake.text)
}

/** Throws an Error without the value, which may have a password. */
function assertDatabaseUrl(text: string): void {
  if (text === '' || parseDatabaseUrl(text) !== null) return
  const form = 'postgresql://user:password@host:port,host:port/name?sslmode=verify-full'
  throw new Error(`queue_database: expected a URL such as ${form}; write special characters of a password as %xx`)
}

/** Least value of node_lease: a node beats five times per lease, and a slow commit must not count as a failure. */
const LEAST_LEASE: Duration = seconds(2)

function assertLease(lease: Duration): void {
  if (lease < LEAST_LEASE) throw new Error('node_lease: must be at least 2s')
}

const REMEDY_AS_FILE = 'name the text file itself, without postmap: texthash:/PATH'
const REMEDY_AS_LIST = 'write its entries as a list'

type Readers = Partial<Record<OptionName, () => unknown>>

/** Listen addresses, and the addresses of clients and DNS servers. */
function addressReaders(config: Config, { parameter, malformed }: Origins): Readers {
  const { inet_protocols: families } = config
  const isDefault = (name: OptionName) => parameter(name) === undefined && !malformed.has(name)
  return {
    smtpd_listen: () => config.smtpd_listen.map((text) => listenAt(text, 'smtpd_listen', families)),
    admin_listen: () => {
      if (config.admin_listen !== '') listenAt(config.admin_listen, 'admin_listen', families)
      assertReach(config)
    },
    admin_hosts: () => assertAdminHosts(config.admin_hosts),
    admin_proxies: () => new Networks(config.admin_proxies, 'admin_proxies'),
    http_listen: () => config.http_listen === '' || listenAt(config.http_listen, 'http_listen', families),
    // The default of smtpd_listen is an IPv4 address. Any other value has its own trial.
    inet_protocols: () => isDefault('smtpd_listen') && config.smtpd_listen.map((text) => listenAt(text, 'smtpd_listen', families)),
    dns_servers: () => config.dns_servers.forEach(assertDnsServer),
    mynetworks: () => {
      assertNoForeignTable(config.mynetworks, 'mynetworks', REMEDY_AS_LIST)
      return new Networks(config.mynetworks, 'mynetworks')
    },
    smtpd_forbid_bare_newline_exclusions: () =>
      new Networks(config.smtpd_forbid_bare_newline_exclusions, 'smtpd_forbid_bare_newline_exclusions'),
    smtpd_authorized_xclient_hosts: () => new Networks(config.smtpd_authorized_xclient_hosts, 'smtpd_authorized_xclient_hosts'),
    smtpd_authorized_xforward_hosts: () => new Networks(config.smtpd_authorized_xforward_hosts, 'smtpd_authorized_xforward_hosts'),
    smtpd_client_event_limit_exceptions: () =>
      new Networks(config.smtpd_client_event_limit_exceptions, 'smtpd_client_event_limit_exceptions'),
  }
}

/** The queue, and what the relay calls itself and writes into mail. */
const mailReaders = (config: Config, origins: Origins): Readers => ({
  queue_database: () => assertDatabaseUrl(config.queue_database),
  node_lease: () => assertLease(config.node_lease),
  queue_directory: () => assertPath(config.queue_directory, 'queue_directory'),
  myhostname: () => {
    assertHostName(config.myhostname, 'myhostname')
    assertAscii(config.myhostname, 'myhostname')
  },
  myorigin: () => assertHostName(config.myorigin, 'myorigin'),
  smtp_tls_policy_maps: () => {
    assertNoForeignTable(config.smtp_tls_policy_maps, 'smtp_tls_policy_maps', REMEDY_AS_LIST)
    config.smtp_tls_policy_maps.forEach(parseTlsPolicy)
  },
  dkim_oversign_headers: () => assertSignedFields('dkim_oversign_headers', config, origins),
  dkim_sign_headers: () => assertSignedFields('dkim_sign_headers', config, origins),
  always_bcc: () => assertAddress(config.always_bcc, config.myorigin, 'always_bcc'),
})

/** Lists of access restrictions, whose classes must exist. */
const restrictionReaders = (config: Config): Readers => {
  const { smtpd_restriction_classes: classes } = config
  return {
    smtpd_client_restrictions: () => assertClasses(config.smtpd_client_restrictions, classes),
    smtpd_sender_restrictions: () => assertClasses(config.smtpd_sender_restrictions, classes),
    smtpd_relay_restrictions: () => {
      assertClasses(config.smtpd_relay_restrictions, classes)
      assertClosed(config.smtpd_relay_restrictions)
    },
    smtpd_recipient_restrictions: () => assertClasses(config.smtpd_recipient_restrictions, classes),
    smtpd_restriction_classes: () => classes.forEach((list, name) => assertClasses(list, classes, [name])),
  }
}

const routeReaders = (config: Config): Readers => ({
  relay_domains: () => assertNoForeignTable(config.relay_domains, 'relay_domains', REMEDY_AS_LIST),
  smtp_sasl_password_maps: () => assertNoForeignTable([config.smtp_sasl_password_maps], 'smtp_sasl_password_maps', REMEDY_AS_FILE),
  relayhost: () => assertFamilies(parseNextHops(config.relayhost, 'relayhost', config.smtp_tcp_port, true), config),
  sender_dependent_relayhost_maps: () =>
    valuesOf(config.sender_dependent_relayhost_maps).map((text) => assertFamilies(parseSenderRelayhost(text, config) ?? [], config)),
  sender_dependent_default_transport_maps: () =>
    valuesOf(config.sender_dependent_default_transport_maps).map((text) =>
      assertTransportFamilies(parseSenderTransport(text, config), config),
    ),
  smtp_fallback_relay: () =>
    assertFamilies(parseNextHops(config.smtp_fallback_relay, 'smtp_fallback_relay', config.smtp_tcp_port, true), config),
})

/** The values to parse, without defaults, which are valid. */
const limitReaders = (config: Config, { malformed }: Origins) => ({
  queue_share_message_limit: () => malformed.has('queue_message_limit') || assertShareLimit(config, 'queue_share_message_limit'),
  queue_share_size_limit: () => malformed.has('queue_size_limit') || assertShareLimit(config, 'queue_share_size_limit'),
  session_retention: () => malformed.has('history_retention') || assertSessionRetention(config),
  queue_limit_exceptions: () => new Clients(config.queue_limit_exceptions, 'queue_limit_exceptions'),
  suppression_bounce_interval: () =>
    malformed.has('suppression_bounce_limit') || malformed.has('suppression_bounce_window') || assertListable(config),
  error_notice_recipient: () => assertAddress(config.error_notice_recipient, config.myorigin, 'error_notice_recipient'),
})

/** Throws an Error when so many failures at these intervals do not fit into the window, so that no address would ever be listed. */
function assertListable({
  suppression_bounce_limit: limit,
  suppression_bounce_interval: interval,
  suppression_bounce_window: window,
}: Config): void {
  const needed = (limit - 1) * interval
  if (needed < window) return
  throw new Error(
    `suppression_bounce_interval: ${limit} refusals at least ${formatDuration(interval)} apart take ${formatDuration(needed)}, and suppression_bounce_window is ${formatDuration(window)}: no address would be listed; lower it or raise suppression_bounce_window`,
  )
}

/** Throws an Error when dialogues would be kept longer than the attempts that refer to them. */
function assertSessionRetention({ session_retention: own, history_retention: history }: Config): void {
  if (own <= history) return
  throw new Error(
    `session_retention: ${formatDuration(own)} is above history_retention, ${formatDuration(history)}, after which nothing refers to a dialogue; lower it or raise history_retention`,
  )
}

function trials(config: Config, origins: Origins): readonly Trial[] {
  const readers = {
    ...addressReaders(config, origins),
    ...mailReaders(config, origins),
    ...restrictionReaders(config),
    ...routeReaders(config),
    ...limitReaders(config, origins),
    ...classReaders(config),
    ...shareReaders(config, origins.malformed),
  }
  const given = Object.entries(readers).flatMap(([name, read]) => {
    const where = origins.parameter(name as OptionName)
    return where === undefined ? [] : [{ where, read }]
  })
  const maps = [...config.transport_maps].map(([key, text]) => ({
    where: origins.transport(key),
    read: () => assertTransportFamilies(parseTransport(text, config), config),
  }))
  const values = valuesOf(config.transport_tables).map((text) => ({
    where: origins.transportTables,
    read: () => assertTransportFamilies(parseTransport(text, config), config),
  }))
  return [
    ...given,
    ...maps,
    ...values,
    ...wrapperTrials(config, origins),
    ...config.smtpd.flatMap((one) => listenerTrials(one, config, origins)),
  ]
}

/** The address of a listener, and the values that differ there. */
function listenerTrials({ address, class: ofClass, settings, positions }: Listener, config: Config, origins: Origins): readonly Trial[] {
  const values = { ...config, ...settings }
  const readers = { ...addressReaders(values, origins), ...restrictionReaders(values) }
  const own = Object.entries(readers).filter(([name]) => Object.hasOwn(settings, name))
  const listens = address === '' ? [] : [['address', () => listenAt(address, 'smtpd', config.inet_protocols)] as const]
  const classes = ofClass === '' ? [] : [['class', () => assertKnownClasses([ofClass], config, '[[smtpd]] class')] as const]
  return [...listens, ...classes, ...own].map(([name, read]) => ({ where: positions[name] ?? '', read }))
}

/** The levels of smtp_tls_wrappermode. None is checked when the relay's own level is malformed. */
function wrapperTrials(config: Config, { parameter, table, malformed }: Origins): readonly Trial[] {
  if (malformed.has('smtp_tls_security_level')) return []
  const where = parameter('smtp_tls_wrappermode')
  const relay = where === undefined ? [] : [{ where, read: () => assertWrapperLevel(config) }]
  const tables = [...config.destination].flatMap(([heading, settings]) => {
    const place = table(heading, 'smtp_tls_wrappermode') ?? table(heading, 'smtp_tls_security_level')
    return place === undefined ? [] : [{ where: place, read: () => assertTableWrapperLevel(heading, settings, config) }]
  })
  return [...relay, ...tables]
}
