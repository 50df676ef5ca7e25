/** Converts the SMTP servers of master.cf, with inet_interfaces, to smtpd_listen and [[smtpd]] tables. Pure. */
import { isIP } from 'node:net'
import { isOption } from '../../config/expansion.ts'
import { OPTIONS } from '../../config/options.ts'
import type { ConfigurationDraft, ListenerDraft } from './configuration-draft.ts'
import type { PostfixParameters } from './main-cf.ts'
import type { MasterService } from './master-cf.ts'

/** Services by name (services(5)). */
const PORTS: Readonly<Record<string, number>> = { smtp: 25, smtps: 465, submissions: 465, urd: 465, submission: 587 }

/** Overrides that the conversion of the listener itself handles. */
const HANDLED_OVERRIDES = new Set([
  'smtpd_tls_wrappermode',
  'smtpd_tls_security_level',
  'smtpd_sasl_auth_enable',
  'smtpd_use_tls',
  'smtpd_enforce_tls',
  'smtpd_tls_auth_only',
  'syslog_name',
  'milter_macro_daemon_name',
])

interface ListenerContext {
  readonly draft: ConfigurationDraft
  readonly parameters: PostfixParameters
  readonly services: readonly MasterService[]
  /** True when the server's certificate is readable. */
  readonly hasCertificate: boolean
  /** Converts a parameter of a service, and writes it into a draft. */
  readonly convert: (name: string, draft: ConfigurationDraft, parameters: PostfixParameters) => void
}

export function convertListeners(context: ListenerContext): void {
  const { draft, parameters, services } = context
  const servers = services.filter(({ type, command }) => type === 'inet' && (command === 'smtpd' || command === 'postscreen'))
  const listeners = servers.flatMap((service) => listenersOf(service, context))
  const plain = listeners.filter(
    (one) => one.tls === levelOf(parameters, context) && one.auth === authOf(parameters) && one.settings.size === 0,
  )
  draft.set(
    'smtpd_listen',
    plain.map(({ address }) => address),
  )
  draft.listeners.push(...listeners.filter((one) => !plain.includes(one)))
  if (listeners.length === 0) draft.note('master.cf has no SMTP server: deferd listens nowhere, and takes mail from sendmail')
  if (listeners.some(({ auth }) => auth !== 'none')) addUsers(draft)
}

/** Adds an empty users file, without which a listener with AUTH cannot start. */
function addUsers(draft: ConfigurationDraft): void {
  const path = `${draft.folder}/users`
  draft.note('Passwords of SMTP users are not in the files of Postfix: add each user by deferd user add NAME')
  draft.set('smtpd_sasl_users_file', path)
  draft.addFile(path, '', 0o600)
}

function listenersOf(service: MasterService, context: ListenerContext): readonly ListenerDraft[] {
  const { draft } = context
  const own = context.parameters.under(service.overrides)
  const [, host = '', port = ''] = /^(?:(.*):)?([^:]+)$/.exec(service.name) ?? []
  const number = PORTS[port] ?? Number(port)
  if (!(number >= 1 && number <= 65_535)) return (draft.note(`master.cf: ${service.name}: its port is unknown`), [])
  if (service.command === 'postscreen') draft.note(`master.cf: ${service.name}: deferd has no postscreen; its smtpd answers`)
  const tls = levelOf(own, context)
  if (tls === 'wrapper' && !context.hasCertificate)
    return (draft.note(`master.cf: ${service.name}: no certificate can be read; the service is left out`), [])
  const addresses = addressesFor(host, own, draft)
  return addresses.map((address) => ({
    address: `${address}:${number}`,
    tls,
    auth: authOf(own),
    settings: settingsOf(service, own, context),
  }))
}

/** The parameters of a service that differ from those of the relay. */
function settingsOf(
  { name, overrides }: MasterService,
  own: PostfixParameters,
  { draft, parameters, convert }: ListenerContext,
): ListenerDraft['settings'] {
  const settings: ListenerDraft['settings'] = new Map()
  for (const [parameter, value] of overrides) {
    if (HANDLED_OVERRIDES.has(parameter) || own.get(parameter) === parameters.get(parameter)) continue
    const result = draft.blank
    const isLocal = isOption(parameter) && 'perListener' in OPTIONS[parameter]
    if (isLocal) convert(parameter, result, own)
    const converted = result.parameters.get(parameter) ?? (isLocal ? EMPTY.get(own.get(parameter) === '' ? parameter : '') : undefined)
    for (const text of result.notes) draft.note(`master.cf: ${name}: ${text}`)
    for (const { path, text, mode } of result.files.values()) draft.addFile(path, text, mode)
    if (converted !== undefined) settings.set(parameter, converted)
    else if (result.notes.length === 0)
      draft.note(`master.cf: ${name}: ${parameter} = ${value}: deferd has it for all listeners only, or not at all`)
  }
  return settings
}

/** The values of parameters without a value. */
const EMPTY: ReadonlyMap<string, readonly string[]> = new Map(
  ['smtpd_client_restrictions', 'smtpd_sender_restrictions', 'smtpd_recipient_restrictions'].map((name) => [name, []]),
)

function levelOf(parameters: PostfixParameters, { hasCertificate }: ListenerContext): ListenerDraft['tls'] {
  if (parameters.isYes('smtpd_tls_wrappermode')) return 'wrapper'
  if (!hasCertificate) return 'none'
  return serverLevel(parameters)
}

/** The level by smtpd_tls_security_level, or by the older parameters. */
export function serverLevel(parameters: PostfixParameters): 'none' | 'may' | 'encrypt' {
  const level = parameters.get('smtpd_tls_security_level')
  if (level === 'encrypt' || (level === '' && parameters.isYes('smtpd_enforce_tls'))) return 'encrypt'
  return level === 'may' || (level === '' && parameters.isYes('smtpd_use_tls')) ? 'may' : 'none'
}

const authOf = (parameters: PostfixParameters): ListenerDraft['auth'] => (parameters.isYes('smtpd_sasl_auth_enable') ? 'may' : 'none')

/** Listen addresses without ports: of the service, or of inet_interfaces. */
function addressesFor(host: string, parameters: PostfixParameters, draft: ConfigurationDraft): readonly string[] {
  const families = parameters.words('inet_protocols')
  const has = (family: string) => families.includes('all') || families.includes(family)
  const loopback = [...(has('ipv4') ? ['127.0.0.1'] : []), ...(has('ipv6') ? ['[::1]'] : [])]
  const named = host === '' ? parameters.words('inet_interfaces') : [host]
  return [
    ...new Set(
      named.flatMap((name) => {
        const address = name.replace(/^\[(.*)\]$/, '$1')
        if (name === 'all') return ['*']
        if (name === 'loopback-only' || name === 'localhost') return loopback
        if (isIP(address) !== 0) return [isIP(address) === 6 ? `[${address}]` : address]
        draft.note(`inet_interfaces: ${name} is no address: add its address to smtpd_listen`)
        return []
      }),
    ),
  ]
}
