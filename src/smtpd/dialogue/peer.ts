/** The client of a connection, with what its address permits and its share of the limits. XCLIENT replaces the client. */
import type { SmtpReply } from '../../mail/smtp-reply.ts'
import type { ClientName } from '../../mail/client-name.ts'
import type { ClientLimits, CountedEvent } from './client-limits.ts'
import type { RelayPolicy } from './relay-policy.ts'

export interface PeerRules {
  readonly access: RelayPolicy
  readonly limits: ClientLimits
}

export class Peer {
  readonly #rules: PeerRules
  #client: ClientName
  #isTrusted: boolean
  #mayXclient: boolean
  #isLenient: boolean
  /** True for a connection from smtpd_authorized_xforward_hosts. XCLIENT does not change the value, as in Postfix. */
  readonly mayXforward: boolean
  /** Address that is counted as connected. */
  #entered: string | undefined

  constructor(rules: PeerRules, client: ClientName) {
    this.#rules = rules
    this.#client = client
    this.#isTrusted = rules.access.trusts(client.address)
    this.#mayXclient = rules.access.mayXclient(client.address)
    this.#isLenient = rules.access.mayEndLinesBare(client.address)
    this.mayXforward = rules.access.mayXforward(client.address)
  }

  get client(): ClientName {
    return this.#client
  }

  /** True for an address in mynetworks. */
  get isTrusted(): boolean {
    return this.#isTrusted
  }

  /** True for an address in smtpd_authorized_xclient_hosts. Limits do not apply to it (Postfix smtpd). */
  get mayXclient(): boolean {
    return this.#mayXclient
  }

  /** True for an address in smtpd_forbid_bare_newline_exclusions. */
  get isLenient(): boolean {
    return this.#isLenient
  }

  /** Sets the name that belongs to the address. */
  named(name: string): void {
    this.#client = { name, address: this.#client.address }
  }

  replace(client: ClientName): void {
    this.#client = client
    this.#isTrusted = this.#rules.access.trusts(client.address)
    this.#mayXclient = this.#rules.access.mayXclient(client.address)
    this.#isLenient = this.#rules.access.mayEndLinesBare(client.address)
  }

  /** Counts the connection for the client. Returns the reply with which to refuse it, and undefined within the limits. */
  enter(): SmtpReply | undefined {
    this.leave()
    if (this.#mayXclient) return undefined
    this.#entered = this.#client.address
    return this.#rules.limits.enter(this.#entered)
  }

  /** Ends the connection of the client that was counted. */
  leave(): void {
    if (this.#entered !== undefined) this.#rules.limits.leave(this.#entered)
    this.#entered = undefined
  }

  /** Counts an event of the client. Returns the reply with which to refuse it, and undefined within the limits. */
  count(event: CountedEvent): SmtpReply | undefined {
    return this.#mayXclient ? undefined : this.#rules.limits.count(event, this.#client.address)
  }
}
