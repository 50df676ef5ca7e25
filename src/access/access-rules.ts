/**
 * Applies the lists of restrictions to a recipient (Postfix smtpd_check.c): smtpd_client_restrictions, smtpd_sender_restrictions,
 * smtpd_relay_restrictions, smtpd_recipient_restrictions, and then relay_recipient_maps. A list ends at the first restriction that permits; a
 * refusal ends all lists.
 */
import type { Config } from '../config/options.ts'
import type { PlainRestriction } from '../config/values/restrictions.ts'
import { domainOf } from '../mail/address.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { LookupForm } from '../rewriting/address-keys.ts'
import { AddressMap, type AddressRules } from '../rewriting/address-map.ts'
import { addressRules, type AddressSettings } from '../rewriting/lookup-rules.ts'
import { LookupFailed, type LookupTable } from '../rewriting/lookup-table.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Net } from '../system/net.ts'
import { parseAccessResult, type AccessAction, type NamedRestrictions } from './access-action.ts'
import { LIST_NAMES, type ListenerAccess, type ListName, type OpenRestriction } from './access-tables.ts'
import type { AccessEntries } from './access-entries.ts'
import { describeSubject, type AccessRequest, type Subject } from './access-request.ts'
import { addressForms, clientForms } from './lookup-forms.ts'
import { policyAttributes } from './policy-attributes.ts'
import type { PolicyClient } from './policy-client.ts'
import { stateOfDomain } from './sender-domain.ts'
import { SenderLogins } from './sender-logins.ts'

/** An action that concerns the whole message, or the log, with the reason that the log states. */
export interface TakenAction {
  readonly action: Exclude<AccessAction, { kind: 'ok' | 'dunno' | 'refuse' | 'defer-if-permit' }>
  /** `<ann@example.com>: Sender address` */
  readonly about: string
}

export interface AccessDecision {
  readonly outcome: 'permit' | SmtpReply
  readonly taken: readonly TakenAction[]
  /** Refusals after warn_if_reject. */
  readonly warnings: readonly SmtpReply[]
}

interface AccessRulesDeps {
  readonly config: AddressSettings & Pick<Config, 'smtpd_policy_service_default_action' | 'smtpd_restriction_classes'>
  readonly tables: ListenerAccess
  /** Entries of commands, which come first in the list of their subject. */
  readonly entries: Pick<AccessEntries, 'isEmpty' | 'find'>
  readonly net: Pick<Net, 'lookupMx' | 'lookupAddresses'>
  readonly policies: Pick<PolicyClient, 'ask'>
  /** True for an address that a table replaces, or keeps. Throws LookupFailed. */
  readonly isAlias: (address: string) => boolean
  readonly warn: (text: string) => void
}

const SUBJECT_OF = {
  smtpd_client_restrictions: 'client',
  smtpd_sender_restrictions: 'sender',
  smtpd_relay_restrictions: 'recipient',
  smtpd_recipient_restrictions: 'recipient',
} as const satisfies Readonly<Record<ListName, Subject>>
const CHECKED = {
  check_client_access: 'client',
  check_sender_access: 'sender',
  check_recipient_access: 'recipient',
  check_sasl_access: 'login',
} as const
const SERVER_ERROR: WholeReply = { kind: 'whole-reply', reply: { code: 451, status: '4.3.5', text: 'Server configuration error' } }
const OK: AccessAction = { kind: 'ok' }
const DUNNO: AccessAction = { kind: 'dunno' }
const relayDenied = (code: number, status: string, path: string): WholeReply => ({
  kind: 'whole-reply',
  reply: { code, status, text: `<${path}>: Relay access denied` },
})
const refuse = (code: number, status: string, text: string): AccessAction => ({ kind: 'refuse', refusal: { code, status, text } })

/** smtpd_relay_restrictions, when the parameter is not set. */
const RELAY_PERMISSION = 'permit_mynetworks permit_sasl_authenticated defer_unauth_destination'
/** Restrictions within restrictions, above which a result of a table names itself (Postfix check_table_result). */
const MOST_LEVELS = 100

/** The list, class or result in which a restriction stands. */
interface Place {
  readonly subject: Subject
  readonly level: number
  /** True after warn_if_reject: refusals are logged only. */
  readonly warnsOnly: boolean
}

