/**
 * Parses lists of access restrictions (Postfix SMTPD_ACCESS_README): names with their arguments, separated by commas or blanks, or a
 * TOML list of them. A TOML table, or a table alone (`texthash:/PATH`), is an access table for the subject of the list.
 */
import { errorMessage } from '../../system/caught-error.ts'
import type { Duration } from '../../system/clock.ts'
import { parseDuration } from '../../system/duration.ts'
import { parseTables, splitOutsideBraces, type TableSource } from './lookup-tables.ts'
import { withUnit, type Kind } from './values.ts'

/** Restrictions without an argument. */
const PLAIN = [
  'permit',
  'reject',
  'defer',
  'defer_if_permit',
  'permit_mynetworks',
  'permit_sasl_authenticated',
  'permit_auth_destination',
  'reject_unauth_destination',
  'defer_unauth_destination',
  'reject_non_fqdn_sender',
  'reject_non_fqdn_recipient',
  'reject_unknown_sender_domain',
  'reject_unknown_recipient_domain',
  'reject_sender_login_mismatch',
  'reject_authenticated_sender_login_mismatch',
  'reject_unauthenticated_sender_login_mismatch',
] as const
export type PlainRestriction = (typeof PLAIN)[number]

/** Restrictions that look up a property of the session in access tables. */
const TABLED = ['check_client_access', 'check_sender_access', 'check_recipient_access', 'check_sasl_access'] as const
export type AccessCheck = (typeof TABLED)[number]

/** A policy server (Postfix SMTPD_POLICY_README): `inet:HOST:PORT` or `unix:/PATH`. */
type PolicyServer = { readonly host: string; readonly port: number } | { readonly path: string }

/** A policy server, with the settings that stand with it in braces: `{ inet:HOST:PORT, timeout=10s, default_action=DUNNO }`. */
export interface PolicyService {
  readonly name: string
  readonly server: PolicyServer
  readonly timeout?: Duration
  readonly default_action?: string
  readonly policy_context?: string
}

export type Restriction = RestrictionRule & {
  /** True after warn_if_reject: a refusal is logged only. */
  readonly warnsOnly: boolean
}

export type RestrictionRule =
  | { readonly kind: PlainRestriction }
  | { readonly kind: AccessCheck; readonly tables: readonly TableSource[] }
  | ({ readonly kind: 'check_policy_service' } & PolicyService)
  /** A list of smtpd_restriction_classes. */
  | { readonly kind: 'class'; readonly name: string }

/** Restrictions of Postfix that are refused, each with the reason and the replacement. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^reject_unlisted_recipient$/, 'remove it: recipients that relay_recipient_maps lacks are refused after all lists'],
  [/^reject_unlisted_sender$/, 'write check_sender_access'],
  [/^reject_unauth_pipelining$/, 'remove it: smtpd_forbid_unauth_pipelining refuses such clients'],
  [/^sleep$/, 'remove it: smtpd_error_sleep_time delays the replies to clients that make errors'],
  [/^reject_multi_recipient_bounce$/, 'remove it: deferd accepts notices for several recipients'],
  [/^reject_(?:rbl|rhsbl)_/, 'deferd does not query block lists; use a policy server, or a filter before deferd'],
  [/^(?:reject|permit)_unverified_|^reject_unknown_(?:client|reverse|helo|host)/, 'use check_client_access, or a policy server'],
  [/helo|_mx_access$|_ns_access$|_a_access$|^check_(?:etrn|ccert|reverse)/, 'use check_client_access, or a policy server'],
  [/^reject_known_sender_login_mismatch$/, 'write reject_authenticated_sender_login_mismatch'],
]

/** Kind of a list of restrictions. `subject` is the check of a table that is given alone. */
export const restrictions =
  (subject: AccessCheck | null): Kind<readonly Restriction[]> =>
  (given) => {
    try {
      return { value: parseRestrictions(given, subject) }
    } catch (error) {
      return { wrong: errorMessage(error) }
    }
  }

/** Lists of restrictions by name: `[smtpd_restriction_classes]`. */
export const restrictionClasses: Kind<ReadonlyMap<string, readonly Restriction[]>> = (given) => {
  if (given === '') return { value: new Map() }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return {
      wrong:
        'expected a table; write [smtpd_restriction_classes] with lines such as insiders_only = ["check_sender_access texthash:/PATH", "reject"]',
    }
  try {
    return { value: new Map(Object.entries(given).map(([name, list]) => [className(name), parsedClass(name, list)])) }
  } catch (error) {
    return { wrong: errorMessage(error) }
  }
}

