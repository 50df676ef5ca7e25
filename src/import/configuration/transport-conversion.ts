/** Converts transport_maps, default_transport and relay_transport (transport(5)). */
import { isOption } from '../../config/expansion.ts'
import { OPTIONS } from '../../config/options.ts'
import { destinationOf, parseTransport, type Transport } from '../../config/transport-map.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { ConfigurationDraft } from './configuration-draft.ts'
import type { PostfixParameters } from './main-cf.ts'
import { entriesOf, lookupSources } from './lookup-sources.ts'
import type { MasterService } from './master-cf.ts'
import { addTable, convertedTables, convertTables, type TableContext } from './table-conversion.ts'

interface TransportContext extends TableContext {
  readonly parameters: PostfixParameters
  readonly services: readonly MasterService[]
}

/** Headings of [destination] tables by the name of the service whose parameters they have. */
type UsedServices = Map<string, Set<string>>

const ROUTING = { smtp_tcp_port: 25 }

export function convertTransports(given: TransportContext): void {
  const context: RoutingContext = { ...given, used: new Map() }
  const { draft, files, parameters } = context
  const { sources } = lookupSources(parameters.get('transport_maps'), files)
  for (const source of sources) {
    if (source.kind === 'missing') draft.noteTransport(`${source.text} is left out: ${source.why}`)
    if (source.kind === 'file' && source.warning !== null) draft.noteTransport(source.warning)
  }
  for (const [key, value] of entriesOf(sources)) addTransport(key, value, context)
  convertRelayTransport(context)
  convertDefaultTransport(context)
  convertSenderTransports(context)
  convertRelayService(context)
  convertProcessLimits(context)
}

interface RoutingContext extends TransportContext {
  readonly used: UsedServices
}

function addTransport(key: string, value: string, context: RoutingContext): void {
  const transport = transportIn(value, context)
  if ('why' in transport) return context.draft.noteTransport(`${key} = ${value}: ${transport.why}`)
  context.draft.transports.set(key, transport.text)
  settingsOf(transport, key, context)
}

interface KnownTransport {
  readonly text: string
  readonly nexthop: string
  readonly parsed: Transport
  /** Service of master.cf; null when the value names no service. */
  readonly service: MasterService | null
}

/** The transport in deferd's syntax; the program of the service in master.cf decides which one. */
function transportIn(value: string, { services }: TransportContext): KnownTransport | { readonly why: string } {
  const colon = value.indexOf(':')
  const name = (colon < 0 ? value : value.slice(0, colon)).trim()
  const nexthop = colon < 0 ? '' : value.slice(colon + 1).trim()
  const service = services.find((one) => one.name === name && one.type === 'unix') ?? null
  const kind = name === '' ? '' : name === 'error' || name === 'retry' ? name : (service?.command ?? name)
  if (!['', 'smtp', 'lmtp', 'discard', 'error', 'retry'].includes(kind)) {
    return { why: `the transport ${name} delivers with ${kind}, which deferd has not` }
  }
  const text = `${kind}:${nexthop}`
  try {
    const parsed = parseTransport(text, ROUTING)
    return { text, nexthop, parsed, service }
  } catch (error) {
    return { why: errorMessage(error) }
  }
}

/**
 * Parameters of a transport with a service other than smtp: the overrides of the service, and `NAME_destination_…` of main.cf. `domain` is the
 * destination of a transport without a next hop; null when it is unknown.
 */
function settingsOf({ service, parsed, text }: KnownTransport, domain: string | null, { draft, parameters, used }: RoutingContext): void {
  if (service === null || service.name === 'smtp') return
  const hasHops = 'nexthops' in parsed && parsed.nexthops.length > 0
  const heading = hasHops ? destinationOf(parsed.kind, parsed.nexthops, ROUTING) : domain
  used.set(service.name, (used.get(service.name) ?? new Set()).add(heading ?? text))
  const limits = parameters.names.filter((name) => name.startsWith(`${service.name}_destination_`))
  const given = [
    ...[...service.overrides].map(([name, value]) => [name, parameters.expand(value)] as const),
    ...limits.map((name) => [`default_${name.slice(service.name.length + 1)}`, parameters.get(name)] as const),
  ]
  for (const [name, value] of given) {
    if (name === 'syslog_name' || value === parameters.get(name)) continue
    const isLocal = isOption(name) && OPTIONS[name].perDestination && /^[^*.]/.test(heading ?? '*')
    if (isLocal && heading !== null) draft.setFor(heading, name.replace(/^default_/, ''), value)
    else draft.noteTransport(`master.cf: ${service.name}: ${name} = ${value} has no equivalent for ${heading ?? text}`)
  }
}

