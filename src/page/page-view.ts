/** The facts of a request that every screen needs, and the answer that carries a screen. */
import type { Causes } from '../queries/counts/causes.ts'
import type { Senders } from '../queries/counts/senders.ts'
import type { Now } from '../queries/now.ts'
import type { RelayHealth, QueueView, Visible } from '../queries/queue-view.ts'
import type { Config } from '../config/options.ts'
import { MailClasses } from '../config/values/mail-classes.ts'
import { sharedPlace } from '../config/values/queue-place.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { auditName, grants, type AuthenticatedClient, type Requester } from '../http/requests/requester.ts'
import type { RequestBody } from '../http/request-body.ts'
import { route, type Answer, type Route, type RouteRequest } from '../http/route-table.ts'
import { VERSION } from '../system/version.ts'
import type { InvalidMember } from '../presentation/checked-value.ts'
import type { Html } from '../presentation/html.ts'
import { asSentence, ended } from '../presentation/text.ts'
import type { FormProblem } from './markup/fields.ts'
import { document, type Screen } from './markup/frame.ts'
import { unansweredNodes } from '../queries/nodes.ts'
import { hereOf, rootOf, type View, type VirtualTime } from './markup/view.ts'
import { refusedQueryScreen } from './screens/failure-screen.ts'
import { checkedQuery, type AskedParameters, type ScreenParameters } from './markup/screen-parameters.ts'
import { chosenZone, zoneClock } from './shown-zone.ts'
import { FILES_FOLDER } from './static-files.ts'

export interface PageDeps {
  readonly view: QueueView
  /** The clock of a relay in virtual time, which a person may advance; absent for one in real time. */
  readonly virtualTime?: (() => VirtualTime) | undefined
}

export interface ScreenDeps extends PageDeps {
  readonly now: Now
  readonly causes: Causes
  readonly senders: Senders
}

/** Maximum size of a form in bytes. A plan names up to 50 messages. */
export const FORM_LIMIT = 256 * 1024

/** The client of a request. Throws Problem for a request without a login. */
export function requesterOf({ requester }: Pick<RouteRequest<unknown>, 'requester'>): Requester {
  if (requester === null) throw new Problem(HTTP_PROBLEMS.unauthenticated, 'log in with the link of `deferd page`')
  return requester
}

export const orUndefined = (value: string): string | undefined => (value === '' ? undefined : value)

/** The values of a form that are not empty. */
export const given = (fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))

/** The first mistake in a form. A member of a list is in the field of the list. */
export const problemOf = ([first]: readonly InvalidMember[]): FormProblem =>
  first === undefined ? 'The form is invalid.' : { name: String(first.path[0] ?? ''), detail: first.detail }

/** The mistake in a form for which a query refused it. Throws an error of another kind again. */
export function problemIn(error: unknown): FormProblem {
  if (!(error instanceof Problem) || error.kind !== HTTP_PROBLEMS.invalid) throw error
  const [first] = error.errors
  return first === undefined ? asSentence(ended(error.summary)) : { name: first.pointer.replace(/^\//, ''), detail: first.detail }
}

const nodeOf = (config: Config): string | undefined => (sharedPlace(config) === null ? undefined : config.node_name)

interface ViewedRequest extends Pick<RouteRequest<unknown>, 'parameters' | 'query' | 'headers'> {
  readonly requester: AuthenticatedClient | null
}

/** Facts for the screen at a route's path, such as `/messages/:id`. They need no open queue, so that a screen can say that none is. */
export function viewOf(
  { view, virtualTime }: PageDeps,
  { requester, parameters, query, headers }: ViewedRequest,
  path: string,
  health: RelayHealth | null,
): View {
  const { config } = view.loaded()
  return {
    root: rootOf(path),
    here: hereOf(path, parameters, query),
    now: view.clock.wall.now(),
    clock: zoneClock(view.clock, chosenZone(headers.cookie)),
    relay: config.myhostname,
    node: nodeOf(config),
    unanswered: nodeOf(config) === undefined ? undefined : () => unansweredNodes(view),
    version: VERSION,
    files: FILES_FOLDER,
    classes: new MailClasses(config.class, config.default_class).names,
    health,
    virtualTime: virtualTime?.(),
    requester: {
      name: requester === null ? '' : auditName(requester),
      mayAdminister: requester !== null && grants(requester.role, 'admin'),
      mayOperate: requester !== null && grants(requester.role, 'operator'),
      mayReadContent: requester?.content ?? false,
      destinations: requester?.destinations,
    },
  }
}

const NO_PARAMETERS = {} as const satisfies ScreenParameters

/** A request for a screen, by a client with a login. */
export interface ShownRequest<Declared extends ScreenParameters = typeof NO_PARAMETERS> extends RouteRequest<undefined> {
  /** The parameters of the query that the screen declares. */
  readonly asked: AskedParameters<Declared>
  readonly requester: Requester
  /** Pattern of the destinations that the client may see; null for all. */
  readonly visible: Visible
}

export interface ScreenPlace<Declared extends ScreenParameters = typeof NO_PARAMETERS> {
  readonly path: string
  readonly role?: 'viewer' | 'operator' | 'admin'
  readonly slots?: Route['slots']
  /** The parameters of the query. One that is not declared is refused. */
  readonly parameters?: Declared
}

export const screenRoute = <const Declared extends ScreenParameters = typeof NO_PARAMETERS>(
  deps: PageDeps,
  { path, role = 'viewer', slots, parameters }: ScreenPlace<Declared>,
  make: (request: ShownRequest<Declared>, view: View) => Promise<Answer>,
): Route =>
  route({
    method: 'GET',
    path,
    role,
    ...(slots === undefined ? {} : { slots }),
    handler: async (request) => {
      const requester = requesterOf(request)
      const view = viewOf(deps, request, path, await deps.view.health())
      const checked = checkedQuery(request.query, parameters ?? (NO_PARAMETERS as Declared))
      if (checked.kind === 'refused') return screenAnswer(view, refusedQueryScreen(view, checked), 422)
      return make({ ...request, requester, visible: requester.destinations, asked: checked.asked }, view)
    },
  })

/** A form that a client with a login has sent. */
export interface SentForm<Body> extends RouteRequest<Body> {
  readonly requester: Requester
}

/** A form that is answered with a screen: with what is shown once, or with its mistakes. A GET of the same path shows the form. */
export const formRoute = <Body = undefined>(
  deps: PageDeps,
  { path, role, body }: { readonly path: string; readonly role: 'operator' | 'admin'; readonly body?: RequestBody<Body> },
  make: (request: SentForm<Body>, view: View) => Promise<Answer>,
): Route =>
  route({
    method: 'POST',
    path,
    role,
    ...(body === undefined ? {} : { body }),
    handler: async (request) =>
      make({ ...request, requester: requesterOf(request) }, viewOf(deps, request, path, await deps.view.health())),
  })

const htmlAnswer = (markup: string, status: number): Extract<Answer, { kind: 'text' }> => ({
  kind: 'text',
  status,
  contentType: 'text/html; charset=utf-8',
  text: markup,
  headers: { 'cache-control': 'no-store' },
})

export const screenAnswer = (view: View, screen: Screen, status = 200): Extract<Answer, { kind: 'text' }> =>
  htmlAnswer(document(view, screen), status)

/** A part of a screen, which a script puts in the place of the former one. */
export const markupAnswer = ({ markup }: Html): Answer => htmlAnswer(markup, 200)
