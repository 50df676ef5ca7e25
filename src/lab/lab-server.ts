/** The HTTP server of a lab: admission, its routes, and the admin API and the page of each world below the path of the world. */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ApiRoute } from '../api/route/api-route.ts'
import { openApiRoute, type DescribedApi } from '../api/openapi.ts'
import { Networks } from '../config/values/networks.ts'
import { BodyRoom } from '../http/body-room.ts'
import { EventStreams } from '../http/event-streams.ts'
import { FailureLimit } from '../http/failure-limit.ts'
import { percentDecoded } from '../http/requests/percent-encoding.ts'
import { HTTP_PROBLEMS, Problem, problemOf } from '../http/problem-details.ts'
import { crossSiteReason } from '../http/requests/request-origin.ts'
import { requestTarget, type RequestTarget } from '../http/requests/request-target.ts'
import { grants, type AuthenticatedClient, type Role } from '../http/requests/requester.ts'
import { routeListener, type Admitted, type FailedRequest, type Listener } from '../http/route-listener.ts'
import { matchRoute, type Route } from '../http/route-table.ts'
import { newSlots, type AllSlots } from '../http/slots.ts'
import { UnreadAnswers } from '../http/unread-answers.ts'
import { webAdmission, type WebRules } from '../http/web-admission.ts'
import { WEB_HEADERS } from '../http/web-headers.ts'
import { problemAnswer } from '../http/problem-answer.ts'
import { isNavigation, webRefusal, type RefusalPage } from '../http/web-refusal.ts'
import { WebServer } from '../http/web-server.ts'
import type { Endpoint } from '../system/net.ts'
import type { MachineClock } from '../system/clock.ts'
import { LAB_EXAMPLES } from './examples/lab-examples.ts'
import type { Lab } from './lab.ts'
import { LAB_BASE } from './lab-route.ts'
import { mailboxRoutes } from './mailbox-routes.ts'
import { historyRoutes, labOperationRoutes, recipientRoutes } from './recipient-routes.ts'
import { ruleRoutes } from './rule-routes.ts'
import { webhookRoutes } from './world-webhook-routes.ts'
import { worldEventRoutes } from './world-event-routes.ts'
import { clockRoutes, worldRoutes } from './world-routes.ts'
import type { WorldSite } from './world-site.ts'

export const LAB_API: DescribedApi = {
  base: LAB_BASE,
  title: 'deferd lab',
  description: 'Worlds in which a relay runs in virtual time, for tests in any language.',
  securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'the token of --token-file; a lab on loopback needs none' } },
  examples: LAB_EXAMPLES,
}

/** The table of the lab: routes, shapes and the OpenAPI document are derived from it. */
export function labRoutes(lab: Lab): readonly ApiRoute[] {
  const routes = [
    ...worldRoutes(lab),
    ...clockRoutes(lab),
    ...ruleRoutes(lab),
    ...recipientRoutes(lab),
    ...mailboxRoutes(lab),
    ...worldEventRoutes(lab),
    ...webhookRoutes(lab),
    ...labOperationRoutes(lab),
    ...historyRoutes(lab),
  ]
  return [...routes, openApiRoute(routes, LAB_API)]
}

/** The client of a lab. */
const CLIENT: AuthenticatedClient = { role: 'operator', content: true, destinations: null, name: 'lab', address: 'local' }

const RULES: WebRules = { hosts: new Set(), proxies: new Networks([], '--http'), needsProxy: false }

const REMEDIES = {
  host: 'use localhost, or the address of --http',
  credential: 'send the token of --token-file (Authorization: Bearer)',
}

type Admit = (request: IncomingMessage, target: RequestTarget, role: Role) => Promise<Admitted>

/** Admits requests: without a token those of this machine, with one those that have it. */
function admission(token: Buffer | null, clock: MachineClock): Admit {
  const isToken = (text: string): boolean => token !== null && text.length === token.length && timingSafeEqual(Buffer.from(text), token)
  const admit = webAdmission({
    rules: () => RULES,
    authenticate: async (credential) => (credential.kind === 'token' && isToken(credential.text) ? CLIENT : null),
    confirm: async () => true,
    failures: new FailureLimit(clock),
    remedies: REMEDIES,
  })
  return async (request, target, role) => {
    const admitted = await admit(request, target, token === null ? 'anyone' : role)
    if (target.query.has('advance')) assertOwnSite(request, admitted)
    if (token !== null) return admitted
    if (grants(CLIENT.role, role)) return { ...admitted, requester: CLIENT }
    throw new Problem(HTTP_PROBLEMS.notPermitted, `the relay of a world permits the role ${CLIENT.role} only, and this needs ${role}`)
  }
}

