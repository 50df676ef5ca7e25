/** Converts single parameters of main.cf. A parameter without an equivalent becomes a comment with what to do instead. */
import { isOption } from '../../config/expansion.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { OPTIONS } from '../../config/options.ts'
import { postfixOnly } from '../../config/values/postfix-parameters.ts'
import { CHECK_NAMES } from '../../checks/check-tables.ts'
import { SENDER_TABLE_NAMES } from '../../delivery/routing/routing-tables.ts'
import { TABLE_NAMES } from '../../rewriting/tables.ts'
import { LIST_NAMES } from '../../access/access-tables.ts'
import { Networks } from '../../config/values/networks.ts'
import {
  classNames,
  convertClasses,
  convertRelayRestrictions,
  convertRestrictions,
  noteRestrictions,
  OTHER_LISTS,
  type RestrictionContext,
} from './restriction-conversion.ts'
import { entriesOf, lookupSources } from './lookup-sources.ts'
import { serverLevel } from './listener-conversion.ts'
import { convertLogins, convertTlsPolicies, tlsLevel } from './secret-conversion.ts'
import { convertTables, keptFile } from './table-conversion.ts'
import { convertDestinationLimit } from './transport-conversion.ts'

export interface ParameterContext extends RestrictionContext {
  /** True for a parameter of a service in master.cf, which is written also when it has the default value. */
  readonly isOverride?: boolean
}

type Conversion = (value: string, context: ParameterContext) => void

/** Lists that may contain tables; the keys of a table are then members of the list. */
const LISTS = [
  'relay_domains',
  'masquerade_domains',
  'fast_flush_domains',
  'smtpd_authorized_xclient_hosts',
  'smtpd_authorized_xforward_hosts',
] as const

/** Parameters that other parts of the import convert, or that only Postfix's own programs use. */
const ELSEWHERE = new Set([
  'smtpd_tls_security_level',
  'smtpd_use_tls',
  'smtpd_enforce_tls',
  'smtpd_tls_wrappermode',
  'smtp_use_tls',
  'smtp_enforce_tls',
  'smtp_sasl_auth_enable',
  'inet_interfaces',
  'transport_maps',
  'sender_dependent_default_transport_maps',
  'default_transport',
  'relay_transport',
  'queue_directory',
  'compatibility_level',
  'virtual_maps',
  'fallback_relay',
  'smtpd_tls_cert_file',
  'smtpd_tls_key_file',
  'smtpd_tls_chain_files',
])

const tablesOf =
  (name: string): Conversion =>
  (value, context) =>
    convertTables(name, value, context)

const CONVERSIONS: Readonly<Record<string, Conversion>> = {
  ...Object.fromEntries(
    [...TABLE_NAMES, ...SENDER_TABLE_NAMES, ...CHECK_NAMES, 'smtpd_sender_login_maps', 'relay_recipient_maps'].map((name) => [
      name,
      tablesOf(name),
    ]),
  ),
  ...Object.fromEntries(
    LIST_NAMES.map((name) => [name, (value: string, context: ParameterContext) => convertRestrictions(name, value, context)]),
  ),
  ...Object.fromEntries(
    OTHER_LISTS.map((name) => [name, (value: string, context: ParameterContext) => noteRestrictions(name, value, context)]),
  ),
  ...Object.fromEntries(LISTS.map((name) => [name, (value: string, context: ParameterContext) => convertList(name, value, context)])),
  alias_maps: convertAliases,
  mydestination: noteDestinations,
  mynetworks: convertNetworks,
  smtpd_relay_restrictions: (_, context) => convertRelayRestrictions(context, context.isOverride),
  smtpd_restriction_classes: (_, context) => convertClasses(context),
  bounce_template_file: (value, context) => setFile('bounce_template_file', value, context),
  smtp_sasl_password_maps: (_, context) => convertLogins(context.parameters, context),
  smtp_tls_policy_maps: convertTlsPolicies,
  smtp_tls_security_level: (_, context) => context.draft.set('smtp_tls_security_level', clientLevel(context)),
  smtpd_sasl_auth_enable: (value, { draft }) => draft.set('smtpd_sasl_auth_enable', value),
  smtp_tls_CAfile: (value, context) => setFile('smtp_tls_CAfile', value, context),
  smtp_tls_cert_file: (value, context) => setFile('smtp_tls_cert_file', value, context),
  smtp_tls_key_file: (value, context) => setFile('smtp_tls_key_file', value, context),
  smtp_tls_chain_files: (value, context) => {
    const [cert = '', ...others] = value.split(/[,\s]+/)
    if (others.length === 0) return setFile('smtp_tls_cert_file', cert, context)
    return context.draft.note(
      `smtp_tls_chain_files = ${value}: write the certificate with its chain to smtp_tls_cert_file, and the key to smtp_tls_key_file`,
    )
  },
  myorigin: (value, { draft, files }) => draft.set('myorigin', fileOrName(value, files)),
  disable_dns_lookups: (value, { draft }) => {
    if (value !== 'yes') return
    draft.set('smtp_host_lookup', 'native')
    draft.note('disable_dns_lookups = yes: deferd looks up MX records all the same: write next hops in brackets')
  },
  smtp_sasl_mechanism_filter: (value, { draft }) => {
    if (/[!:/]/.test(value)) draft.note(`smtp_sasl_mechanism_filter = ${value}: write the names of the mechanisms`)
    else draft.set('smtp_sasl_mechanism_filter', value)
  },
}

