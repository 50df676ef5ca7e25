/**
 * The URL of a queue in PostgreSQL: `postgresql://user:password@host:port,host:port/database?sslmode=verify-full`. The server of the
 * queue is the first host that accepts writes (libpq, "Specifying Multiple Hosts").
 */

export interface DatabaseUrl {
  /** A URL for each host, in the order of the list. */
  readonly servers: readonly ServerUrl[]
  /** The `options` of the URL for the server process; empty without any. */
  readonly options: string
}

export interface ServerUrl {
  /** `host` or `host:port`, for messages. */
  readonly name: string
  readonly url: string
}

const FORM = /^postgres(?:ql)?:\/\/(?:(?<user>[^/?#]*)@)?(?<hosts>[^/?#@]*)(?:\/(?<database>[^?#]*))?(?:\?(?<query>.*))?$/

/** Null for a text that is not a URL of PostgreSQL. */
export function parseDatabaseUrl(text: string): DatabaseUrl | null {
  const { user, hosts = '', database = '', query = '' } = FORM.exec(text)?.groups ?? {}
  const names = hosts.split(',')
  const parameters = new URLSearchParams(query)
  const folder = parameters.get('host')
  if (!FORM.test(text) || database === '' || names.some((name) => name === '' && folder === null)) return null
  const options = parameters.get('options') ?? ''
  parameters.delete('options')
  // Without this, the client treats "require" and "verify-ca" as "verify-full", and warns.
  if (parameters.has('sslmode')) parameters.set('uselibpqcompat', 'true')
  const servers = names.map((name) => ({
    name: name === '' ? (folder ?? '') : name,
    url: `postgresql://${user === undefined ? '' : `${user}@`}${name}/${database}?${parameters.toString()}`,
  }))
  return servers.every(({ url }) => URL.canParse(url)) || folder !== null ? { servers, options } : null
}

/** True for a URL, false for a directory. `postgresql:` without slashes is a malformed URL. */
export const isUrl = (place: string): boolean => /^(?:\w+:\/\/|postgres(?:ql)?:)/.test(place)

/** The URL without its passwords, as the name of a queue for operators. */
export const databaseName = (text: string): string =>
  text
    .replace(/^(\w+:\/\/[^:@/?#]*):[^/?#]*@/, '$1@')
    .replaceAll(/([?&])password=[^&#]*&?/g, '$1')
    .replace(/[?&]$/, '')

/** The URL with `***` in place of its passwords, for logs and `deferd config`. */
export const withoutPassword = (text: string): string =>
  text.replace(/^(postgres(?:ql)?:\/\/[^:@/?#]*):[^/?#]*@/, '$1:***@').replaceAll(/([?&]password=)[^&#]*/g, '$1***')
