/** Opens the access tables of all lists of restrictions, and smtpd_sender_login_maps. */
import type { Config } from '../config/options.ts'
import type { AccessCheck, Restriction, RestrictionRule } from '../config/values/restrictions.ts'
import { constantOf, type ResultText } from '../patterns/result-text.ts'
import { openTable, type LookupTable } from '../rewriting/lookup-table.ts'
import { readText } from '../rewriting/tables.ts'
import { errorMessage } from '../system/caught-error.ts'
import { parseAccessResult, type RestrictionClasses } from './access-action.ts'

/** Lists of restrictions, in the order in which RCPT applies them. */
export const LIST_NAMES = [
  'smtpd_client_restrictions',
  'smtpd_sender_restrictions',
  'smtpd_relay_restrictions',
  'smtpd_recipient_restrictions',
] as const
export type ListName = (typeof LIST_NAMES)[number]

export type OpenRestriction = { readonly warnsOnly: boolean } & (
  | Exclude<RestrictionRule, { kind: AccessCheck }>
  | { readonly kind: AccessCheck; readonly table: LookupTable }
)

export interface AccessTables {
  readonly lists: Readonly<Record<ListName, readonly OpenRestriction[]>>
  /** smtpd_restriction_classes by name. */
  readonly classes: ReadonlyMap<string, readonly OpenRestriction[]>
  /** Null without smtpd_sender_login_maps. */
  readonly logins: LookupTable | null
  /** Null without relay_recipient_maps. */
  readonly relayRecipients: LookupTable | null
}

export interface OpenedAccess {
  readonly access: AccessTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

export type AccessSettings = Pick<
  Config,
  ListName | 'smtpd_sender_login_maps' | 'smtpd_restriction_classes' | 'relay_recipient_maps' | 'smtpd_policy_service_default_action'
>

/** Opens the tables. Throws an Error that names the parameter, and the path or value of the first mistake. */
export function openAccess(config: AccessSettings): OpenedAccess {
  const warnings: string[] = []
  const { smtpd_restriction_classes: classes } = config
  const opened = (name: string, list: readonly Restriction[]) =>
    list.map((restriction) => openRestriction(name, restriction, { classes, warnings }))
  const lists = {
    smtpd_client_restrictions: opened('smtpd_client_restrictions', config.smtpd_client_restrictions),
    smtpd_sender_restrictions: opened('smtpd_sender_restrictions', config.smtpd_sender_restrictions),
    smtpd_relay_restrictions: opened('smtpd_relay_restrictions', config.smtpd_relay_restrictions),
    smtpd_recipient_restrictions: opened('smtpd_recipient_restrictions', config.smtpd_recipient_restrictions),
  }
  named('smtpd_policy_service_default_action', () => void parseAccessResult(config.smtpd_policy_service_default_action, classes))
  const openedClasses = new Map([...classes].map(([name, list]) => [name, opened(`smtpd_restriction_classes: ${name}`, list)]))
  const plain = (name: 'smtpd_sender_login_maps' | 'relay_recipient_maps'): LookupTable | null => {
    if (config[name].length === 0) return null
    const { table, warnings: others } = openTable(name, config[name], { readFile: readText, substitutes: true })
    warnings.push(...others)
    return table
  }
  const [logins, relayRecipients] = [plain('smtpd_sender_login_maps'), plain('relay_recipient_maps')]
  return { access: { lists, classes: openedClasses, logins, relayRecipients }, warnings }
}

/** Throws errors of `verify` with the name of the parameter. */
function named(name: string, verify: () => void): void {
  try {
    verify()
  } catch (cause) {
    throw new Error(`${name}: ${errorMessage(cause)}`, { cause })
  }
}

function openRestriction(
  name: string,
  restriction: Restriction,
  { classes, warnings }: { readonly classes: RestrictionClasses; readonly warnings: string[] },
): OpenRestriction {
  const verify = (value: string): void => void parseAccessResult(value, classes)
  if (restriction.kind === 'check_policy_service' && restriction.default_action !== undefined)
    named(name, () => verify(restriction.default_action ?? ''))
  if (!('tables' in restriction)) return restriction
  const { kind, tables, warnsOnly } = restriction
  // A result of patterns with groups of the match is verified when it is used.
  const accept = (result: ResultText): ResultText => (result.highest === 0 ? (verify(constantOf(result) ?? ''), result) : result)
  const opened = openTable(name, tables, { readFile: readText, substitutes: true, accept, verify })
  warnings.push(...opened.warnings)
  return { kind, warnsOnly, table: opened.table }
}
