/**
 * Routes below /api/v1/local, which only commands on this machine may use: facts in the memory of the daemon in their internal form, logins
 * of the page, and changes that name files of this machine. They change with the version, and are no part of the OpenAPI document.
 */
import { z } from 'zod'
import { CODE_LIFETIME, type PageUser } from '../admin/sessions.ts'
import { BASE } from '../http/command-protocol.ts'
import { json, SMALL_BODY } from '../api/api-route.ts'
import { PROGRESS_INTERVAL } from '../api/operation-lines.ts'
import { jsonBody } from '../http/request-body.ts'
import { auditName, CLIENT_ROLES, type Requester } from '../http/requester.ts'
import { route, type Route, type RouteRequest } from '../http/route-table.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../queue/queue-move.ts'
import type { LiveStatus } from '../queue/queue-status.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { Clock, Duration } from '../system/clock.ts'
import { NOT_OPEN } from './queue-api.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
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
}

interface LocalRoutesDeps {
  readonly clock: Pick<Clock, 'monotonic'>
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
  from: z.enum(['directory', 'database']),
  to: z.string().min(1),
  isFinal: z.boolean(),
  durability: z.enum(['replicated', 'primary']),
} satisfies Record<Exclude<keyof MoveRequest, 'who'>, z.ZodType>)

/** One line of the answer to a move. */
type MoveLine = { readonly progress: MoveProgress } | { readonly done: MoveSummary }

const whoOf = ({ requester }: RouteRequest<unknown>): string => auditName(requester as Requester)

export function localRoutes({ clock, queue, newCode, url, readFiles, rereads }: LocalRoutesDeps): readonly Route[] {
  const local = { role: 'local' } as const
  const path = (name: string): string => `${BASE}/local/${name}`
  return [
    route({ ...local, method: 'GET', path: path('destinations'), handler: () => json(queue()?.destinations() ?? null) }),
    route({ ...local, method: 'GET', path: path('status'), handler: async () => json((await queue()?.status()) ?? null) }),
    route({ ...local, method: 'POST', path: path('read-files'), handler: async () => (await readFiles(), json({})) }),
    route({ ...local, method: 'POST', path: path('reload'), handler: async () => (await rereads(), json({})) }),
    route({
      ...local,
      method: 'POST',
      path: path('login-codes'),
      body: jsonBody(userShape, SMALL_BODY),
      handler: ({ body }) => json({ code: newCode(body), lifetime: CODE_LIFETIME, url: url() } satisfies LoginCode),
    }),
    route({
      ...local,
      method: 'POST',
      path: path('move'),
      body: jsonBody(moveShape, SMALL_BODY),
      handler: (request) => ({
        kind: 'lines',
        produce: async (send: (line: MoveLine) => void) => {
          let sentAt = clock.monotonic()
          const move = { ...request.body, who: whoOf(request) }
          const opened = queue()
          if (opened === null) throw new StoreUnavailable(NOT_OPEN)
          const done = await opened.moves.perform(move, (progress) => {
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