/** Converts one parameter. Throws an Error for a value that cannot be expanded. */
export function convertParameter(name: string, context: ParameterContext): void {
  const { draft, parameters } = context
  const value = parameters.get(name)
  const convert = CONVERSIONS[name]
  if (ELSEWHERE.has(name) || classNames(parameters).includes(name) || isOfService(name, context)) return
  if (value === '' && /^(?:mime|nested)_header_checks$/.test(name)) return draft.set(name, [])
  // An empty value is mostly the default. Otherwise, deferd accepts it or the validation turns it into a comment.
  if (value === '' && convert !== undefined && !MEANT_EMPTY.has(name)) return
  if (convert !== undefined) return convert(value, context)
  if (convertDestinationLimit(name, context)) return
  if (isOption(name)) return setOption(name, value, context)
  const remedy = postfixOnly(name) ?? `deferd has no parameter ${name}`
  draft.note(`${name} = ${parameters.written(name)}: ${asComment(remedy)}`)
}

/** Parameters whose empty value has a meaning of its own. */
const MEANT_EMPTY: ReadonlySet<string> = new Set(['smtp_tls_security_level', 'smtpd_relay_restrictions', 'mynetworks', 'mydestination'])

/** True for `NAME_destination_…` of a service in master.cf other than smtp, which convertTransports converts. */
const isOfService = (name: string, { services }: ParameterContext): boolean => {
  const service = /^(.+)_destination_\w+$/.exec(name)?.[1]
  return service !== 'smtp' && services.some((one) => one.type === 'unix' && one.name === service)
}

/** A remedy as a comment on a parameter that is already removed. */
const asComment = (remedy: string): string =>
  remedy
    .replace(/^deferd does not have Postfix’s parameter \w+: /, '')
    .replace(/^remove it(?:: |, and )/, '')
    .replace('; remove it: ', ': ')
    .replace('; remove it, and ', '; ')
    .replace(/; remove it$/, '')

function setOption(name: keyof typeof OPTIONS, value: string, { draft }: ParameterContext): void {
  const reading = OPTIONS[name].kind(value)
  if ('value' in reading) draft.set(name, value)
  else draft.note(`${name} = ${value}: ${reading.wrong}`)
}

