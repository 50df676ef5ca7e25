/** Converts lists of access restrictions. Restrictions that deferd does not have become comments. */
import type { ListName } from '../../access/access-tables.ts'
import { parseRestrictions } from '../../config/values/restrictions.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { membersOf } from './lookup-sources.ts'
import { convertedTables, type TableContext } from './table-conversion.ts'

/** Restrictions with an argument that is no table. */
const WITH_ARGUMENT = /^(?:check_policy_service|reject_(?:rbl|rhsbl)_\w+|permit_dnswl_client|permit_rhswl_client|sleep)$/

/** Sets a list to the restrictions that deferd has, in their order. */
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
  // Mail of strangers to other domains is always deferred.
  return word === 'defer_unauth_destination' ? null : verified(name, text, context)
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
