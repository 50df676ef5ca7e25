/** Converts lists of access restrictions. Restrictions that deferd does not have become comments. */
import type { ListName } from '../../access/access-tables.ts'
import { parseRestrictions } from '../../config/values/restrictions.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { membersOf } from './lookup-sources.ts'
import { convertedTables, type TableContext } from './table-conversion.ts'

/** Restrictions with an argument other than a table. */
const WITH_ARGUMENT = /^(?:check_policy_service|reject_(?:rbl|rhsbl)_\w+|permit_dnswl_client|permit_rhswl_client|sleep)$/

/** Sets a list to its restrictions that deferd has, in order. */
export function convertRestrictions(name: ListName, value: string, context: TableContext): void {
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
  if (kept.length > 0) context.draft.set(name, kept)
}

/** One restriction in deferd's syntax; null when it is left out. */
function restrictionOf(
  name: ListName,
  word: string,
  { context, argument }: { readonly context: TableContext; readonly argument: () => string },
): string | null {
  const text = WITH_ARGUMENT.test(word) ? `${word} ${argument()}` : word
  if (/^check_\w+_access$/.test(word) || /^\w+:/.test(word)) {
    const [table] = convertedTables(name, /^\w+:/.test(word) ? word : argument(), context)
    return table === undefined ? null : verified(name, /^\w+:/.test(word) ? table : `${word} ${table}`, context)
  }
  // Mail of strangers to other domains is always deferred, also without the restriction.
  return word === 'defer_unauth_destination' ? null : verified(name, text, context)
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
  if (text === 'reject_unauth_pipelining') return 'smtpd_forbid_unauth_pipelining refuses such clients'
  if (text === 'reject_multi_recipient_bounce') return 'deferd accepts notices for several recipients'
  const [, name = text] = /^(?:warn_if_reject )?(\S+)/.exec(text) ?? []
  try {
    // Only the syntax is checked, with a table of deferd: Postfix's table may be of a type that deferd lacks.
    parseRestrictions(/^check_\w+_access$/.test(name) ? `${name} inline:{x=OK}` : text, 'check_recipient_access')
    return AT_RCPT
  } catch (error) {
    return errorMessage(error).replace(/^"[^"]*" is not a restriction of deferd; /, '')
  }
}

function verified(name: ListName, text: string, { draft }: TableContext): string | null {
  try {
    parseRestrictions(text, 'check_recipient_access')
    return text
  } catch (error) {
    draft.note(`${name}: ${text} is left out: ${errorMessage(error).replace(/^"[^"]*" is not a restriction of deferd; /, '')}`)
    return null
  }
}
