/** A server of the admin API over sample routes, with sessions, tokens and a clock of the test. */
import { accountRoutes, type LoginPage } from '../../src/admin/account-routes.ts'
import { authentication, confirmation } from '../../src/admin/authentication.ts'
import { hashOf, newToken } from '../../src/admin/secrets.ts'
import { Sessions, type PageUser } from '../../src/admin/sessions.ts'
import { ADMIN_REMEDIES } from '../../src/daemon/admin/admin.ts'
import { Networks } from '../../src/config/values/networks.ts'
import { BodyRoom } from '../../src/http/body-room.ts'
import { EventStreams } from '../../src/http/event-streams.ts'
import { FailureLimit } from '../../src/http/failure-limit.ts'
import type { Problem } from '../../src/http/problem-details.ts'
import { routeListener } from '../../src/http/route-listener.ts'
import { route, type Route } from '../../src/http/route-table.ts'
import { newSlots } from '../../src/http/slots.ts'
import { UnreadAnswers } from '../../src/http/unread-answers.ts'
import { webAdmission, type WebRules } from '../../src/http/web-admission.ts'
import { WEB_HEADERS } from '../../src/http/web-headers.ts'
import { webRefusal, type RefusalPage } from '../../src/http/web-refusal.ts'
import type { RequestTimes } from '../../src/http/unparsed-requests.ts'
import { WebServer, type WebCertificate } from '../../src/http/web-server.ts'
import type { AccessToken } from '../../src/store/records/access-token.ts'
import { seededRandom } from '../../src/system/random.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { realClock } from './real-clock.ts'
import type { Clock } from '../../src/system/clock.ts'
import { ask, type RawResponse, type RequestParts } from './raw-http.ts'

export interface WebServerOptions {
  readonly routes?: readonly Route[]
  readonly hosts?: readonly string[]
  readonly proxies?: readonly string[]
  readonly needsProxy?: boolean
  readonly certificate?: WebCertificate | null
  readonly clock?: Clock
  readonly times?: RequestTimes
  /** The login; a bare form when absent. */
  readonly loginPage?: LoginPage
  /** The page of a refused request; a bare text when absent. */
  readonly refusalPage?: RefusalPage
}

const bareRefusal: RefusalPage = ({ kind, message }) => ({
  kind: 'text',
  status: kind.status,
  contentType: 'text/plain; charset=utf-8',
  text: `${kind.title}: ${message}\n`,
})

const WHOAMI = route({
  method: 'GET',
  path: '/api/v1/whoami',
  role: 'known',
  handler: ({ requester }) => ({ kind: 'json', status: 200, value: requester && { ...requester, requestId: undefined } }),
})

export class SampleServer {
  readonly sessions: Sessions
  readonly tokens = new Map<string, AccessToken>()
  readonly used: string[] = []
  readonly refused: Problem[] = []
  readonly streams: EventStreams
  readonly clock: Clock
  readonly server: WebServer
  readonly #random = seededRandom(1)
  port = 0

  constructor({
    routes = [],
    hosts = [],
    proxies = [],
    needsProxy = false,
    certificate = null,
    clock = realClock,
    times,
    loginPage = ({ problem }) => `<form method="post" action="login">${problem ?? ''}</form>`,
    refusalPage = bareRefusal,
  }: WebServerOptions) {
    this.clock = clock
    this.sessions = new Sessions({ clock, random: this.#random })
    this.streams = new EventStreams(clock)
    const failures = new FailureLimit(clock)
    const reader = { byHash: async (hash: string) => this.tokens.get(hash) }
    const store = { used: async (name: string, hour: number) => void this.used.push(`${name} ${hour}`) }
    const local = { matches: (text: string) => text === 'dfd-local_right', write: async () => undefined }
    const identity = { sessions: this.sessions, tokens: () => ({ clock, reader, store }), local }
    const rules: WebRules = { hosts: new Set(hosts), proxies: new Networks(proxies, 'admin_proxies'), needsProxy }
    const account = accountRoutes({
      sessions: this.sessions,
      failures,
      loginPage,
      loggedOut: () => void this.streams.confirmAll(),
      refused: () => undefined,
    })
    const listener = routeListener({
      routes: [...account, WHOAMI, ...routes],
      clock,
      admit: webAdmission({
        rules: () => rules,
        authenticate: authentication(identity),
        confirm: confirmation(identity),
        failures,
        remedies: ADMIN_REMEDIES,
      }),
      refusal: webRefusal(refusalPage),
      headers: WEB_HEADERS,
      streams: this.streams,
      slots: newSlots(clock),
      bodies: new BodyRoom(clock),
      unread: new UnreadAnswers(clock),
      refused: (problem) => void this.refused.push(problem),
    })
    // Time limits of connections are in real time.
    this.server = new WebServer({ listener, clock: systemClock, certificate, ...(times === undefined ? {} : { times }) })
  }

  static async open(options: WebServerOptions = {}): Promise<SampleServer> {
    const server = new SampleServer(options)
    server.port = (await server.server.listen({ address: '127.0.0.1', port: 0 })).port
    return server
  }

  async close(): Promise<void> {
    this.streams.close()
    await this.server.close()
  }

  /** Adds a token, and returns its text. */
  token(rights: Partial<AccessToken> = {}): string {
    const text = newToken(this.#random)
    const hash = hashOf(text)
    const token = {
      name: 'ci',
      role: 'viewer',
      content: false,
      destinations: null,
      addedAt: 0,
      addedBy: 'root',
      expiresAt: null,
      lastUsedAt: null,
    } as const
    this.tokens.set(hash, { ...token, hash, ...rights })
    return text
  }

  code(user: Partial<PageUser> = {}): string {
    return this.sessions.newCode({ user: 'alice', role: 'admin', content: true, ...user })
  }

  /** The cookie of a new session, as a browser sends it. */
  async cookie(user: Partial<PageUser> = {}): Promise<string> {
    const { status, headers } = await this.logIn(this.code(user))
    if (status !== 303) throw new Error(`login refused: ${status}`)
    return headers.get('set-cookie')?.split(';', 1)[0] ?? ''
  }

  logIn(code: string): Promise<RawResponse> {
    const fields = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: `http://127.0.0.1:${this.port}` }
    return this.ask({ method: 'POST', target: '/login', fields, body: `code=${code}` })
  }

  /** Asks with the host of a browser on this machine. */
  ask(parts: RequestParts): Promise<RawResponse> {
    return ask(this.port, { host: `127.0.0.1:${this.port}`, ...parts })
  }
}
