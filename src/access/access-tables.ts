/** Opens the access tables of all lists of restrictions, and smtpd_sender_login_maps. */
import type { Config, ListenerSettings } from '../config/options.ts'
import { atListener } from '../config/smtpd-listeners.ts'
import type { TableSource } from '../config/values/lookup-tables.ts'
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

/** Access tables of a listener. */
export interface ListenerAccess {
  readonly lists: Readonly<Record<ListName, readonly OpenRestriction[]>>
  /** smtpd_restriction_classes by name. */
  readonly classes: ReadonlyMap<string, readonly OpenRestriction[]>
  /** Null without smtpd_sender_login_maps. */
  readonly logins: LookupTable | null
  /** Null without relay_recipient_maps. */
  readonly relayRecipients: LookupTable | null
}

export interface AccessTables extends ListenerAccess {
  /** Those of the `[[smtpd]]` tables, in the order of the configuration. */
  readonly tables: readonly ListenerAccess[]
}

interface OpenedAccess {
  readonly access: AccessTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

type AccessSettings = Pick<
  Config,
  | ListName
  | 'smtpd_sender_login_maps'
  | 'smtpd_restriction_classes'
  | 'relay_recipient_maps'
  | 'smtpd_policy_service_default_action'
  | 'smtpd'
>

/** Opens the tables. Throws an Error that names the parameter, and the path or value of the first mistake. */
export function openAccess(config: AccessSettings): OpenedAccess {
  const warnings: string[] = []
  const { smtpd_restriction_classes: classes } = config
  const restrictionsOf = (name: string, list: readonly Restriction[]) =>
    list.map((restriction) => openRestriction(name, restriction, { classes, warnings }))
  const tableOf = (name: 'smtpd_sender_login_maps' | 'relay_recipient_maps', sources: readonly TableSource[]): LookupTable | null => {
    if (sources.length === 0) return null
    const { table, warnings: others } = openTable(name, sources, { readFile: readText, substitutes: true })
    warnings.push(...others)
    return table
  }
  /** Opens the tables that the settings have; the others are those of `inherited`. */
  const opened = (settings: ListenerSettings, inherited: Pick<ListenerAccess, 'lists' | 'logins'>) => {
    const { smtpd_policy_service_default_action: action, smtpd_sender_login_maps: owners } = settings
    const listOf = (name: ListName) => {
      const list = settings[name]
      return list === undefined ? inherited.lists[name] : restrictionsOf(name, list)
    }
    const lists = {
      smtpd_client_restrictions: listOf('smtpd_client_restrictions'),
      smtpd_sender_restrictions: listOf('smtpd_sender_restrictions'),
      smtpd_relay_restrictions: listOf('smtpd_relay_restrictions'),
      smtpd_recipient_restrictions: listOf('smtpd_recipient_restrictions'),
    }
    if (action !== undefined) named('smtpd_policy_service_default_action', () => void parseAccessResult(action, classes))
    return { lists, logins: owners === undefined ? inherited.logins : tableOf('smtpd_sender_login_maps', owners) }
  }
  const own = opened(config, NOTHING)
  const openedClasses = new Map([...classes].map(([name, list]) => [name, restrictionsOf(`smtpd_restriction_classes: ${name}`, list)]))
  const relay = { ...own, classes: openedClasses, relayRecipients: tableOf('relay_recipient_maps', config.relay_recipient_maps) }
  const tables = config.smtpd.map((one) => ({ ...relay, ...atListener(one, () => opened(one.settings, own)) }))
  return { access: { ...relay, tables }, warnings }
}

const NOTHING: Pick<ListenerAccess, 'lists' | 'logins'> = {
  lists: { smtpd_client_restrictions: [], smtpd_sender_restrictions: [], smtpd_relay_restrictions: [], smtpd_recipient_restrictions: [] },
  logins: null,
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
