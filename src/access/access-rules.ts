/**
 * Applies the lists of restrictions to a recipient (Postfix smtpd_check.c): smtpd_client_restrictions, smtpd_sender_restrictions, the
 * relay permission, smtpd_recipient_restrictions. A list ends at the first restriction that permits; a refusal ends all lists.
 */
import type { Config } from '../config/options.ts'
import type { PlainRestriction } from '../config/values/restrictions.ts'
import { domainOf } from '../mail/address.ts'
import type { SmtpReply } from '../mail/smtp-reply.ts'
import type { LookupForm } from '../rewriting/address-keys.ts'
import type { AddressRules } from '../rewriting/address-map.ts'
import { addressRules, type AddressSettings } from '../rewriting/lookup-rules.ts'
import { LookupFailed, type LookupTable } from '../rewriting/lookup-table.ts'
import { errorMessage } from '../system/caught-error.ts'
import type { Net } from '../system/net.ts'
import { parseAccessAction, type AccessAction, type Refusal } from './access-action.ts'
import { LIST_NAMES, type AccessTables, type ListName, type OpenRestriction } from './access-tables.ts'
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
  readonly outcome: 'permit' | 'relay-denied' | SmtpReply
  readonly taken: readonly TakenAction[]
  /** Refusals after warn_if_reject. */
  readonly warnings: readonly SmtpReply[]
}

export interface AccessRulesDeps {
  readonly config: AddressSettings & Pick<Config, 'smtpd_policy_service_default_action'>
  readonly tables: AccessTables
  /** Entries of commands, which come first in the list of their subject. */
  readonly entries: Pick<AccessEntries, 'isEmpty' | 'find'>
  readonly net: Pick<Net, 'lookupMx' | 'lookupAddresses'>
  readonly policies: Pick<PolicyClient, 'ask'>
  readonly warn: (text: string) => void
}

const SUBJECT_OF = {
  smtpd_client_restrictions: 'client',
  smtpd_sender_restrictions: 'sender',
  smtpd_recipient_restrictions: 'recipient',
} as const satisfies Readonly<Record<ListName, Subject>>
const CHECKED = {
  check_client_access: 'client',
  check_sender_access: 'sender',
  check_recipient_access: 'recipient',
  check_sasl_access: 'login',
} as const
const SERVER_ERROR: Refusal = { code: 451, status: '4.3.5', text: 'Server configuration error' }
const OK: AccessAction = { kind: 'ok' }
const DUNNO: AccessAction = { kind: 'dunno' }
const refuse = (code: number, status: string, text: string): AccessAction => ({ kind: 'refuse', refusal: { code, status, text } })

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

  constructor(deps: AccessRulesDeps) {
    this.#deps = deps
    this.#rules = addressRules(deps.config)
    const { logins } = deps.tables
    // An owner of the local part alone owns it at mydomain too.
    const localDomains = new Set([...this.#rules.localDomains, deps.config.mydomain.toLowerCase()])
    this.#logins = logins === null ? null : new SenderLogins(logins, { ...this.#rules, localDomains })
  }

  /** True when there is no restriction and no entry: every recipient that the client may send to is permitted. */
  get isIdle(): boolean {
    const { tables, entries } = this.#deps
    return entries.isEmpty && LIST_NAMES.every((name) => tables.lists[name].length === 0)
  }

  async decide(request: AccessRequest): Promise<AccessDecision> {
    const course: Course = { taken: [], warnings: [], deferred: undefined }
    const outcome = await this.#outcome(request, course)
    return { outcome, taken: course.taken, warnings: course.warnings }
  }

  async #outcome(request: AccessRequest, course: Course): Promise<AccessDecision['outcome']> {
    const mayRelay = request.isTrusted || request.login !== undefined || request.isOpen
    for (const name of LIST_NAMES) {
      if (name === 'smtpd_recipient_restrictions' && !mayRelay) return 'relay-denied'
      const refusal = await this.#list(name, request, course)
      if (refusal !== undefined) return refusal
      if (course.taken.some(({ action }) => action.kind === 'discard')) return 'permit'
    }
    return course.deferred ?? 'permit'
  }

  /** Applies the entry of commands and then the restrictions of a list. Returns the reply that refuses. */
  async #list(name: ListName, request: AccessRequest, course: Course): Promise<SmtpReply | undefined> {
    const subject = SUBJECT_OF[name]
    const { entries } = this.#deps
    const entry = entries.isEmpty ? undefined : entries.find(subject, this.#forms(subject, request))
    const first = entry === undefined ? 'next' : take(entry, { about: describeSubject(subject, request), warnsOnly: false }, course)
    if (first !== 'next') return first === 'end' ? undefined : first
    for (const restriction of this.#deps.tables.lists[name]) {
      const checked = 'table' in restriction ? CHECKED[restriction.kind] : subjectOf(restriction.kind, subject)
      const about = describeSubject(checked, request)
      const result = take(await this.#actionOf(restriction, request), { about, warnsOnly: restriction.warnsOnly }, course)
      if (result !== 'next') return result === 'end' ? undefined : result
    }
    return undefined
  }

  async #actionOf(restriction: OpenRestriction, request: AccessRequest): Promise<AccessAction> {
    if (restriction.kind === 'check_policy_service') return this.#policy(restriction, request)
    if (!('table' in restriction)) return this.#plain(restriction.kind, request)
    try {
      const value = found(restriction.table, this.#forms(CHECKED[restriction.kind], request))
      return value === undefined ? DUNNO : parseAccessAction(value)
    } catch (error) {
      const what = error instanceof LookupFailed ? error.message : `${restriction.table.name}: ${errorMessage(error)}`
      this.#deps.warn(`${what}; mail that meets the entry is refused with 451`)
      return { kind: 'refuse', refusal: SERVER_ERROR }
    }
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
    { name, server }: Extract<OpenRestriction, { kind: 'check_policy_service' }>,
    request: AccessRequest,
  ): Promise<AccessAction> {
    const { policies, config, warn } = this.#deps
    try {
      return parseAccessAction(await policies.ask(name, server, policyAttributes(request)))
    } catch (error) {
      warn(`check_policy_service ${name}: ${errorMessage(error)}; smtpd_policy_service_default_action is taken`)
      return parseAccessAction(config.smtpd_policy_service_default_action)
    }
  }

  async #plain(kind: PlainRestriction, request: AccessRequest): Promise<AccessAction> {
    const { sender, recipient, given, login } = request
    switch (kind) {
      case 'permit':
        return OK
      case 'reject':
        return refuse(554, '5.7.1', 'Access denied')
      case 'defer':
        return refuse(450, '4.3.2', 'Try again later')
      case 'permit_mynetworks':
        return request.isTrusted ? OK : DUNNO
      case 'permit_sasl_authenticated':
        return login === undefined ? DUNNO : OK
      case 'permit_auth_destination':
        return request.isOpen ? OK : DUNNO
      case 'reject_unauth_destination':
        return request.isOpen ? DUNNO : refuse(554, '5.7.1', 'Relay access denied')
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

/** Takes an action. Returns the reply that refuses, or whether the list ends. */
function take(
  action: AccessAction,
  { about, warnsOnly }: { about: string; warnsOnly: boolean },
  course: Course,
): SmtpReply | 'next' | 'end' {
  switch (action.kind) {
    case 'ok':
      return 'end'
    case 'dunno':
      return 'next'
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
function subjectOf(kind: PlainRestriction | 'check_policy_service', list: Subject): Subject {
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