/** A refusal whose text does not begin with its subject. */
interface WholeReply {
  readonly kind: 'whole-reply'
  readonly reply: SmtpReply
}

/** Restrictions to apply next: a class, or the result of a table. */
interface OpenNested {
  readonly kind: 'restrictions'
  readonly restrictions: readonly OpenRestriction[]
}

/** State of one decision. */
interface Course {
  readonly taken: TakenAction[]
  readonly warnings: SmtpReply[]
  /** The first refusal that applies when all lists permit. */
  deferred: SmtpReply | undefined
}

export class AccessRules {
  readonly #deps: AccessRulesDeps
  readonly #rules: AddressRules
  /** Null without smtpd_sender_login_maps. */
  readonly #logins: SenderLogins | null
  /** Null without relay_recipient_maps. */
  readonly #relayRecipients: AddressMap | null

  constructor(deps: AccessRulesDeps) {
    this.#deps = deps
    this.#rules = addressRules(deps.config)
    const { logins, relayRecipients } = deps.tables
    // An owner of the local part alone owns it at mydomain too.
    const localDomains = new Set([...this.#rules.localDomains, deps.config.mydomain.toLowerCase()])
    this.#logins = logins === null ? null : new SenderLogins(logins, { ...this.#rules, localDomains })
    this.#relayRecipients = relayRecipients === null ? null : new AddressMap(relayRecipients, this.#rules, false)
  }

  /** True when there is no restriction but the relay permission, and no entry: every recipient that the client may send to is permitted. */
  get isIdle(): boolean {
    const { tables, entries } = this.#deps
    const { smtpd_relay_restrictions: relay, ...others } = tables.lists
    const hasLists = Object.values(others).some(({ length }) => length > 0) || this.#relayRecipients !== null
    return (
      entries.isEmpty && !hasLists && relay.map(({ kind, warnsOnly }) => `${warnsOnly ? '-' : ''}${kind}`).join(' ') === RELAY_PERMISSION
    )
  }

  async decide(request: AccessRequest): Promise<AccessDecision> {
    const course: Course = { taken: [], warnings: [], deferred: undefined }
    const outcome = await this.#outcome(request, course)
    return { outcome, taken: course.taken, warnings: course.warnings }
  }

  async #outcome(request: AccessRequest, course: Course): Promise<AccessDecision['outcome']> {
    for (const name of LIST_NAMES) {
      const refusal = await this.#list(name, request, course)
      if (refusal !== undefined) return refusal
      if (course.taken.some(({ action }) => action.kind === 'discard')) return 'permit'
    }
    return this.#unlisted(request) ?? course.deferred ?? 'permit'
  }

  /** Refuses a recipient in relay_domains that relay_recipient_maps lacks (Postfix check_rcpt_maps). */
  #unlisted(request: AccessRequest): SmtpReply | undefined {
    const { recipient } = request
    if (this.#relayRecipients === null || !request.isInRelayDomains) return undefined
    const about = `${describeSubject('recipient', request)} rejected`
    try {
      if (this.#deps.isAlias(recipient) || this.#relayRecipients.find(recipient) !== null) return undefined
      return { code: 550, status: '5.1.1', text: `${about}: User unknown in relay recipient table` }
    } catch (error) {
      if (!(error instanceof LookupFailed)) throw error
      this.#deps.warn(`${error.message}; recipients are refused with 451`)
      return { code: 451, status: '4.3.0', text: `${about}: Temporary lookup failure` }
    }
  }

  /** Applies the entry of commands and then the restrictions of a list. Returns the reply that refuses. */
  async #list(name: ListName, request: AccessRequest, course: Course): Promise<SmtpReply | undefined> {
    const subject = SUBJECT_OF[name]
    const { entries } = this.#deps
    // An entry for a recipient never permits relaying.
    const isOfEntries = !entries.isEmpty && name !== 'smtpd_relay_restrictions'
    const entry = isOfEntries ? entries.find(subject, this.#forms(subject, request)) : undefined
    const first = entry === undefined ? 'next' : take(entry, { about: describeSubject(subject, request), warnsOnly: false }, course)
    const place = { subject, level: 0, warnsOnly: false }
    const result = first === 'next' ? await this.#apply(this.#deps.tables.lists[name], place, request, course) : first
    return result === 'next' || result === 'end' ? undefined : result
  }

  /** Applies restrictions in turn. Returns the reply that refuses, `end` when one permits, and `next` otherwise. */
  async #apply(restrictions: readonly OpenRestriction[], place: Place, request: AccessRequest, course: Course): Promise<Step> {
    for (const restriction of restrictions) {
      const warnsOnly = place.warnsOnly || restriction.warnsOnly
      const subject = 'table' in restriction ? CHECKED[restriction.kind] : subjectOf(restriction.kind, place.subject)
      const result = await this.#resultOf(restriction, request)
      const step =
        result.kind === 'restrictions'
          ? await this.#nested(result, { subject, level: place.level + 1, warnsOnly }, request, course)
          : take(result, { about: describeSubject(subject, request), warnsOnly }, course)
      if (step !== 'next') return step
    }
    return 'next'
  }

  #nested({ restrictions }: OpenNested, place: Place, request: AccessRequest, course: Course): Step | Promise<Step> {
    if (place.level <= MOST_LEVELS) return this.#apply(restrictions, place, request, course)
    this.#deps.warn('a result of an access table leads to itself; mail that meets it is refused with 451')
    return SERVER_ERROR.reply
  }