function className(name: string): string {
  if (!/^\w+$/.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a class; use letters, digits and _`)
  if (isRestriction(name)) throw new Error(`${name} is a restriction; name the class otherwise`)
  return name
}

function parsedClass(name: string, list: unknown): readonly Restriction[] {
  try {
    return parseRestrictions(list, null)
  } catch (cause) {
    throw new Error(`${name}: ${errorMessage(cause)}`, { cause })
  }
}

/** Throws an Error that quotes the first class that is not defined, and for classes that contain themselves. */
export function assertClasses(
  list: readonly Restriction[],
  classes: ReadonlyMap<string, readonly Restriction[]>,
  within: readonly string[] = [],
): void {
  for (const one of list) {
    if (one.kind !== 'class') continue
    const members = classes.get(one.name)
    if (members === undefined) throw new Error(notRestriction(one.name))
    if (within.includes(one.name))
      throw new Error(`smtpd_restriction_classes: ${[...within, one.name].join(' → ')} is a circular reference`)
    assertClasses(members, classes, [...within, one.name])
  }
}

/**
 * Parses a list of restrictions. A word that could be a class is taken for one, which `assertClasses` verifies. Without a subject, each table
 * needs a name. Throws an Error that quotes the first malformed one.
 */
export function parseRestrictions(given: unknown, subject: AccessCheck | null): readonly Restriction[] {
  if (typeof given === 'string') return parsedWords(splitOutsideBraces(given), subject)
  if (Array.isArray(given)) return given.flatMap((one: unknown) => parseRestrictions(one, subject))
  if (typeof given === 'object' && given !== null) return tomlChecks(given, subject)
  throw new Error(`expected a list of restrictions, got ${JSON.stringify(given)}; write names such as "check_sender_access texthash:/PATH"`)
}

/** The checks of `{ check_sender_access = { "ann@example.com" = "OK" } }`, or one check of a table of entries. */
function tomlChecks(table: object, subject: AccessCheck | null): readonly Restriction[] {
  const isNamed = Object.keys(table).some((key) => isTabled(key))
  const checks: readonly (readonly [string, unknown])[] = isNamed ? Object.entries(table) : [[subjectOf(subject), table]]
  return checks.map(([name, tables]) => ({ kind: tabledName(name), tables: parseTables(tables), warnsOnly: false }))
}

function subjectOf(subject: AccessCheck | null): AccessCheck {
  if (subject === null) throw new Error('a table alone has no subject here; write check_sender_access or the like before it')
  return subject
}

function parsedWords(words: readonly string[], subject: AccessCheck | null): readonly Restriction[] {
  const found: Restriction[] = []
  const rest = words.values()
  let warnsOnly = false
  for (const word of rest) {
    if (word.toLowerCase() === 'warn_if_reject') {
      warnsOnly = true
      continue
    }
    found.push({ ...ruleOf(word, subject, () => rest.next().value), warnsOnly })
    warnsOnly = false
  }
  if (warnsOnly) throw new Error('warn_if_reject is the last word; name the restriction after it')
  return found
}

/** `argument` returns the next word of the list. */
function ruleOf(word: string, subject: AccessCheck | null, argument: () => string | undefined): RestrictionRule {
  if (/^\w+:/.test(word)) return { kind: subjectOf(subject), tables: parseTables(word) }
  const name = word.toLowerCase()
  const plain = PLAIN.find((known) => known === name)
  if (plain !== undefined) return { kind: plain }
  if (name === 'check_policy_service') return { kind: name, ...policyService(argument() ?? '') }
  if (!isTabled(name) && remedyFor(name) === undefined && /^\w+$/.test(word)) return { kind: 'class', name: word }
  const check = tabledName(name)
  const table = argument()
  if (table === undefined) throw new Error(`${check} has no table; write ${check} texthash:/PATH`)
  return { kind: check, tables: parseTables(table) }
}

const isTabled = (name: string): name is AccessCheck => TABLED.some((known) => known === name)

function tabledName(name: string): AccessCheck {
  if (isTabled(name)) return name
  throw new Error(notRestriction(name))
}

const KNOWN: readonly string[] = [...PLAIN, ...TABLED, 'check_policy_service', 'warn_if_reject']
export const isRestriction = (name: string): boolean => KNOWN.includes(name.toLowerCase())
const remedyFor = (name: string): string | undefined => REMEDIES.find(([pattern]) => pattern.test(name))?.[1]
const notRestriction = (name: string): string =>
  `${JSON.stringify(name)} is not a restriction of deferd; ${remedyFor(name) ?? `write one of ${KNOWN.join(', ')}, or a class of smtpd_restriction_classes`}`

/** Restrictions that let no recipient pass to whom not every client may send. */
const CLOSING: ReadonlySet<RestrictionRule['kind']> = new Set([
  'reject_unauth_destination',
  'defer_unauth_destination',
  'reject',
  'defer',
  'defer_if_permit',
])

/** Throws an Error when strangers could relay: when no restriction refuses them, or one before it permits all clients. */
export function assertClosed(list: readonly Restriction[]): void {
  const end = list.findIndex(({ kind, warnsOnly }) => CLOSING.has(kind) && !warnsOnly)
  if (end >= 0 && list.slice(0, end).every(({ kind }) => kind !== 'permit')) return
  throw new Error(
    'smtpd_relay_restrictions would let every client relay to every domain; end the list with defer_unauth_destination or reject_unauth_destination',
  )
}

/** `inet:HOST:PORT`, `unix:/PATH`, or one of them in braces with settings. */
function policyService(text: string): PolicyService {
  if (!text.startsWith('{')) return policyServer(text)
  const [server = '', ...settings] = splitOutsideBraces(text.slice(1, -1))
  const pairs = settings.map((setting) => {
    const [, name = '', value = ''] = /^(?:\{\s*)?(\w+)\s*=\s*(.*?)(?:\s*\})?$/s.exec(setting) ?? []
    if (name === 'default_action' || name === 'policy_context') return [name, value] as const
    const timeout = name === 'timeout' ? parseDuration(withUnit(value, 's')) : undefined
    if (timeout !== undefined) return [name, timeout] as const
    throw new Error(
      `${JSON.stringify(setting)} is no setting of a policy server; write timeout=10s, default_action=DUNNO or policy_context=TEXT`,
    )
  })
  return { ...policyServer(server), ...Object.fromEntries(pairs), name: text }
}

function policyServer(name: string): PolicyService {
  const path = /^unix:(\/.+)$/.exec(name)?.[1]
  if (path !== undefined) return { name, server: { path } }
  const [, bracketed, plain, port = ''] = /^inet:(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(name) ?? []
  const host = bracketed ?? plain ?? ''
  if (host === '' || Number(port) < 1 || Number(port) > 65_535)
    throw new Error(`${JSON.stringify(name)} is not a policy server; write inet:127.0.0.1:10031 or unix:/PATH`)
  return { name, server: { host, port: Number(port) } }
}
