/** Reads the `[oauth.NAME]` tables, and the parameters that name them. */
import type { Config } from './options.ts'
import { Networks } from './values/networks.ts'
import {
  COMMAND_TABLE,
  commandTable,
  PROVIDERS,
  secretVariable,
  type OauthGrant,
  type OauthProvider,
  type OauthTable,
} from './values/tables/oauth-table.ts'
import {
  GRANTS_OF,
  isOauthMember,
  membersOf,
  OAUTH_MEMBERS,
  type OauthMember,
  type OauthMemberForm,
} from './values/tables/oauth-members.ts'
import type { Problem } from './values/problem.ts'
import type { RawSettings, RawValue } from './values/sources.ts'
import * as is from './values/values.ts'

const NAME = /^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$/

const MICROSOFT = 'https://login.microsoftonline.com'
const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token'

/** Scopes of a table without `scope`. */
function scopeOf(provider: OauthProvider, grant: OauthGrant): string {
  if (provider === 'google') return 'https://mail.google.com/'
  if (provider !== 'microsoft') return ''
  return grant === 'client_credentials' ? 'https://outlook.office365.com/.default' : 'https://outlook.office.com/SMTP.Send offline_access'
}

const LOOPBACK = new Networks(['127.0.0.0/8', '[::1]/128'], 'loopback')

/** True for an https URL without a user, and for http at a loopback host. */
function isEndpoint(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return url.protocol === 'https:' || (url.protocol === 'http:' && (host === 'localhost' || LOOPBACK.has(host)))
}

interface OauthSource {
  readonly raw: ReadonlyMap<string, RawValue>
  readonly where: string
  /** True when the environment has the client secret. */
  readonly hasSecret: boolean
}

/** Reads one table and collects its problems. No problem repeats a value that may be a secret. */
class TableReader {
  readonly #name: string
  readonly #source: OauthSource
  readonly #problems: Problem[]

  constructor(name: string, source: OauthSource, problems: Problem[]) {
    this.#name = name
    this.#source = source
    this.#problems = problems
  }