  async #resultOf(restriction: OpenRestriction, request: AccessRequest): Promise<AccessAction | WholeReply | OpenNested> {
    if (restriction.kind === 'check_policy_service') return this.#policy(restriction, request)
    if (restriction.kind === 'class') return { kind: 'restrictions', restrictions: this.#deps.tables.classes.get(restriction.name) ?? [] }
    if (!('table' in restriction)) return this.#plain(restriction.kind, request)
    try {
      const value = found(restriction.table, this.#forms(CHECKED[restriction.kind], request))
      return value === undefined ? DUNNO : this.#parse(value)
    } catch (error) {
      const what = error instanceof LookupFailed ? error.message : `${restriction.table.name}: ${errorMessage(error)}`
      this.#deps.warn(`${what}; mail that meets the entry is refused with 451`)
      return SERVER_ERROR
    }
  }

  #parse(result: string): AccessAction | NamedRestrictions {
    return parseAccessResult(result, this.#deps.config.smtpd_restriction_classes)
  }

  #forms(subject: Subject, { client, sender, recipient, login }: AccessRequest): readonly LookupForm[] {
    switch (subject) {
      case 'client':
        return clientForms(client.name, client.address)
      case 'sender':
        return addressForms(sender, this.#rules)
      case 'recipient':
        return addressForms(recipient, this.#rules)
      case 'login':
        return login === undefined ? [] : [{ key: login.name, isWhole: true }]
    }
  }

  async #policy(
    service: Extract<OpenRestriction, { kind: 'check_policy_service' }>,
    request: AccessRequest,
  ): Promise<AccessAction | NamedRestrictions> {
    const { policies, config, warn } = this.#deps
    try {
      return this.#parse(await policies.ask(service, { ...policyAttributes(request), policy_context: service.policy_context ?? '' }))
    } catch (error) {
      const taken = service.default_action === undefined ? 'smtpd_policy_service_default_action' : 'its default_action'
      warn(`check_policy_service ${service.name}: ${errorMessage(error)}; ${taken} is taken`)
      return this.#parse(service.default_action ?? config.smtpd_policy_service_default_action)
    }
  }

  async #plain(kind: PlainRestriction, request: AccessRequest): Promise<AccessAction | WholeReply> {
    const { sender, recipient, given, login } = request
    switch (kind) {
      case 'permit':
        return OK
      case 'reject':
        return refuse(554, '5.7.1', 'Access denied')
      case 'defer':
        return refuse(450, '4.3.2', 'Try again later')
      case 'defer_if_permit':
        return { kind: 'defer-if-permit', refusal: { code: 450, status: '4.7.0', text: 'defer_if_permit requested' } }
      case 'permit_mynetworks':
        return request.isTrusted ? OK : DUNNO
      case 'permit_sasl_authenticated':
        return login === undefined ? DUNNO : OK
      case 'permit_auth_destination':
        return request.isOpen ? OK : DUNNO
      case 'reject_unauth_destination':
        return request.isOpen ? DUNNO : relayDenied(554, '5.7.1', request.path)
      case 'defer_unauth_destination':
        return request.isOpen ? DUNNO : relayDenied(454, '4.7.1', request.path)
      case 'reject_non_fqdn_sender':
        return isComplete(given.sender) ? DUNNO : refuse(504, '5.5.2', 'need fully-qualified address')
      case 'reject_non_fqdn_recipient':
        return isComplete(given.recipient) ? DUNNO : refuse(504, '5.5.2', 'need fully-qualified address')
      case 'reject_unknown_sender_domain':
        return sender === '' ? DUNNO : this.#domain(domainOf(sender), { unknown: '4.1.8', refused: refuse(550, '5.7.27', NULL_MX(sender)) })
      case 'reject_unknown_recipient_domain':
        return this.#domain(domainOf(recipient), { unknown: '4.1.2', refused: refuse(556, '5.1.10', NULL_MX(recipient)) })
      case 'reject_sender_login_mismatch':
        return this.#ownership(request)
      case 'reject_authenticated_sender_login_mismatch':
        return login === undefined ? DUNNO : this.#ownership(request)
      case 'reject_unauthenticated_sender_login_mismatch':
        return login === undefined ? this.#ownership(request) : DUNNO
    }
  }

