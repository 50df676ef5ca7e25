/** Opens the access tables of all lists of restrictions, and smtpd_sender_login_maps. */
import type { Config } from '../config/options.ts'
import { isPatterns, type TableSource } from '../config/values/lookup-tables.ts'
import type { AccessCheck, Restriction, RestrictionRule } from '../config/values/restrictions.ts'
import { constantOf, type ResultText } from '../patterns/result-text.ts'
import { openTable, type LookupTable } from '../rewriting/lookup-table.ts'
import { readText } from '../rewriting/tables.ts'
import { errorMessage } from '../system/caught-error.ts'
import { parseAccessAction } from './access-action.ts'

/** Lists of restrictions, in the order in which RCPT applies them. */
export const LIST_NAMES = ['smtpd_client_restrictions', 'smtpd_sender_restrictions', 'smtpd_recipient_restrictions'] as const
export type ListName = (typeof LIST_NAMES)[number]

export type OpenRestriction = { readonly warnsOnly: boolean } & (
  | Exclude<RestrictionRule, { kind: AccessCheck }>
  | { readonly kind: AccessCheck; readonly table: LookupTable }
)

export interface AccessTables {
  readonly lists: Readonly<Record<ListName, readonly OpenRestriction[]>>
  /** Null without smtpd_sender_login_maps. */
  readonly logins: LookupTable | null
}

export interface OpenedAccess {
  readonly access: AccessTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

/** Opens the tables. Throws an Error that names the parameter, and the path or value of the first mistake. */
export function openAccess(config: Pick<Config, ListName | 'smtpd_sender_login_maps'>): OpenedAccess {
  const warnings: string[] = []
  const opened = (name: ListName) => config[name].map((restriction) => openRestriction(name, restriction, warnings))
  const lists = {
    smtpd_client_restrictions: opened('smtpd_client_restrictions'),
    smtpd_sender_restrictions: opened('smtpd_sender_restrictions'),
    smtpd_recipient_restrictions: opened('smtpd_recipient_restrictions'),
  }
  const { smtpd_sender_login_maps: sources } = config
  const logins = sources.length === 0 ? null : openTable('smtpd_sender_login_maps', sources, { readFile: readText, substitutes: true })
  return { access: { lists, logins: logins?.table ?? null }, warnings: [...warnings, ...(logins?.warnings ?? [])] }
}

function openRestriction(name: ListName, restriction: Restriction, warnings: string[]): OpenRestriction {
  if (!('tables' in restriction)) return restriction
  const { kind, tables, warnsOnly } = restriction
  for (const source of tables) verifyActions(name, source)
  const opened = openTable(name, tables, { readFile: readText, substitutes: true, accept: requireAction })
  warnings.push(...opened.warnings)
  return { kind, warnsOnly, table: opened.table }
}

/** Verifies the result of a pattern. One with groups of the match is verified when it is used. */
function requireAction(result: ResultText): ResultText {
  if (result.highest === 0) parseAccessAction(constantOf(result) ?? '')
  return result
}

/** Verifies the values that the configuration contains itself. Those of text files are verified when they are used. */
function verifyActions(name: ListName, source: TableSource): void {
  if (isPatterns(source) || source.kind === 'texthash') return
  for (const value of source.kind === 'static' ? [source.value] : source.entries.values()) {
    try {
      parseAccessAction(value)
    } catch (error) {
      throw new Error(`${name}: ${errorMessage(error)}`, { cause: error })
    }
  }
}