  refuse(text: string, member?: OauthMember): void {
    const where = (member === undefined ? undefined : this.#source.raw.get(member)?.where) ?? this.#source.where
    this.#problems.push({ where, text: `oauth.${JSON.stringify(this.#name)}: ${text}` })
  }

  has(member: OauthMember): boolean {
    return this.#source.raw.has(member)
  }

  /** A member as text; empty when the member is absent or malformed. */
  text(member: OauthMember): string {
    const given = this.#source.raw.get(member)
    if (given === undefined) return ''
    const value = typeof given.value === 'string' && 'value' in is.text(given.value) ? given.value.trim() : ''
    const { form, expected = 'a text of one line' }: OauthMemberForm = OAUTH_MEMBERS[member]
    if (form.test(value)) return value
    this.refuse(`${member}: expected ${expected}`, member)
    return ''
  }

  word<T extends string>(member: OauthMember, known: readonly T[]): T | undefined {
    const given = this.#source.raw.get(member)
    const found = known.find((one) => one === given?.value)
    if (found === undefined)
      this.refuse(
        given === undefined ? `${member} is missing; write one of ${known.join(', ')}` : `${member}: expected one of ${known.join(', ')}`,
        member,
      )
    return found
  }

  endpoint(member: 'token_url' | 'device_url'): string {
    const url = this.text(member)
    if (url !== '' && !isEndpoint(url))
      this.refuse(`${member}: expected an https URL without a user (http for a loopback host only)`, member)
    return url
  }

  noteUnknown(): void {
    for (const [key, { where }] of this.#source.raw) {
      if (isOauthMember(key)) continue
      const remedy =
        key === 'client_secret'
          ? `write the secret to a file with mode 0600 and name it in client_secret_file, or set ${secretVariable(this.#name)}`
          : `a table has ${Object.keys(OAUTH_MEMBERS).join(', ')}`
      this.#problems.push({ where, text: `oauth.${JSON.stringify(this.#name)}: unknown member ${key}; ${remedy}` })
    }
  }

  /** Notes each missing required member, and each member that a table with this provider and grant cannot have. */
  noteMembers(provider: OauthProvider, grant: OauthGrant): void {
    const { required, optional } = membersOf(provider, grant)
    const allowed = new Set<OauthMember>(['provider', 'grant', ...required, ...optional])
    const kind = provider === 'command' ? 'provider = "command"' : `provider = "${provider}" and grant = "${grant}"`
    for (const member of required) if (!this.has(member)) this.refuse(`${member} is missing; a table with ${kind} needs it`)
    for (const key of this.#source.raw.keys())
      if (isOauthMember(key) && !allowed.has(key)) this.refuse(`${key} has no meaning with ${kind}: remove it`, key)
    if (provider === 'microsoft' && !this.has('tenant') && !this.has('token_url')) {
      this.refuse('tenant is missing; write the id or a domain of the tenant')
    }
    this.#noteSecrets(grant)
  }

  #noteSecrets(grant: OauthGrant): void {
    const { hasSecret } = this.#source
    const variable = secretVariable(this.#name)
    const isClient = grant === 'client_credentials' || grant === 'refresh_token'
    if (!isClient && hasSecret) this.refuse(`${variable} has no meaning with grant = "${grant}": unset it`)
    if (!isClient) return
    const given = [
      ...(['client_secret_file', 'client_certificate_file'] as const).filter((member) => this.has(member)),
      ...(hasSecret ? [variable] : []),
    ]
    if (given.length > 1) this.refuse(`${given.join(' and ')}: a table has one secret; remove the others`)
    if (given.length > 0 || grant !== 'client_credentials') return
    this.refuse(`the secret is missing; write client_secret_file or client_certificate_file, or set ${variable}`)
  }
}

/** Reads the table of a name; undefined when its provider or grant is unknown. Adds the problems to `problems`. */
function readOauthTable(name: string, source: OauthSource, problems: Problem[]): OauthTable | undefined {
  const table = new TableReader(name, source, problems)
  if (!NAME.test(name)) table.refuse('expected a name of lower-case letters, digits, hyphens and underscores, such as [oauth.m365]')
  table.noteUnknown()
  const provider = table.word('provider', PROVIDERS)
  const grant = provider === 'command' && !table.has('grant') ? 'command' : table.word('grant', GRANTS_OF[provider ?? 'other'])
  const [tenant, givenUrl, givenDevice] = [table.text('tenant'), table.endpoint('token_url'), table.endpoint('device_url')]
  const texts = {
    scope: table.text('scope'),
    audience: table.text('audience'),
    clientId: table.text('client_id'),
    clientSecretFile: table.text('client_secret_file'),
    clientCertificateFile: table.text('client_certificate_file'),
    refreshTokenFile: table.text('refresh_token_file'),
    serviceAccountFile: table.text('service_account_file'),
    caFile: table.text('ca_file'),
    command: table.text('command'),
  }
  if (provider === undefined || grant === undefined) return undefined
  table.noteMembers(provider, grant)
  const urls = endpointsOf(provider, tenant)
  return {
    name,
    provider,
    grant,
    ...texts,
    scope: texts.scope || scopeOf(provider, grant),
    tokenUrl: givenUrl || urls.tokenUrl,
    deviceUrl: grant !== 'refresh_token' ? '' : givenDevice || deviceUrlBeside(provider, givenUrl) || urls.deviceUrl,
    where: source.where,
  }
}

function endpointsOf(provider: OauthProvider, tenant: string): { readonly tokenUrl: string; readonly deviceUrl: string } {
  // Google's device authorization does not allow the scope for mail.
  if (provider === 'google') return { tokenUrl: GOOGLE_TOKEN_URL, deviceUrl: '' }
  if (provider !== 'microsoft' || tenant === '') return { tokenUrl: '', deviceUrl: '' }
  const base = `${MICROSOFT}/${tenant}/oauth2/v2.0`
  return { tokenUrl: `${base}/token`, deviceUrl: `${base}/devicecode` }
}

/** Microsoft's device endpoint beside a token endpoint of another cloud. */
const deviceUrlBeside = (provider: OauthProvider, tokenUrl: string): string =>
  provider === 'microsoft' && tokenUrl.endsWith('/token') ? tokenUrl.replace(/\/token$/, '/devicecode') : ''

/** Reads all tables, and makes the one for smtp_sasl_oauth_token_command. Adds the problems to `problems`. */
export function readOauthTables(
  raw: RawSettings,
  { smtp_sasl_oauth_token_command: command }: Pick<Config, 'smtp_sasl_oauth_token_command'>,
  problems: Problem[],
): Config['oauth'] {
  const tables = new Map<string, OauthTable>()
  const named = new Map<string, string>()
  for (const [name, table] of raw.oauth) {
    const variable = secretVariable(name)
    const where = raw.whereOfOauth.get(name) ?? ''
    const other = named.get(variable)
    if (other !== undefined)
      problems.push({
        where,
        text: `oauth.${JSON.stringify(name)}: has the variable ${variable} of oauth.${JSON.stringify(other)}; rename one`,
      })
    named.set(variable, name)
    const read = readOauthTable(name, { raw: table, where, hasSecret: raw.oauthSecrets.has(variable) }, problems)
    if (read !== undefined) tables.set(name, read)
  }
  for (const variable of raw.oauthSecrets.keys()) {
    if (!named.has(variable))
      problems.push({ where: 'environment', text: `${variable}: no [oauth.NAME] table has this name; unset it, or write the table` })
  }
  if (command === '') return tables
  const where = raw.parameters.get('smtp_sasl_oauth_token_command')?.where ?? ''
  if (raw.oauth.has(COMMAND_TABLE)) {
    problems.push({ where, text: `smtp_sasl_oauth_token_command: [oauth.${COMMAND_TABLE}] exists too; remove one of them` })
  } else tables.set(COMMAND_TABLE, commandTable(command, where))
  return tables
}

/** Adds a problem for each smtp_sasl_oauth that names no table. */
export function noteUnknownOauth(
  config: Pick<Config, 'smtp_sasl_oauth' | 'oauth' | 'destination' | 'provider'>,
  raw: RawSettings,
  problems: Problem[],
): void {
  const known = new Set([...raw.oauth.keys(), ...config.oauth.keys()])
  const remedy = known.size === 0 ? 'write the table, or leave the parameter empty' : `write one of ${[...known].join(', ')}, or nothing`
  const check = (inside: string, given: RawValue | undefined, name: string | undefined): void => {
    if (given === undefined || name === undefined || name === '' || known.has(name)) return
    problems.push({ where: given.where, text: `${inside}smtp_sasl_oauth: there is no table [oauth.${name}]; ${remedy}` })
  }
  check('', raw.parameters.get('smtp_sasl_oauth'), config.smtp_sasl_oauth)
  for (const [heading, table] of raw.destinations) {
    const inside = `destination.${JSON.stringify(heading)}: `
    check(inside, table.get('smtp_sasl_oauth'), config.destination.get(heading.toLowerCase())?.smtp_sasl_oauth)
  }
  for (const [name, table] of raw.providers) {
    check(`provider.${JSON.stringify(name)}: `, table.get('smtp_sasl_oauth'), config.provider.get(name)?.settings.smtp_sasl_oauth)
  }
}