/** Sets a list. Tables in the list are replaced by their keys, except cidr: tables and paths. */
function convertList(name: string, value: string, { draft, files }: ParameterContext): void {
  const { sources, words } = lookupSources(value.replaceAll(/(?<=^|[\s,])cidr:/g, 'cidr;'), files)
  const members = words.map((word) => word.replace(/^cidr;/, 'cidr:'))
  for (const source of sources) if (source.kind === 'missing') draft.note(`${name}: ${source.text} is left out: ${source.why}`)
  const keys = [...entriesOf(sources).keys()]
  if (name !== 'mynetworks' && members.some((word) => word.startsWith('/'))) {
    const paths = members.filter((word) => word.startsWith('/'))
    const listed = paths.flatMap((path) =>
      (files.read(path) ?? '')
        .split('\n')
        .map((line) => line.replace(/#.*/, '').trim())
        .filter((line) => line !== ''),
    )
    return draft.set(name, [...new Set([...members.filter((word) => !word.startsWith('/')), ...listed, ...keys])])
  }
  draft.set(name, [...new Set([...members, ...keys])])
}

/** The level by smtp_tls_security_level, or by the older parameters. Postfix uses no TLS when none of them is set. */
function clientLevel(context: ParameterContext): string {
  const { parameters } = context
  const level = parameters.get('smtp_tls_security_level')
  if (level !== '') return tlsLevel(level, 'smtp_tls_security_level', context)
  if (parameters.isYes('smtp_enforce_tls')) return 'encrypt'
  return parameters.isYes('smtp_use_tls') ? 'may' : 'none'
}

function setFile(name: string, path: string, context: ParameterContext): void {
  const { draft, files } = context
  if (files.read(path) === null) draft.note(`${name} = ${path}: the file cannot be read`)
  else draft.set(name, keptFile(path, context))
}

/** Sets mynetworks to the words that are networks. Postfix warns of others, and goes on. */
function convertNetworks(value: string, { draft, files }: ParameterContext): void {
  const words = value.split(/[,\s]+/).filter((word) => word !== '')
  const all = words.flatMap((word) => {
    const text = word.startsWith('/') ? files.read(word) : null
    if (text === null) return [word]
    return text.split(/[,\s]+/).filter((one) => one !== '')
  })
  const kept = all.filter((word) => {
    try {
      return new Networks([word], 'mynetworks') instanceof Networks
    } catch (error) {
      draft.note(`mynetworks: ${word} is left out: ${errorMessage(error).replace(/^mynetworks: /, '')}`)
      return false
    }
  })
  draft.set('mynetworks', [...new Set(kept)])
}

/** Notes what becomes of mail to the domains of mydestination. */
function noteDestinations(value: string, { draft, parameters }: ParameterContext): void {
  const domains = parameters.words('mydestination').filter((word) => !/[:/]/.test(word))
  if (domains.length > 0)
    draft.note(
      `mydestination = ${value}: deferd has no mailboxes: mail that alias_maps do not replace is relayed like all other mail, and clients outside mynetworks may send to these domains only when they are in relay_domains`,
    )
  if (!domains.includes(parameters.get('myhostname')))
    draft.note(
      `postmaster@${parameters.get('myhostname')}: all clients may send to it (RFC 5321 §4.5.1), other than in Postfix without this domain in mydestination`,
    )
}

/** Sets alias_maps, for the domains that Postfix delivers locally. */
function convertAliases(value: string, context: ParameterContext): void {
  const { draft, parameters } = context
  const domains = parameters.words('mydestination').filter((word) => !/[:/]/.test(word))
  if (domains.length === 0) {
    if (parameters.has('alias_maps')) draft.note(`alias_maps = ${value}: not used, as mydestination has no domain`)
    return
  }
  convertTables('alias_maps', value, context)
  const byDefault = [parameters.get('myorigin'), parameters.get('myhostname'), 'localhost']
  const isSame = byDefault.every((domain) => domains.includes(domain)) && domains.every((domain) => byDefault.includes(domain))
  if (draft.has('alias_maps') && !isSame) draft.set('alias_domains', domains)
}

/** The first line of the file that the value names, or the value itself. */
const fileOrName = (value: string, files: ParameterContext['files']): string =>
  value.startsWith('/') ? (files.read(value) ?? '').split('\n', 1)[0]?.trim() || '$myhostname' : value

/** Sets the TLS parameters of the server. Returns true when the certificate is readable. */
export function convertServerTls(context: ParameterContext): boolean {
  const { draft, files, parameters } = context
  const chains = parameters.words('smtpd_tls_chain_files')
  const [cert = '', key = ''] = chains.length > 0 ? chains : [parameters.get('smtpd_tls_cert_file'), parameters.get('smtpd_tls_key_file')]
  const unreadable = cert === '' ? null : (chains.length > 0 ? chains : [cert, key]).find((path) => files.read(path) === null)
  const level = serverLevel(parameters)
  if (unreadable === undefined) {
    if (chains.length > 0)
      draft.set(
        'smtpd_tls_chain_files',
        chains.map((path) => keptFile(path, context)),
      )
    else {
      draft.set('smtpd_tls_cert_file', keptFile(cert, context))
      draft.set('smtpd_tls_key_file', keptFile(key, context))
    }
    if (level !== 'none') draft.set('smtpd_tls_security_level', level)
    return true
  }
  if (unreadable !== null) draft.note(`smtpd_tls_cert_file = ${cert}: ${unreadable} cannot be read, so that the server offers no TLS`)
  else if (level !== 'none') draft.note(`smtpd_tls_security_level = ${level}: there is no certificate, so that the server offers no TLS`)
  return false
}
