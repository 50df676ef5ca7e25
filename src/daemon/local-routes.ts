/**
 * Routes below /api/v1/local, which only commands on this machine may use: facts in the memory of the daemon in their internal form, logins
 * of the page, and changes that name files of this machine. They change with the version, and are no part of the OpenAPI document.
 */
import { PLACES } from '../config/values/queue-place.ts'
import type { Actor } from '../store/records/audit-log.ts'
import { z } from 'zod'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { CODE_LIFETIME, type PageUser } from '../admin/sessions.ts'
import { BASE } from '../http/command-protocol.ts'
import { json, SMALL_BODY } from '../api/route/api-route.ts'
import { PROGRESS_INTERVAL } from '../api/route/operation-lines.ts'
import { jsonBody } from '../http/request-body.ts'
import { actorOf, CLIENT_ROLES, type Requester } from '../http/requests/requester.ts'
import { route, type Route, type RouteRequest } from '../http/route-table.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../queue/queue-move.ts'
import type { LiveStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../queue/scheduler/destination.ts'
import type { Clock, Duration } from '../system/clock.ts'
import { NOT_OPEN } from './queue-api.ts'
import type { Records } from '../store/records/records.ts'
import { MOST_TRACES, traceWords, type TraceProgress, type Traces, type TraceSummary, type TraceTerms } from '../sessions/traces.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import type { SharingNode } from './node/opened-queue.ts'
import type { MoveService } from './move-service.ts'

/** A code for a login of the page. */
export interface LoginCode {
  readonly code: string
  /** In ms; a code can be used once. */
  readonly lifetime: Duration
  /** URL of the page; null while admin_listen is off. */
  readonly url: string | null
}

/** The open queue. */
export interface LocalQueue {
  readonly destinations: () => readonly LiveDestination[]
  readonly status: () => Promise<LiveStatus>
  readonly moves: Pick<MoveService, 'perform'>
  readonly traces: Pick<Traces, 'reserve'>
  readonly audit: Pick<Records['audit'], 'add'>
  /** Null for a queue with one owner. */
  readonly node: Pick<SharingNode, 'me' | 'peers'> | null
}

interface LocalRoutesDeps {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  /** Null while no queue is open. */
  readonly queue: () => LocalQueue | null
  readonly newCode: (user: PageUser) => string
  readonly url: () => string | null
  /** Reads the tables and the other files of the configuration in effect again. Rejects without effect when one cannot be used. */
  readonly readFiles: () => Promise<void>
  /** Reads the configuration again. Resolves when it is in effect, rejects without effect when it has a problem. */
  readonly rereads: () => Promise<void>
}

const userShape = z.strictObject({
  user: z.string().min(1).max(64),
  role: z.enum(CLIENT_ROLES),
  content: z.boolean(),
} satisfies Record<keyof PageUser, z.ZodType>)

const moveShape = z.strictObject({
  from: z.enum(Object.values(PLACES).map(({ movedFrom }) => movedFrom)),
  to: z.string().min(1),
  isFinal: z.boolean(),
  durability: z.enum(['replicated', 'primary']),
} satisfies Record<Exclude<keyof MoveRequest, keyof Actor>, z.ZodType>)

const pattern = z.string().min(1).max(1_000).optional()

const traceShape = z.strictObject({
  direction: z.enum(['to', 'from']),
  destination: pattern,
  peer: pattern,
  source: pattern,
  sender: pattern,
  recipient: pattern,
  listener: pattern,
  count: z.int().min(1),
  for: z.number().positive(),
} satisfies Record<keyof TraceTerms, z.ZodType>)

/** One line of the answer to a trace. */
type TraceLine = { readonly progress: TraceProgress } | { readonly done: TraceSummary }

/** One line of the answer to a move. */
type MoveLine = { readonly progress: MoveProgress } | { readonly done: MoveSummary }

const orderedBy = ({ requester }: RouteRequest<unknown>): Actor => actorOf(requester as Requester)

const opened = (queue: LocalRoutesDeps['queue']): LocalQueue => {
  const found = queue()
  if (found === null) throw new StoreUnavailable(NOT_OPEN)
  return found
}

/** The node of a trace that would miss the sessions of others; null where no other node runs. */
async function tracedNode({ me, peers }: Pick<SharingNode, 'me' | 'peers'>, { destination }: TraceTerms): Promise<TraceProgress | null> {
  const [all, ownerOf] = await Promise.all([peers.nodes.list(), peers.owners()])
  const node = all.find(({ id }) => id === me)?.name ?? ''
  const others = all.filter(({ id, settings }) => id !== me && settings !== '').map(({ name }) => name)
  const owner = destination === undefined || destination.includes('*') ? null : ownerOf(destination.toLowerCase())
  return others.length === 0 ? null : { node, others, deliverer: owner === node ? null : owner }
}

/** Shows the lines of sessions until the trace ends, or its client leaves. */
const traceRoute = ({ clock, queue }: LocalRoutesDeps): Route =>
  route({
    role: 'local',
    method: 'POST',
    path: `${BASE}/local/trace`,
    body: jsonBody(traceShape, SMALL_BODY),
    handler: (request) => ({
      kind: 'lines',
      produce: async (send: (line: TraceLine) => void, isBehind) => {
        const { audit, traces, node } = opened(queue)
        const place = traces.reserve()
        if (place === null) throw new Problem(HTTP_PROBLEMS.busy, `${MOST_TRACES} traces run already: wait until one ends, or stop it`)
        const record = { at: clock.now(), ...orderedBy(request), action: 'trace', arguments: traceWords(request.body), changed: 0 }
        const begun = audit.add(record).then(() => node && tracedNode(node, request.body))
        const traced = await begun.catch((error: unknown) => {
          place.leave()
          throw error
        })
        if (traced !== null) send({ progress: traced })
        const trace = place.start(request.body, { write: (progress) => send({ progress }), isBehind })
        if (request.signal.aborted) trace.stop()
        request.signal.addEventListener('abort', () => trace.stop(), { once: true })
        send({ done: await trace.ended })
      },
    }),
  })

export function localRoutes(deps: LocalRoutesDeps): readonly Route[] {
  const { clock, queue, newCode, url, readFiles, rereads } = deps
  const local = { role: 'local' } as const
  const path = (name: string): string => `${BASE}/local/${name}`
  return [
    route({ ...local, method: 'GET', path: path('destinations'), handler: () => json(queue()?.destinations() ?? null) }),
    route({ ...local, method: 'GET', path: path('status'), handler: async () => json((await queue()?.status()) ?? null) }),
    route({ ...local, method: 'GET', path: path('running'), handler: () => json({}) }),
    route({ ...local, method: 'POST', path: path('read-files'), handler: async () => (await readFiles(), json({})) }),
    route({ ...local, method: 'POST', path: path('reload'), handler: async () => (await rereads(), json({})) }),
    route({
      ...local,
      method: 'POST',
      path: path('login-codes'),
      body: jsonBody(userShape, SMALL_BODY),
      handler: ({ body }) => json({ code: newCode(body), lifetime: CODE_LIFETIME, url: url() } satisfies LoginCode),
    }),
    traceRoute(deps),
    route({
      ...local,
      method: 'POST',
      path: path('move'),
      body: jsonBody(moveShape, SMALL_BODY),
      handler: (request) => ({
        kind: 'lines',
        produce: async (send: (line: MoveLine) => void) => {
          let sentAt = clock.monotonic()
          const move = { ...request.body, ...orderedBy(request) }
          const done = await opened(queue).moves.perform(move, (progress) => {
            if (clock.monotonic() - sentAt < PROGRESS_INTERVAL) return
            sentAt = clock.monotonic()
            send({ progress })
          })
          send({ done })
        },
      }),
    }),
  ]
}
