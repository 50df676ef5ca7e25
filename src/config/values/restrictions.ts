/**
 * Parses lists of access restrictions (Postfix SMTPD_ACCESS_README): names with their arguments, separated by commas or blanks, or a
 * TOML list of them. A TOML table, or a table alone (`texthash:/PATH`), is an access table for the subject of the list.
 */
import { errorMessage } from '../../system/caught-error.ts'
import { parseTables, splitOutsideBraces, type TableSource } from './lookup-tables.ts'
import type { Kind } from './values.ts'

/** Restrictions without an argument. */
const PLAIN = [
  'permit',
  'reject',
  'defer',
  'permit_mynetworks',
  'permit_sasl_authenticated',
  'permit_auth_destination',
  'reject_unauth_destination',
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
export type PolicyServer = { readonly host: string; readonly port: number } | { readonly path: string }

export type Restriction = RestrictionRule & {
  /** True after warn_if_reject: a refusal is logged only. */
  readonly warnsOnly: boolean
}

export type RestrictionRule =
  | { readonly kind: PlainRestriction }
  | { readonly kind: AccessCheck; readonly tables: readonly TableSource[] }
  | { readonly kind: 'check_policy_service'; readonly server: PolicyServer; readonly name: string }

/** Restrictions of Postfix that are refused, each with the reason and the replacement. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^defer_unauth_destination$/, 'remove it: mail of strangers to other domains is always deferred after smtpd_sender_restrictions'],
  [/^reject_unlisted_/, 'deferd relays all mail and has no lists of recipients; write check_recipient_access'],
  [/^reject_(?:rbl|rhsbl)_/, 'deferd does not query block lists; use a policy server, or a filter before deferd'],
  [/^(?:reject|permit)_unverified_|^reject_unknown_(?:client|reverse|helo|host)/, 'use check_client_access, or a policy server'],
  [/helo|_mx_access$|_ns_access$|_a_access$|^check_(?:etrn|ccert|reverse)/, 'use check_client_access, or a policy server'],
  [/^reject_known_sender_login_mismatch$/, 'write reject_authenticated_sender_login_mismatch'],
]

/** Kind of a list of restrictions. `subject` is the check of a table that is given alone. */
export const restrictions =
  (subject: AccessCheck): Kind<readonly Restriction[]> =>
  (given) => {
    try {
      return { value: parseRestrictions(given, subject) }
    } catch (error) {
      return { wrong: errorMessage(error) }
    }
  }

/** Parses a list of restrictions. Throws an Error that quotes the first malformed one. */
export function parseRestrictions(given: unknown, subject: AccessCheck): readonly Restriction[] {
  if (typeof given === 'string') return parsedWords(splitOutsideBraces(given), subject)
  if (Array.isArray(given)) return given.flatMap((one: unknown) => parseRestrictions(one, subject))
  if (typeof given === 'object' && given !== null) return tomlChecks(given, subject)
  throw new Error(`expected a list of restrictions, got ${JSON.stringify(given)}; write names such as "check_sender_access texthash:/PATH"`)
}

/** The checks of `{ check_sender_access = { "ann@example.com" = "OK" } }`, or one check of a table of entries. */
function tomlChecks(table: object, subject: AccessCheck): readonly Restriction[] {
  const isNamed = Object.keys(table).some((key) => isTabled(key))
  const checks: readonly (readonly [string, unknown])[] = isNamed ? Object.entries(table) : [[subject, table]]
  return checks.map(([name, tables]) => ({ kind: tabledName(name), tables: parseTables(tables), warnsOnly: false }))
}

function parsedWords(words: readonly string[], subject: AccessCheck): readonly Restriction[] {
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
function ruleOf(word: string, subject: AccessCheck, argument: () => string | undefined): RestrictionRule {
  if (/^\w+:/.test(word)) return { kind: subject, tables: parseTables(word) }
  const name = word.toLowerCase()
  const plain = PLAIN.find((known) => known === name)
  if (plain !== undefined) return { kind: plain }
  if (name === 'check_policy_service') return { kind: name, ...policyServer(argument() ?? '') }
  const check = tabledName(name)
  const table = argument()
  if (table === undefined) throw new Error(`${check} has no table; write ${check} texthash:/PATH`)
  return { kind: check, tables: parseTables(table) }
}

const isTabled = (name: string): name is AccessCheck => TABLED.some((known) => known === name)

function tabledName(name: string): AccessCheck {
  if (isTabled(name)) return name
  const remedy = REMEDIES.find(([pattern]) => pattern.test(name))?.[1]
  const known = [...PLAIN, ...TABLED, 'check_policy_service', 'warn_if_reject'].join(', ')
  throw new Error(`${JSON.stringify(name)} is not a restriction of deferd; ${remedy ?? `write one of ${known}`}`)
}

function policyServer(name: string): { readonly server: PolicyServer; readonly name: string } {
  const path = /^unix:(\/.+)$/.exec(name)?.[1]
  if (path !== undefined) return { name, server: { path } }
  const [, bracketed, plain, port = ''] = /^inet:(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(name) ?? []
  const host = bracketed ?? plain ?? ''
  if (host === '' || Number(port) < 1 || Number(port) > 65_535)
    throw new Error(`${JSON.stringify(name)} is not a policy server; write inet:127.0.0.1:10031 or unix:/PATH`)
  return { name, server: { host, port: Number(port) } }
}