/** Throws Problem for a request of another site. A wait that advances the clock changes the world, although its method is GET. */
function assertOwnSite({ headers }: IncomingMessage, { client: { scheme, host } }: Admitted): void {
  const { origin, 'sec-fetch-site': site } = headers
  const facts = { method: 'POST', origin, site: typeof site === 'string' ? site : undefined, ownOrigin: `${scheme}://${host}` }
  const reason = crossSiteReason({ ...facts, hasToken: false, hasCookie: false })
  if (reason !== null) throw new Problem(HTTP_PROBLEMS.crossSite, `request refused as one of another site: ${reason}`)
}

interface LabServerDeps {
  readonly lab: Lab
  readonly clock: MachineClock
  /** Token that clients send; null for none. */
  readonly token: string | null
  /** Called for each request that failed by a fault of the lab. */
  readonly failed: (text: string) => void
}

export class LabServer {
  readonly #deps: LabServerDeps
  readonly #routes: readonly Route[]
  readonly #streams: EventStreams
  readonly #slots: AllSlots
  readonly #bodies: BodyRoom
  readonly #unread: UnreadAnswers
  readonly #admit: Admit
  readonly #own: Listener
  readonly #server: WebServer

  constructor(deps: LabServerDeps) {
    const { lab, clock, token } = deps
    this.#deps = deps
    this.#routes = labRoutes(lab)
    this.#streams = new EventStreams(clock)
    this.#slots = newSlots(clock)
    this.#bodies = new BodyRoom(clock)
    this.#unread = new UnreadAnswers(clock)
    this.#admit = admission(token === null ? null : Buffer.from(token), clock)
    this.#own = this.#listenerOf(this.#routes, null)
    const listener: Listener = (request, response) => this.#listenerFor(request)(request, response)
    this.#server = new WebServer({ listener, clock, certificate: null })
  }

  /** Opens the port. Rejects with the error of the system. */
  listen(at: Endpoint): Promise<Endpoint> {
    return this.#server.listen(at)
  }

  /** Ends the streams, and closes the port. */
  async close(): Promise<void> {
    this.#streams.close()
    await this.#server.close()
  }

  #listenerOf(routes: readonly Route[], page: RefusalPage | null): Listener {
    const refused = page === null ? ({ error, requestId }: FailedRequest) => problemAnswer(problemOf(error), requestId) : webRefusal(page)
    return routeListener({
      routes,
      clock: this.#deps.clock,
      admit: this.#admit,
      refusal: refused,
      headers: WEB_HEADERS,
      streams: this.#streams,
      slots: this.#slots,
      bodies: this.#bodies,
      unread: this.#unread,
      refused: ({ kind: { status }, message, cause }, { request: { method, url }, requestId }) => {
        if (status !== 500) return
        const { stack } = cause instanceof Error ? cause : {}
        this.#deps.failed(`${method} ${(url ?? '').slice(0, 200)} failed (request ${requestId}): ${stack ?? message}`)
      },
    })
  }

  /** The listener of the world whose API or page a request names, with the path below that of the world; otherwise that of the lab. */
  #listenerFor(request: IncomingMessage): Listener {
    const target = requestTarget(request.url ?? '')
    const [, name, path] = /^\/lab\/v1\/worlds\/([^/]+)(\/.*)$/.exec(target?.path ?? '') ?? []
    if (target === undefined || name === undefined || path === undefined) return this.#own
    const site = this.#siteOf(name)
    const { method = '' } = request
    const isOwn = matchRoute(this.#routes, method, target.path).kind === 'found' && !isNavigation(request)
    if (site === null || isOwn || matchRoute(site.routes, method, path).kind === 'unknown-path') return this.#own
    const query = /\?.*$/s.exec(request.url ?? '')?.[0] ?? ''
    request.url = `${path}${query}`
    site.listener ??= this.#listenerOf(site.routes, site.page.refusal)
    return site.listener
  }

  #siteOf(name: string): WorldSite | null {
    const world = this.#deps.lab.find(percentDecoded(name) ?? name)
    // The API and the page are those of the relay.
    return world === undefined || world.facts.smtp === null ? null : world.site
  }
}
