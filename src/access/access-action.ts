/** Actions of access tables and of policy servers (Postfix access(5), SMTPD_POLICY_README). Pure. */
import { normalizeAddress } from '../mail/address.ts'
import { blankControls } from '../mail/smtp-reply.ts'
import { assertClasses, isRestriction, parseRestrictions, type PlainRestriction, type Restriction } from '../config/values/restrictions.ts'
import { errorMessage } from '../system/caught-error.ts'

/** A refusal. `status` and `text` are undefined where the reply has a text of its own. */
export interface Refusal {
  readonly code: number
  readonly status: string
  readonly text: string
}

export type AccessAction =
  /** Ends the list of restrictions, and permits. */
  | { readonly kind: 'ok' }
  /** Goes on with the next restriction. */
  | { readonly kind: 'dunno' }
  | { readonly kind: 'refuse'; readonly refusal: Refusal }
  /** Refuses for now, unless a later restriction refuses for good. */
  | { readonly kind: 'defer-if-permit'; readonly refusal: Refusal }
  /** Accepts the message and delivers nothing. */
  | { readonly kind: 'discard'; readonly text: string }
  | { readonly kind: 'hold'; readonly text: string }
  | { readonly kind: 'redirect'; readonly address: string }
  /** Adds a recipient. */
  | { readonly kind: 'bcc'; readonly address: string }
  /** Adds a header field before all others. */
  | { readonly kind: 'prepend'; readonly field: string }
  | { readonly kind: 'note'; readonly level: 'warn' | 'info'; readonly text: string }

const ACCESS_DENIED = 'Access denied'
const UNAVAILABLE = 'Service unavailable'

const REMEDIES: Readonly<Record<string, string>> = {
  FILTER: 'deferd has no content filter; filter in a relay before deferd',
  RELAY: 'name the destination in [transport_maps]',
  DEFER_IF_REJECT: 'write DEFER or REJECT',
  STRIP: 'write smtp_header_checks',
}

/** A header field: a name of printable characters, a colon, a value. */
const FIELD = /^[!-9;-~]+[ \t]*:[^\r\n]*$/
const ADDRESS = /^[^\s<>@]+@[^\s<>@]+$/

/** A list of restrictions that a result names. Tables and policy servers in it need a class. */
export interface NamedRestrictions {
  readonly kind: 'restrictions'
  readonly restrictions: readonly Extract<Restriction, { kind: PlainRestriction | 'class' }>[]
}

/** The classes of smtpd_restriction_classes by name. */
export type RestrictionClasses = ReadonlyMap<string, readonly Restriction[]>

/**
 * Parses the result of a lookup, or of a policy server: an action, or restrictions and classes, separated by commas or blanks. Throws an Error
 * that quotes a result that is neither.
 */
export function parseAccessResult(result: string, classes: RestrictionClasses): AccessAction | NamedRestrictions {
  const words = restrictionsIn(result, classes)
  if (words === undefined) return parseAccessAction(result)
  const restrictions = words.flatMap((one) => ('tables' in one || one.kind === 'check_policy_service' ? [] : [one]))
  if (restrictions.length < words.length)
    throw new Error(`${JSON.stringify(result)} names a table or a server; write a class of smtpd_restriction_classes`)
  return { kind: 'restrictions', restrictions }
}

/** The restrictions of a result; undefined for one that begins with another word. */
function restrictionsIn(result: string, classes: RestrictionClasses): readonly Restriction[] | undefined {
  const [first = ''] = result.trim().split(/\s/)
  const [name = ''] = first.split(',')
  if (ACTION_WORD.test(first) || (!isRestriction(name) && !classes.has(name))) return undefined
  try {
    const list = parseRestrictions(result, null)
    assertClasses(list, classes)
    return list
  } catch (cause) {
    throw new Error(`${JSON.stringify(result)}: ${errorMessage(cause)}`, { cause })
  }
}

/** Words that begin an action, though restrictions have the same names. */
const ACTION_WORD = /^(?:permit|reject|defer|defer_if_permit)$/i

/** Parses an action. Throws an Error that quotes a text that is none. */
export function parseAccessAction(result: string): AccessAction {
  const [, word = '', rest = ''] = /^(\S*)\s*([^]*)$/.exec(result.trim()) ?? []
  if (/^[45]\d\d$/.test(word)) return { kind: 'refuse', refusal: refusalOf(Number(word), `${word.charAt(0)}.7.1`, rest) }
  if (/^\d+$/.test(word)) return { kind: 'ok' }
  return named(word.toUpperCase(), rest) ?? unknown(word)
}

function unknown(word: string): never {
  const remedy = REMEDIES[word.toUpperCase()]
  const known =
    'OK, DUNNO, REJECT, DEFER, DEFER_IF_PERMIT, 4NN, 5NN, HOLD, DISCARD, REDIRECT, BCC, PREPEND, WARN, INFO, restrictions such as permit_mynetworks, or classes of smtpd_restriction_classes'
  throw new Error(`${word === '' ? 'an empty result' : JSON.stringify(word)} is no action: ${remedy ?? `write one of ${known}`}`)
}

function named(verb: string, rest: string): AccessAction | undefined {
  switch (verb) {
    case 'OK':
    case 'PERMIT':
      return { kind: 'ok' }
    case 'DUNNO':
      return { kind: 'dunno' }
    case 'REJECT':
      return { kind: 'refuse', refusal: refusalOf(554, '5.7.1', rest) }
    case 'DEFER':
      return { kind: 'refuse', refusal: refusalOf(450, '4.7.1', rest) }
    case 'DEFER_IF_PERMIT':
      return { kind: 'defer-if-permit', refusal: refusalOf(450, '4.7.1', rest, UNAVAILABLE) }
    case 'DISCARD':
      return { kind: 'discard', text: rest }
    case 'HOLD':
      return { kind: 'hold', text: rest }
    case 'REDIRECT':
      return { kind: 'redirect', address: addressIn(verb, rest) }
    case 'BCC':
      return { kind: 'bcc', address: addressIn(verb, rest) }
    case 'PREPEND':
      if (!FIELD.test(rest)) throw new Error(`${JSON.stringify(rest)} is no header field; write PREPEND Name: value`)
      return { kind: 'prepend', field: rest }
    case 'WARN':
      return { kind: 'note', level: 'warn', text: rest }
    case 'INFO':
      return { kind: 'note', level: 'info', text: rest }
  }
  return undefined
}

/** A refusal with a text, which may begin with an enhanced status code of the class of the reply code (Postfix dsn_split). */
function refusalOf(code: number, status: string, rest: string, byDefault = ACCESS_DENIED): Refusal {
  const [given, digits, text] = /^[245](\.\d{1,3}\.\d{1,3})(?:\s+|$)([^]*)/.exec(rest)?.slice(0, 3) ?? [undefined, '', rest]
  const own = given === undefined ? status : `${String(code).charAt(0)}${digits}`
  return { code, status: own, text: text === '' || text === undefined ? byDefault : blankControls(text) }
}

function addressIn(verb: string, text: string): string {
  const address = text.trim()
  if (!ADDRESS.test(address)) throw new Error(`${JSON.stringify(address)} is no address; write ${verb} user@example.com`)
  return normalizeAddress(address)
}
