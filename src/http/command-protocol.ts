/** Names that commands and the admin API share. The file has no imports, because commands load it at each start. */

/** Path of the API. */
export const BASE = '/api/v1'

/** Media type of one JSON value per line. */
export const NDJSON = 'application/x-ndjson'

/** Media type of comma-separated values (RFC 4180). */
export const CSV = 'text/csv'

/** Begin of each local token. */
export const LOCAL_PREFIX = 'dfd-local_'

/** Field with the user of a local command, percent-encoded. */
export const OPERATOR_FIELD = 'deferd-operator'

/** Field with the version of the daemon, in answers to local commands and of http_listen. */
export const VERSION_FIELD = 'deferd-version'

/** Challenge of a daemon that knows local tokens, and not this one. An older daemon has another realm. */
export const LOCAL_REALM = 'Bearer realm="deferd local"'

/** EX_SOFTWARE, for errors without an exit code, and for requests that the daemon does not understand. */
export const SOFTWARE = 70

/** EX_USAGE, for values that the API does not accept. */
const USAGE = 64

/** Exit codes by status: EX_NOPERM, EX_DATAERR, EX_TEMPFAIL. */
const EXIT_CODES: Readonly<Record<number, number>> = { 401: 77, 403: 77, 404: 65, 409: 65, 408: 75, 410: 65, 429: 75, 503: 75 }

/** Last part of the type of the problem that no resource has the path. */
export const UNKNOWN_PATH = 'unknown-path'

/** Last part of the type of the problem that a part of the request is invalid. */
export const INVALID = 'invalid'

/** The exit code of a command whose request has this problem. */
export const exitCodeOf = ({ status, slug }: { readonly status: number; readonly slug: string }): number =>
  slug === UNKNOWN_PATH ? SOFTWARE : slug === INVALID ? USAGE : (EXIT_CODES[status] ?? SOFTWARE)
