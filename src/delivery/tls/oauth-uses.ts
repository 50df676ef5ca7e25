/** The places of a configuration that use an `[oauth.NAME]` table, and the logins with its access tokens. Pure. */
import { configuredHops } from '../../config/destination-headings.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import { formatNextHop, parseNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { keysOf, loginLines, SaslCredentials, type LoginLine } from './sasl-credentials.ts'

export interface OauthLogin {
  readonly table: string
  readonly user: string
  readonly hop: NextHop
  /** True for the login of a sender, beside which the next hop may have another one. */
  readonly isOfSender: boolean
}

const isSender = ({ key }: LoginLine): boolean => key.includes('@')

/** Logins with access tokens at the next hops that the configuration names. `passwords` is the text of smtp_sasl_password_maps. */
export function oauthLogins(config: Config, passwords: string): readonly OauthLogin[] {
  const credentials = new SaslCredentials(passwords, config)
  const policies = new DestinationPolicies(config)
  const tableAt = (hop: NextHop): string => policies.for(`smtp:${formatNextHop(hop, 0)}`).settings.smtp_sasl_oauth
  const { hops } = configuredHops(config)
  const lines = loginLines(passwords)
  const known = new Set(hops.flatMap(keysOf))
  // Next hops of routes in files, and of senders.
  const others = lines.flatMap((line) => {
    const hop =
      isSender(line) || known.has(line.key)
        ? undefined
        : parseNextHop(line.key, { port: config.smtp_tcp_port, origin: 'relayhost', mx: true })
    return hop === undefined ? [] : [hop]
  })
  const ofHops = [...hops, ...others].flatMap((hop) => {
    const login = credentials.find(hop, '', { smtp_sasl_oauth: tableAt(hop) })
    return login?.oauth === undefined ? [] : [{ table: login.oauth, user: login.user, hop, isOfSender: false }]
  })
  const ofSenders = config.smtp_sender_dependent_authentication
    ? lines
        .filter(isSender)
        .flatMap(({ user, oauth }) =>
          hops.map((hop) => ({ table: oauth === undefined ? tableAt(hop) : (oauth ?? ''), user, hop, isOfSender: true })),
        )
    : []
  // Of equal logins, the last one stays.
  const logins = [...ofSenders, ...ofHops].filter(({ table }) => table !== '')
  return [...new Map(logins.map((login) => [JSON.stringify([login.table, login.user, formatNextHop(login.hop, 0)]), login])).values()]
}

/** The places that name a table: parameters, and keys of smtp_sasl_password_maps. */
export const oauthPlaces = (name: string, config: Config, passwords: string): readonly string[] => [
  ...parameterPlaces(name, config),
  ...loginLines(passwords)
    .filter(({ oauth }) => oauth === name)
    .map(({ key }) => `login of ${key}`),
]

/** Tables without a login that takes their tokens. */
export function unusedTables(config: Config, passwords: string): readonly string[] {
  const lines = loginLines(passwords)
  const hasEmpty = lines.some(({ oauth }) => oauth === undefined)
  return [...config.oauth.keys()].filter(
    (name) => !lines.some(({ oauth }) => oauth === name) && !(hasEmpty && parameterPlaces(name, config).length > 0),
  )
}

/** Keys of logins by a table that they name, at hosts to which no route leads. Empty where routes are in files or made from patterns. */
export function unusedLogins(config: Config, passwords: string): readonly string[] {
  const { hops, areAll } = configuredHops(config)
  const known = new Set(hops.flatMap(keysOf))
  // A name without brackets may be a domain of recipients.
  const isUnused = (line: LoginLine): boolean => typeof line.oauth === 'string' && line.key.startsWith('[') && !known.has(line.key)
  return areAll
    ? loginLines(passwords)
        .filter(isUnused)
        .map(({ key }) => key)
    : []
}

function parameterPlaces(name: string, config: Config): readonly string[] {
  const inTables = (
    kind: string,
    tables: Iterable<readonly [string, { readonly smtp_sasl_oauth?: string | undefined }]>,
  ): readonly string[] =>
    [...tables].filter(([, table]) => table.smtp_sasl_oauth === name).map(([heading]) => `${kind}.${JSON.stringify(heading)}`)
  return [
    ...(config.smtp_sasl_oauth === name ? ['smtp_sasl_oauth'] : []),
    ...inTables('destination', config.destination),
    ...inTables(
      'provider',
      [...config.provider].map(([heading, { settings }]) => [heading, settings]),
    ),
  ]
}