  async #domain(domain: string, { unknown, refused }: { readonly unknown: string; readonly refused: AccessAction }): Promise<AccessAction> {
    switch (await stateOfDomain(domain, this.#deps.net)) {
      case 'known':
        return DUNNO
      case 'null-mx':
        return refused
      case 'unknown':
        return refuse(450, unknown, 'Domain not found')
      case 'unsure':
        return { kind: 'defer-if-permit', refusal: { code: 450, status: unknown, text: 'Domain not found' } }
    }
  }

  /** Refuses a sender that another user owns, or, from a client that has logged in, one that no user owns; never the null sender. */
  #ownership({ sender, login }: AccessRequest): AccessAction {
    if (sender === '') return DUNNO
    const owners = this.#logins?.ownersOf(sender) ?? []
    if (login === undefined) return owners.length === 0 ? DUNNO : refuse(553, '5.7.1', 'not logged in')
    const owns = owners.some((name) => name.toLowerCase() === login.name.toLowerCase())
    return owns ? DUNNO : refuse(553, '5.7.1', `not owned by user ${login.name}`)
  }
}

/** The reply that refuses, or whether the list ends. */
type Step = SmtpReply | 'next' | 'end'

/** Takes an action. */
function take(
  action: AccessAction | WholeReply,
  { about, warnsOnly }: { readonly about: string; readonly warnsOnly: boolean },
  course: Course,
): Step {
  switch (action.kind) {
    case 'ok':
      return 'end'
    case 'dunno':
      return 'next'
    case 'whole-reply':
      return warnsOnly ? (course.warnings.push(action.reply), 'next') : action.reply
    case 'refuse':
    case 'defer-if-permit': {
      const { code, status, text } = action.refusal
      const reply = { code, status, text: `${about} rejected: ${text}` }
      if (!warnsOnly && action.kind === 'refuse') return reply
      if (warnsOnly) course.warnings.push(reply)
      else course.deferred ??= reply
      return 'next'
    }
    case 'discard':
      course.taken.push({ action, about })
      return 'end'
    case 'hold':
    case 'redirect':
    case 'bcc':
    case 'prepend':
    case 'note':
      course.taken.push({ action, about })
      return 'next'
  }
}

const NULL_MX = (address: string): string => `Domain ${domainOf(address)} does not accept mail (nullMX)`

const isComplete = (address: string): boolean => address === '' || /@(?:\[.+\]|[^@]+\.[^@.]+)$/.test(address)

/** A plain restriction about sender or recipient names them, in whichever list it stands. */
function subjectOf(kind: PlainRestriction | 'check_policy_service' | 'class', list: Subject): Subject {
  if (kind === 'class') return list
  if (kind.includes('sender')) return 'sender'
  return kind.includes('recipient') || kind.includes('unauth') ? 'recipient' : list
}

/** Result of the first form that the tables have. Throws LookupFailed. */
function found(table: LookupTable, forms: readonly LookupForm[]): string | undefined {
  for (const { key, isWhole } of forms) {
    const value = table.find(key.toLowerCase(), isWhole ? key : undefined)
    if (value !== undefined) return value
  }
  return undefined
}
