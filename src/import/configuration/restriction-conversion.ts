/** Converts lists of access restrictions and their classes. Restrictions that deferd does not have become comments. */
import { parseAccessResult, type RestrictionClasses } from '../../access/access-action.ts'
import type { ListName } from '../../access/access-tables.ts'
import { assertClosed, parseRestrictions } from '../../config/values/restrictions.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { parseTexthash } from '../../rewriting/texthash.ts'
import { logicalLines, type PostfixParameters } from './main-cf.ts'
import { membersOf } from './lookup-sources.ts'
import type { MasterService } from './master-cf.ts'
import { commentedOut } from './pattern-conversion.ts'
import { convertedTables, type TableContext } from './table-conversion.ts'

export interface RestrictionContext extends TableContext {
  readonly parameters: PostfixParameters
  readonly services: readonly MasterService[]
}

/** Restrictions with an argument other than a table. */
const WITH_ARGUMENT = /^(?:check_policy_service|reject_(?:rbl|rhsbl)_\w+|permit_dnswl_client|permit_rhswl_client|sleep)$/

/** Names of the classes of main.cf. */
export const classNames = (parameters: PostfixParameters): readonly string[] => parameters.words('smtpd_restriction_classes')

/** Sets a list to its restrictions that deferd has, in order. */
export function convertRestrictions(name: ListName, value: string, context: RestrictionContext): void {
  const kept = listOf(name, value, context)
  if (kept.length > 0) context.draft.set(name, kept)
}

const PERMISSION = 'permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination'

/**
 * Sets smtpd_relay_restrictions. An empty list of Postfix stands for the beginning of smtpd_recipient_restrictions, up to the restriction that
 * refuses strangers. The relay never gets more open.
 */
export function convertRelayRestrictions(context: RestrictionContext, isAlwaysWritten = false): void {
  const name = 'smtpd_relay_restrictions'
  const { draft, parameters } = context
  const value = parameters.get(name)
  const recipients = listOf('smtpd_recipient_restrictions', parameters.get('smtpd_recipient_restrictions'), {
    ...context,
    draft: draft.blank,
  })
  const kept = value === '' ? recipients.slice(0, 1 + recipients.findIndex((text) => CLOSES.test(text))) : listOf(name, value, context)
  const usable = value === '' ? kept.filter((text) => !text.includes('check_policy_service')) : kept
  if (value === '' && usable.length === 0) return
  if (value === '' && usable.some((text) => text.includes(':')))
    draft.note(`${name}: the beginning of smtpd_recipient_restrictions; actions such as PREPEND in its tables are taken in both lists`)
  if (usable.length < kept.length) draft.note(`${name}: policy servers before reject_unauth_destination do not permit relaying`)
  const closed = isClosed(usable) ? usable : [...usable.filter((text) => text !== 'permit'), 'defer_unauth_destination']
  if (closed.join(', ') !== PERMISSION || isAlwaysWritten) draft.set(name, closed)
}

const CLOSES = /^(?:reject|defer|defer_if_permit|(?:reject|defer)_unauth_destination)$/

function isClosed(list: readonly string[]): boolean {
  try {
    assertClosed(parseRestrictions(list, 'check_recipient_access'))
    return true
  } catch {
    // The caller closes the list.
    return false
  }
}

/** Sets the table of classes. */
export function convertClasses(context: RestrictionContext): void {
  const { draft, parameters } = context
  for (const name of classNames(parameters)) {
    const kept = listOf(name, parameters.get(name), context)
    if (kept.length > 0) draft.classes.set(name, kept)
    else draft.note(`smtpd_restriction_classes: ${name} has no restriction that deferd has, and is left out with the entries that name it`)
  }
}

/** The restrictions of a list that deferd has. */
function listOf(name: string, value: string, context: RestrictionContext): readonly string[] {
  const words = membersOf(value).values()
  const kept: string[] = []
  let prefix = ''
  for (const word of words) {
    if (word === 'warn_if_reject') {
      prefix = 'warn_if_reject '
      continue
    }
    const converted = restrictionOf(name, word, { context, argument: () => words.next().value ?? '' })
    if (converted !== null) kept.push(prefix + converted)
    prefix = ''
  }
  return kept
}

/** One restriction in deferd's syntax; null when it is left out. */
function restrictionOf(
  name: string,
  word: string,
  { context, argument }: { readonly context: RestrictionContext; readonly argument: () => string },
): string | null {
  if (/^check_\w+_access$/.test(word) || /^\w+:/.test(word)) {
    const isBare = /^\w+:/.test(word)
    const usable = (text: string): string => usableResults(name, text, context)
    const verify = (result: string): void => void parseAccessResult(result, classesOf(context))
    const [table] = convertedTables(name, isBare ? word : argument(), { ...context, usable, verify })
    return table === undefined ? null : verified(name, isBare ? table : `${word} ${table}`, context)
  }
  if (word.endsWith('sender_login_mismatch') && !hasLogins(context)) {
    context.draft.note(`${name}: ${word} is left out: Postfix does not apply it, as smtpd_sasl_auth_enable is not yes`)
    return null
  }
  if (word === 'check_policy_service') return policyOf(name, argument(), context)
  const text = WITH_ARGUMENT.test(word) ? `${word} ${argument()}` : word
  return verified(name, text, context)
}