/** Sets sender_dependent_default_transport_maps. Services with names of their own become deferd's transports, with their parameters. */
function convertSenderTransports(context: RoutingContext): void {
  const name = 'sender_dependent_default_transport_maps'
  const { draft, files, parameters } = context
  const value = parameters.get(name)
  const { sources } = lookupSources(value, files)
  const given = [...entriesOf(sources)]
  const known = given.flatMap(([key, text]) => {
    const transport = /^dunno$/i.test(text) ? null : transportIn(text, context)
    if (transport !== null && 'why' in transport) return (draft.note(`${name}: ${key} = ${text}: ${transport.why}`), [])
    if (transport !== null) settingsOf(transport, null, context)
    return [{ key, text: transport?.service?.name === 'smtp' || transport === null ? text : transport.text }]
  })
  if (known.length === given.length && known.every(({ text }, i) => text === given[i]?.[1])) return convertTables(name, value, context)
  const source = sources.find(({ kind }) => kind === 'file')
  const path = source?.kind === 'file' ? source.path : `${context.configDirectory}/sender_transport`
  const table = addTable(path, known.map(({ key, text }) => `${key} ${text}\n`).join(''), draft)
  const others = sources.filter(({ kind }) => kind === 'missing').map((one) => (one.kind === 'missing' ? one.text : ''))
  draft.set(name, [`texthash:${table}`, ...convertedTables(name, others.join(', '), context)])
}

/** Domains in relay_domains without an entry in transport_maps use the service relay, with its parameters. */
function convertRelayService(context: RoutingContext): void {
  const { draft, parameters, services } = context
  const service = services.find(({ name, type }) => name === 'relay' && type === 'unix')
  if (service === undefined || !/^relay:?$/.test(parameters.get('relay_transport'))) return
  const domains = parameters.words('relay_domains').filter((word) => !/[:/]/.test(word))
  const known = { text: 'smtp:', nexthop: '', parsed: parseTransport('smtp:', ROUTING), service }
  for (const domain of domains) if (!draft.transports.has(domain)) settingsOf(known, domain, context)
}

/** Limits of the processes of services. Each process makes one delivery. */
function convertProcessLimits({ draft, services, used }: RoutingContext): void {
  for (const { name, type, command, processLimit } of services) {
    if (type !== 'unix' || (command !== 'smtp' && command !== 'lmtp') || processLimit === null || processLimit === 0) continue
    const headings = [...(used.get(name) ?? [])]
    const [heading = ''] = headings
    if (name === 'smtp') draft.set('default_process_limit', String(processLimit))
    else if (headings.length === 1 && /^[^*.]/.test(heading)) limitTo(heading, processLimit, draft)
    else if (headings.length > 0)
      draft.noteTransport(
        `master.cf: ${name}: its ${processLimit} processes for all destinations are left out: write a [provider] table with a limit for them (docs/configuration.md)`,
      )
  }
}

function limitTo(heading: string, limit: number, draft: ConfigurationDraft): void {
  const name = 'destination_concurrency_limit'
  const given = Number(draft.destinations.get(heading)?.get(name) ?? Infinity)
  draft.setFor(heading, name, String(Math.min(limit, given)))
}

/** default_transport with a next hop takes the place of relayhost, as in Postfix. */
function convertDefaultTransport(context: TransportContext): void {
  const { draft, parameters } = context
  const value = parameters.get('default_transport')
  if (value === 'smtp' || value === 'smtp:') return
  const transport = transportIn(value, context)
  if ('why' in transport) return draft.note(`default_transport = ${value}: ${transport.why}`)
  if (transport.text.startsWith('smtp:') && transport.nexthop === '') return
  if (!draft.transports.has('*')) draft.transports.set('*', transport.text)
}

/** Domains in relay_domains use relay_transport, even when default_transport has a next hop. Entries of transport_maps take precedence. */
function convertRelayTransport(context: TransportContext): void {
  const { draft, parameters } = context
  const value = parameters.get('relay_transport')
  const isPlain = (name: string) => /^(?:relay|smtp):?$/.test(parameters.get(name))
  if (isPlain('relay_transport') && isPlain('default_transport')) return
  const transport = transportIn(isPlain('relay_transport') ? `smtp:${parameters.get('relayhost')}` : value, context)
  if ('why' in transport) return draft.note(`relay_transport = ${value}: ${transport.why}`)
  const domains = parameters.words('relay_domains').filter((word) => !/[:/]/.test(word))
  for (const key of domains.flatMap((domain) => [domain, `.${domain}`])) {
    if (!draft.transports.has(key)) draft.transports.set(key, transport.text)
  }
}

/** `smtp_destination_…` applies to all destinations, and comes before `default_destination_…`. */
export function convertDestinationLimit(name: string, { draft, parameters }: Pick<TransportContext, 'draft' | 'parameters'>): boolean {
  const [, owner, limit = ''] = /^(smtp|default)_(destination_\w+)$/.exec(name) ?? []
  if (owner === undefined || !isOption(`default_${limit}`)) return false
  if (owner === 'smtp' || !parameters.has(`smtp_${limit}`)) draft.set(`default_${limit}`, parameters.get(name))
  return true
}
