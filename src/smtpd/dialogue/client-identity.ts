/**
 * Identity of the client of a session (address, greeting, TLS, login), and what it permits. Changed by HELO, STARTTLS, AUTH and XCLIENT.
 */
import type { Config, Listener } from '../../config/options.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import type { SmtpClient } from '../../queue/intake/acceptor.ts'
import type { ClientName } from '../../mail/client-name.ts'
import { neutered, type ClientOverride } from './client-attributes.ts'
import { Peer, type PeerRules } from './peer.ts'

export type ListenerRules = Pick<Listener, 'tls' | 'auth'>

/** Those of its sessions. */
export type SessionRules = ListenerRules & Pick<Listener, 'class'>

/** The user object that smtp-server stores for an authenticated client. */
export interface Login {
  readonly name: string
  readonly method: string
}

interface IdentityRules extends PeerRules {
  readonly settings: Pick<Config, 'local_header_rewrite_clients'>
}

const HELO_LIMIT = 255
/** Number of failed logins after which the session ends. */
const LOGIN_LIMIT = 3

export class ClientIdentity {
  readonly peer: Peer
  readonly #rules: IdentityRules
  readonly #listener: ListenerRules
  #helo = ''
  #isExtended = false
  #encryption: SmtpClient['tls']
  #login: Login | undefined
  #failedLogins = 0

  constructor(rules: IdentityRules, client: ClientName, listener: ListenerRules) {
    this.#rules = rules
    this.#listener = listener
    this.peer = new Peer(rules, client)
  }

  /** Name of the last HELO or EHLO; empty before the first. */
  get helo(): string {
    return this.#helo
  }

  /** True after EHLO. */
  get isExtended(): boolean {
    return this.#isExtended
  }

  /** The TLS connection; undefined without TLS. */
  get encryption(): SmtpClient['tls'] {
    return this.#encryption
  }

  /** The login, which permits nothing where clients may not log in. */
  get login(): Login | undefined {
    return this.#login
  }

  /** True for a client that has logged in. A login by XCLIENT counts where clients may log in (Postfix permit_sasl_authenticated). */
  get isAuthenticated(): boolean {
    return this.#login !== undefined && this.#listener.auth !== 'none'
  }

  /** The login that counts for permissions. */
  get user(): Login | undefined {
    return this.isAuthenticated ? this.#login : undefined
  }

  /** True for a client that may relay: in mynetworks, or authenticated. */
  get mayRelay(): boolean {
    return this.peer.isTrusted || this.isAuthenticated
  }

  /** True for a client whose mail is local (local_header_rewrite_clients). */
  get isLocal(): boolean {
    const { local_header_rewrite_clients: clients } = this.#rules.settings
    if (this.isAuthenticated && clients.includes('permit_sasl_authenticated')) return true
    return this.peer.isTrusted && clients.includes('permit_mynetworks')
  }

  /** True when STARTTLS is possible. */
  get mayStartTls(): boolean {
    return (this.#listener.tls === 'may' || this.#listener.tls === 'encrypt') && this.#encryption === undefined
  }

  /** True when a login is possible, which is over TLS only, as with Postfix smtpd_tls_auth_only = yes. */
  get mayLogIn(): boolean {
    return this.#listener.auth !== 'none' && this.#encryption !== undefined
  }

  /** True when the listener requires TLS that the client has not started. */
  get lacksTls(): boolean {
    return this.#listener.tls === 'encrypt' && this.#encryption === undefined
  }

  /** True when the listener requires a login that the client has not made. */
  get lacksLogin(): boolean {
    return this.#listener.auth === 'required' && this.#login === undefined
  }

  /** Protocol name for `with` in the Received field and for the log (RFC 3848). */
  protocol(isInternational: boolean): string {
    if (!this.#isExtended) return 'SMTP'
    const name = isInternational ? 'UTF8SMTP' : 'ESMTP'
    return name + (this.#encryption === undefined ? '' : 'S') + (this.#login === undefined ? '' : 'A')
  }

  greeted(name: string, isExtended: boolean): void {
    this.#helo = neutered(maskControls(name)).slice(0, HELO_LIMIT)
    this.#isExtended = isExtended
  }

  /** Forgets the greeting from before the TLS handshake (RFC 3207 §4.2). */
  secured(encryption: SmtpClient['tls']): void {
    this.#encryption = encryption
    this.#helo = ''
    this.#isExtended = false
  }

  loggedIn(login: Login): void {
    this.#login = login
  }

  /** Counts a failed login. Returns true when the client has none left. */
  loginFailed(): boolean {
    return ++this.#failedLogins >= LOGIN_LIMIT
  }

  /** Becomes another client. TLS stays as it is; everything else that the command does not name is as after a connect. */
  replace({ name, address, helo = '', isExtended = false, login }: ClientOverride): void {
    const { client } = this.peer
    this.peer.replace({ name: name ?? client.name, address: address ?? client.address })
    this.#helo = helo
    this.#isExtended = isExtended
    this.#login = login === undefined ? undefined : { name: login, method: 'XCLIENT' }
  }
}
