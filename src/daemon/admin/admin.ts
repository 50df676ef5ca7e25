/**
 * The admin API and the page: routes on admin_listen and on the socket `admin.sock` of the queue directory. They stay when the queue
 * is closed and opened again, and so do sessions.
 */
import { rm } from 'node:fs/promises'
import { accountRoutes, type LoginPage } from '../../admin/account-routes.ts'
import { authentication, confirmation } from '../../admin/authentication.ts'
import { LocalToken } from '../../admin/local-token.ts'
import { Sessions, type PageUser } from '../../admin/sessions.ts'
import type { TokenDeps } from '../../admin/tokens.ts'
import { needsProxy } from '../../config/admin-reach.ts'
import type { Config } from '../../config/options.ts'
import { Networks } from '../../config/values/networks.ts'
import { BodyRoom } from '../../http/body-room.ts'
import { EventStreams } from '../../http/event-streams.ts'
import { FailureLimit } from '../../http/failure-limit.ts'
import { hostName } from '../../http/requests/host-check.ts'
import { HttpPort } from '../../http/http-port.ts'
import type { Problem } from '../../http/problem-details.ts'
import { routeListener, type FailedRequest, type Listener } from '../../http/route-listener.ts'
import type { Route } from '../../http/route-table.ts'
import { commandProblem } from '../../http/command-failure.ts'
import { newSlots } from '../../http/slots.ts'
import { UnreadAnswers } from '../../http/unread-answers.ts'
import { addressOf, webAdmission, type WebRules } from '../../http/web-admission.ts'
import { WEB_HEADERS } from '../../http/web-headers.ts'
import { isNavigation, webRefusal, type RefusalPage } from '../../http/web-refusal.ts'
import { WebServer, type WebCertificate } from '../../http/web-server.ts'
import { readKeyPair } from '../../config/smtpd-listeners.ts'
import type { Clock } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import type { Events } from '../../telemetry/events.ts'
import { adminSocketPath, localTokenPath } from './socket-path.ts'

interface AdminDeps {
  readonly queueDirectory: string
  readonly config: Config
  readonly clock: Clock
  readonly random: Random
  readonly events: Events
  /** The tokens of the open queue. Throws while there is none. */
  readonly tokens: () => TokenDeps
  /** Routes besides login and logout. */
  readonly routes: readonly Route[]
  /** Ends the streams and tasks of `routes`. */
  readonly closeRoutes: () => void
  /** Shows a problem to a person. */
  readonly refusalPage: RefusalPage
  readonly loginPage: LoginPage
}

export class Admin {
  readonly #deps: AdminDeps
  readonly #sessions: Sessions
  readonly #local: LocalToken
  readonly #streams: EventStreams
  readonly #listener: Listener
  readonly #port: HttpPort<WebServer>
  readonly #socket: WebServer
  #rules: WebRules
  #hosts: readonly string[] = []
  #certificate: WebCertificate | null = null

  constructor(deps: AdminDeps) {
    const { clock, random, config } = deps
    this.#deps = deps
    this.#sessions = new Sessions({ clock, random })
    this.#local = new LocalToken(localTokenPath(deps.queueDirectory), random, (text) => this.#warn(text))
    this.#streams = new EventStreams(clock)
    this.#rules = rulesOf(config)
    this.#listener = this.#newListener()
    this.#port = new HttpPort('admin_listen', () => new WebServer({ listener: this.#listener, clock, certificate: this.#certificate }))
    this.#socket = new WebServer({ listener: this.#listener, clock, certificate: null })
  }

  /** URL of the page under its outer name; null while admin_listen is off. */
  get url(): string | null {
    const { endpoint, bound } = this.#port
    if (endpoint === null || bound === null) return null
    const scheme = this.#certificate === null ? 'http' : 'https'
    const [host] = this.#hosts
    const isLoopback = /^(?:127\.|::1$)/.test(endpoint.address)
    return `${scheme}://${host === undefined || isLoopback ? bound : `${host.includes(':') ? `[${host}]` : host}:${endpoint.port}`}/`
  }

  /** Makes a code for a login, which can be used once within CODE_LIFETIME. */
  newCode(user: PageUser): string {
    return this.#sessions.newCode(user)
  }

