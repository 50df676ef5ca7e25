/** Actions of header_checks and body_checks (Postfix header_checks(5)): the results of their tables. Pure. */
import { normalizeAddress } from '../mail/address.ts'
import { constantOf, type ResultText } from '../patterns/result-text.ts'

/** Actions of header_checks, body_checks and smtp_header_checks, in lower case. OK is `dunno`. */
export type ActionName =
  | 'dunno'
  | 'ignore'
  | 'strip'
  | 'warn'
  | 'info'
  | 'pass'
  | 'prepend'
  | 'replace'
  | 'reject'
  | 'discard'
  | 'hold'
  | 'redirect'

export interface Action {
  readonly verb: ActionName
  /** Text after the verb, one character per octet. */
  readonly text: string
}

/** The part of a message that a table examines. */
export type Part = 'header' | 'body'

const VERBS: Readonly<Record<string, ActionName>> = {
  DUNNO: 'dunno',
  OK: 'dunno',
  IGNORE: 'ignore',
  STRIP: 'strip',
  WARN: 'warn',
  INFO: 'info',
  PASS: 'pass',
  PREPEND: 'prepend',
  REPLACE: 'replace',
  REJECT: 'reject',
  DISCARD: 'discard',
  HOLD: 'hold',
  REDIRECT: 'redirect',
}

/** Verbs of checks while mail is accepted. */
export const ARRIVAL_VERBS: ReadonlySet<ActionName> = new Set(Object.values(VERBS))
/** Verbs of checks while mail is sent (Postfix smtp_header_checks). */
export const DELIVERY_VERBS: ReadonlySet<ActionName> = new Set<ActionName>([
  'dunno',
  'ignore',
  'strip',
  'warn',
  'info',
  'prepend',
  'replace',
])

const REMEDIES: Readonly<Record<string, string>> = {
  FILTER: 'deferd has no content filter; remove the rule, or filter in a relay before deferd',
  BCC: 'deferd adds no recipients by content; use always_bcc, sender_bcc_maps or recipient_bcc_maps',
  DELAY: 'write HOLD, and release the mail later',
}

/** A header field as an action may insert it: a name of printable characters, a colon. */
const FIELD = /^[!-9;-~]+[ \t]*:/

/** Parses the result of a lookup. Undefined for a text that is no action. */
export function parseAction(result: string): Action | undefined {
  const [, name = '', text = ''] = /^(\S*)\s*([^]*)$/.exec(result) ?? []
  const verb = VERBS[name.toUpperCase()]
  return verb === undefined ? undefined : { verb, text }
}

/** Reason why an action cannot be taken; undefined for one that can. */
export function problemOf({ verb, text }: Action, part: Part): string | undefined {
  switch (verb) {
    case 'prepend':
    case 'replace':
      if (text === '') return `${verb.toUpperCase()} has no text; write it after the action`
      return part === 'header' && !FIELD.test(text) ? `${JSON.stringify(text)} is no header field; write NAME: VALUE` : undefined
    case 'redirect':
      return redirectAddress(text) === undefined ? `${JSON.stringify(text)} is no address; write REDIRECT user@example.com` : undefined
    case 'reject':
      return /^[245]\.\d+\.\d+(?:\s|$)/.test(text) && text.startsWith('2') ? 'a refusal has a status 4.x.x or 5.x.x; correct it' : undefined
    case 'dunno':
    case 'ignore':
    case 'strip':
    case 'warn':
    case 'info':
    case 'pass':
    case 'discard':
    case 'hold':
      return undefined
  }
}

/** The address of REDIRECT; undefined for another text. */
export function redirectAddress(text: string): string | undefined {
  const address = Buffer.from(text.trim(), 'latin1').toString()
  return /^[^\s<>@]+@[^\s<>@]+$/.test(address) ? normalizeAddress(address) : undefined
}

/**
 * Verifies a result as it is written. Throws an Error when it is no action of `verbs`, or when its text cannot be used. A text with
 * groups of the match is verified when it is used.
 */
export function requireAction(result: ResultText, verbs: ReadonlySet<ActionName>, part: Part): ResultText {
  const [start] = result.parts
  const name = /^\S*/.exec(String(start))?.[0].toUpperCase() ?? ''
  const action = parseAction(constantOf(result) ?? `${String(start)} `)
  if (action === undefined || !verbs.has(action.verb))
    throw new Error(`${name === '' ? 'nothing' : name} is no action: ${remedyFor(name, verbs)}`)
  const problem = result.highest === 0 ? problemOf(action, part) : undefined
  if (problem !== undefined) throw new Error(problem)
  return result
}

function remedyFor(name: string, verbs: ReadonlySet<ActionName>): string {
  const known = Object.keys(VERBS).filter((word) => verbs.has(VERBS[word]!))
  return REMEDIES[name] ?? `write one of ${known.join(', ')}`
}