/** True when some service accepts logins. */
const hasLogins = ({ parameters, services }: RestrictionContext): boolean =>
  parameters.isYes('smtpd_sasl_auth_enable') ||
  services.some(({ overrides }) => parameters.under(overrides).isYes('smtpd_sasl_auth_enable'))

/** Settings of a policy server in braces that deferd has. */
const POLICY_SETTING = /^(?:\{\s*)?(?:timeout|default_action|policy_context)\s*=/

function policyOf(name: string, argument: string, context: RestrictionContext): string | null {
  const { draft, parameters, services } = context
  const members = argument.startsWith('{') ? membersOf(argument.slice(1, -1)) : [argument]
  const [given = '', ...settings] = members
  const relative = /^unix:(?!\/)(.+)$/.exec(given)?.[1]
  const isOfPostfix = services.some((service) => service.type === 'unix' && service.name === relative?.replace(/^(?:private|public)\//, ''))
  if (isOfPostfix) {
    draft.note(
      `${name}: check_policy_service ${given} is left out: Postfix starts this server; run it as a service of its own, and write inet:HOST:PORT or unix:/PATH`,
    )
    return null
  }
  const server = relative === undefined ? given : `unix:${parameters.get('queue_directory')}/${relative}`
  if (server !== given) draft.note(`${name}: ${server} is a socket in the spool of Postfix: move it before Postfix is removed`)
  const kept = settings.filter((setting) => POLICY_SETTING.test(setting))
  if (kept.length < settings.length) {
    const others = settings.filter((setting) => !kept.includes(setting))
    draft.note(`${name}: ${server}: ${others.join(', ')} is left out: deferd asks twice, and keeps connections for 5 minutes`)
  }
  return verified(name, `check_policy_service ${kept.length === 0 ? server : `{ ${[server, ...kept].join(', ')} }`}`, context)
}

const classesOf = ({ parameters }: RestrictionContext): RestrictionClasses => new Map(classNames(parameters).map((one) => [one, []]))

/** The text of an access table. Entries with results that deferd has not become comments. */
function usableResults(name: string, text: string, context: RestrictionContext): string {
  const { draft } = context
  const classes = classesOf(context)
  const left = new Set<number>()
  for (const { text: line, number } of logicalLines(text)) {
    const [[key, result] = ['', '']] = parseTexthash(line).entries
    try {
      if (key !== '') parseAccessResult(result, classes)
    } catch (error) {
      left.add(number)
      draft.note(`${name}: ${key} ${result}: the entry is left out: ${errorMessage(error)}`)
    }
  }
  return left.size === 0 ? text : commentedOut(text, left)
}

/** Lists of Postfix for commands other than RCPT. */
export const OTHER_LISTS = ['smtpd_helo_restrictions', 'smtpd_data_restrictions', 'smtpd_end_of_data_restrictions'] as const

/** Turns each restriction of a list in OTHER_LISTS into a comment that names a possible list: deferd has restrictions at RCPT only. */
export function noteRestrictions(name: string, value: string, { draft }: TableContext): void {
  const words = membersOf(value).values()
  let prefix = ''
  for (const word of words) {
    if (word === 'warn_if_reject') {
      prefix = 'warn_if_reject '
      continue
    }
    const hasArgument = WITH_ARGUMENT.test(word) || /^check_\w+_access$/.test(word)
    const text = `${prefix}${word}${hasArgument ? ` ${words.next().value ?? ''}` : ''}`
    prefix = ''
    // A list may end with a restriction that permits everything, which has no effect.
    if (!/^permit(?:$|_)/.test(text)) draft.note(`${name}: ${text} is left out: ${insteadOf(text)}`)
  }
}

const AT_RCPT = 'deferd restricts at RCPT only; write it into smtpd_recipient_restrictions if it may apply there'

function insteadOf(text: string): string {
  const [, name = text] = /^(?:warn_if_reject )?(\S+)/.exec(text) ?? []
  try {
    // Only the syntax is checked, with a table of deferd: Postfix's table may be of a type that deferd lacks.
    parseRestrictions(/^check_\w+_access$/.test(name) ? `${name} inline:{x=OK}` : text, 'check_recipient_access')
    return AT_RCPT
  } catch (error) {
    return asReason(error)
  }
}

/** A remedy as the reason of a restriction that is already removed. */
const asReason = (error: unknown): string =>
  errorMessage(error)
    .replace(/^"[^"]*" is not a restriction of deferd; /, '')
    .replace(/^remove it: /, '')

function verified(name: string, text: string, { draft, parameters }: RestrictionContext): string | null {
  try {
    const unknown = parseRestrictions(text, 'check_recipient_access').find((one) => one.kind === 'class')
    if (unknown?.kind !== 'class' || classNames(parameters).includes(unknown.name)) return text
    draft.note(`${name}: ${text} is left out: it is no restriction of deferd, and no class`)
  } catch (error) {
    draft.note(`${name}: ${text} is left out: ${asReason(error)}`)
  }
  return null
}
