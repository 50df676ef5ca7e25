/**
 * Parameters that a world over HTTP may not have: those that open files, programs or sockets of the machine. Names are refused as such, and
 * values by their text after `$name` was expanded, so that no combination of parameters becomes a path.
 */
import type { LoadedConfig } from '../config/load.ts'
import type { InvalidPart } from '../http/problem-details.ts'

/** Parameters, and keys of tables, whose value is a file, a folder, a command, a port or a database. */
const REFUSED_NAMES =
  /(?:_command|^command|_files?|_CAfile|_directory|_listen|^queue_database|_password_maps|^smtp_bind_address6?|_policy_service.*|^to|^oauth|^dkim|^events|^smtpd)$/

/** Tables in files, services, and paths. `static:` and `inline:` are no files. */
const REFUSED_VALUES = [
  /(?:^|[^\w-])(?:texthash|hash|btree|lmdb|cdb|regexp|pcre|cidr|file|unix|inet|tcp|proxy|socketmap|sqlite|mysql|pgsql|ldap|memcache)\s*:/i,
  /(?:^|[\s,:"'={[!])\.{0,2}\//,
  /\bcheck_policy_service\b/,
]

const REASON = 'opens files, programs or sockets of the machine, which a world over HTTP may not'

const isTable = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

const escaped = (member: string): string => member.replaceAll('~', '~0').replaceAll('/', '~1')

/** Names of parameters that are refused, at any depth. `pointer` is that of `values`. */
export function refusedNames(values: unknown, pointer = '/config'): readonly InvalidPart[] {
  if (!isTable(values)) return []
  return Object.entries(values).flatMap(([name, value]) => {
    const here = `${pointer}/${escaped(name)}`
    if (REFUSED_NAMES.test(name)) return [{ pointer: here, detail: `${name} ${REASON}` }]
    return refusedNames(value, here)
  })
}

/** A parameter in a text, which may be empty. */
const PARAMETER = /\$(?:\w+|\{\w+\}|\(\w+\))/g

const isRefused = (text: string): boolean =>
  REFUSED_VALUES.some((pattern) => pattern.test(text) || pattern.test(text.replaceAll(PARAMETER, '')))

/** Texts of `values` that are refused, at any depth, keys included. */
function refusedTexts(values: unknown, pointer: string): readonly InvalidPart[] {
  if (typeof values === 'string')
    return isRefused(values) ? [{ pointer, detail: `${JSON.stringify(values)} ${REASON}: write a table, or inline:{key=value}` }] : []
  if (!isTable(values)) return []
  return Object.entries(values).flatMap(([key, value]) =>
    isRefused(key) ? refusedTexts(key, pointer) : refusedTexts(value, `${pointer}/${escaped(key)}`),
  )
}

/** Values that are refused as they are written. To be called before the configuration is loaded, since that reads the files of mynetworks. */
export const refusedValues = (values: unknown): readonly InvalidPart[] => refusedTexts(values, '/config')

/** Values that are refused after the expansion of `$name`. */
export function refusedExpansions({ given, written }: Pick<LoadedConfig, 'given' | 'written'>): readonly InvalidPart[] {
  return [...written].flatMap(([name, text]) => (given.has(name) ? refusedTexts(text, `/config/${name}`) : []))
}