  /**
   * Opens, moves or closes the port as configured, and reads the certificate again. Throws CertificateUnusable or rejects with
   * CannotListen; the former port and certificate then stay in use.
   */
  async apply(config: Config): Promise<void> {
    const { admin_listen: address, inet_protocols: families } = config
    const former = this.#certificate
    this.#certificate = adminCertificate(config)
    try {
      await this.#port.apply({ address, families, kind: this.#certificate === null ? 'http' : 'https' })
    } catch (error) {
      this.#certificate = former
      throw error
    }
    if (this.#certificate !== null) this.#port.server?.renew(this.#certificate)
    this.#rules = rulesOf(config)
    this.#hosts = config.admin_hosts
  }

  /** Opens the socket. The caller owns the queue, so an existing socket file was left by a killed daemon and is removed. */
  async openSocket(): Promise<void> {
    const path = adminSocketPath(this.#deps.queueDirectory)
    await this.#local.write()
    await rm(path, { force: true })
    await this.#socket.listenAt(path)
  }

  /**
   * Ends streams, then running requests, and closes the port and the socket. Requests at the socket that have not ended by then, such as
   * operations of commands, go on until `close`.
   */
  async refuse(): Promise<void> {
    this.#streams.close()
    this.#deps.closeRoutes()
    await Promise.all([this.#port.close(), this.#socket.refuse(), this.#local.remove()])
  }

  /** Closes the remaining connections of the socket. */
  async close(): Promise<void> {
    await this.#socket.close()
  }

  #newListener(): Listener {
    const { clock, tokens, routes, refusalPage, loginPage } = this.#deps
    const failures = new FailureLimit(clock)
    const page = webRefusal(refusalPage)
    const known = { sessions: this.#sessions, tokens, local: this.#local }
    const account = accountRoutes({
      sessions: this.#sessions,
      failures,
      loginPage,
      loggedOut: () => void this.#streams.confirmAll(),
      refused: (address) => this.#warn(`login refused: wrong or expired code from ${address}`),
    })
    return routeListener({
      routes: [...account, ...routes],
      clock,
      admit: webAdmission({
        rules: () => this.#rules,
        authenticate: authentication(known),
        confirm: confirmation(known),
        failures,
        remedies: ADMIN_REMEDIES,
      }),
      refusal: (failed) => (failed.requester?.role === 'local' ? commandProblem(failed.error, failed.requestId) : page(failed)),
      headers: WEB_HEADERS,
      streams: this.#streams,
      slots: newSlots(clock),
      bodies: new BodyRoom(clock),
      unread: new UnreadAnswers(clock),
      refused: (problem, failed) => this.#note(problem, failed),
    })
  }

  /** Logs a refused or failed request, without its query. */
  #note({ kind: { status }, message }: Problem, { request, requestId }: FailedRequest): void {
    const [path = ''] = (request.url ?? '').split('?', 1)
    // A screen without a session leads to the login.
    if (status === 401 && isNavigation(request)) return
    const text = `${request.method} ${path.slice(0, 200)} from ${addressOf(request, this.#rules.proxies)} (request ${requestId}): ${message}`
    if (LOGGED_CODES.has(status)) this.#warn(`request refused (${status}): ${text}`)
    else if (status === 500) this.#deps.events.emit({ kind: 'note', level: 'error', text: `admin: request failed: ${text}` })
  }

  #warn(text: string): void {
    this.#deps.events.emit({ kind: 'note', level: 'warning', text: `admin: ${text}` })
  }
}

/** Reads and validates the certificate of admin_listen. Returns null when the port has no TLS. Throws CertificateUnusable. */
export const adminCertificate = (config: Config): WebCertificate | null =>
  config.admin_listen === '' || config.admin_tls_cert_file === ''
    ? null
    : readKeyPair('admin_tls', config.admin_tls_cert_file, config.admin_tls_key_file)

export const ADMIN_REMEDIES = {
  host: 'use localhost or the address of the machine, or add the name to admin_hosts',
  credential: 'send a token (Authorization: Bearer), or log in with the link of `deferd page`',
}

/** Refusals for lack of rights. */
const LOGGED_CODES: ReadonlySet<number> = new Set([401, 403, 421, 429])

const rulesOf = (config: Config): WebRules => ({
  hosts: new Set(config.admin_hosts.map(hostName)),
  proxies: new Networks(config.admin_proxies, 'admin_proxies'),
  needsProxy: needsProxy(config),
})
