/**
 * Control socket of the daemon, which commands use because only the daemon may change the queue while it runs. The protocol is
 * HTTP on a Unix socket of mode 0600. The response to a long request is a sequence of JSON lines that report progress; the last line has
 * the outcome.
 */
import { rm } from 'node:fs/promises'
import { z } from 'zod'
import type { PolicyRemoval } from '../delivery/sts/policy-removal.ts'
import { seconds, type Clock, type Duration } from '../system/clock.ts'
import type { Operations, SuspensionRequest } from '../queue/operations.ts'
import type { LiveStatus } from '../queue/queue-status.ts'
import type { MoveProgress, MoveRequest, MoveSummary } from '../queue/queue-move.ts'
import { controlPath } from './admin/socket-path.ts'
import { BODY_LIMIT, operationRoutes, PROGRESS_INTERVAL } from './control-operations.ts'
import type { AccessEntries, AccessRequestedEntry } from '../access/access-entries.ts'
import { ACCESS_SUBJECTS } from '../store/access-entry.ts'
import type { MoveService } from './move-service.ts'
import type { Failure } from '../http/failure-line.ts'
import { jsonBody } from '../http/request-body.ts'
import { openServer, type OpenServer } from '../http/open-server.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import type { RequestTimes } from '../http/unparsed-requests.ts'

/** One line of the response to a move. */
export type MoveReply =
  | { readonly kind: 'progress'; readonly soFar: MoveProgress }
  | { readonly kind: 'done'; readonly summary: MoveSummary }
  | Failure

const TIMES: RequestTimes = { header: seconds(60), request: seconds(300) }
/** A client without a running operation delays the stop for this time. */
const GRACE: Duration = seconds(2)

const textOrNull = z.string().nullable()
/** In ms. A longer time would end at an instant that the queue cannot store as an integer. */
const durationOrNull = z.int().positive().max(8_000_000_000_000_000).nullable()

const destinationShape = z.strictObject({ destination: z.string().min(1), who: z.string() })

const suspensionShape = z.strictObject({
  destination: z.string().min(1),
  by: z.string(),
  duration: durationOrNull,
  reason: textOrNull,
} satisfies Record<keyof SuspensionRequest | 'destination', z.ZodType>)

const accessShape = z.strictObject({
  subject: z.enum(ACCESS_SUBJECTS),
  key: z.string(),
  action: z.string(),
  duration: durationOrNull,
  who: z.string(),
} satisfies Record<keyof AccessRequestedEntry, z.ZodType>)

const accessRemovalShape = z.strictObject({ subject: z.enum(ACCESS_SUBJECTS), key: z.string(), who: z.string() })

const policyRemovalShape = z.strictObject({ domain: z.string().min(1), who: z.string() } satisfies Record<keyof PolicyRemoval, z.ZodType>)

const moveShape = z.strictObject({
  from: z.enum(['directory', 'database']),
  to: z.string().min(1),
  isFinal: z.boolean(),
  durability: z.enum(['replicated', 'primary']),
  who: z.string(),
} satisfies Record<keyof MoveRequest, z.ZodType>)

const json = (value: unknown): Answer => ({ kind: 'json', status: 200, value })

const DONE = json({})

export interface ControlServerDeps {
  readonly queueDirectory: string
  readonly operations: Operations
  readonly access: Pick<AccessEntries, 'add' | 'remove'>
  readonly removeStsPolicy: (removal: PolicyRemoval) => Promise<boolean>
  readonly moves: Pick<MoveService, 'perform'>
  /** Reads the tables and the other files of the configuration in effect again. Rejects without effect when one cannot be used. */
  readonly readFiles: () => Promise<void>
  readonly routes?: readonly Route[]
  readonly clock: Clock
  readonly status: () => Promise<LiveStatus>
}

export class ControlServer {
  readonly #deps: ControlServerDeps
  readonly #path: string
  readonly #open: OpenServer

  constructor(deps: ControlServerDeps) {
    this.#deps = deps
    this.#path = controlPath(deps.queueDirectory)
    // Unlimited: a command stopped by its operator (SIGTSTP) reads the outcome of its operation when it continues.
    this.#open = openServer(this.#routes(), { clock: deps.clock, times: TIMES, limitsReading: false })
  }

  /** Opens the socket. The caller holds the lock of the queue, so an existing socket file was left by a killed daemon and is removed. */
  async start(): Promise<void> {
    await rm(this.#path, { force: true })
    const { server } = this.#open
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      // The umask gives the socket its mode at creation. A later chmod would leave time for other users to connect.
      const mask = process.umask(0o177)
      server.listen(this.#path, resolve)
      process.umask(mask)
    })
  }

  /** Closes the socket. Resolves when the running operations have ended. */
  async stop(): Promise<void> {
    await this.#open.connections.drain(GRACE)
  }

  #routes(): readonly Route[] {
    const { operations, clock, routes = [] } = this.#deps
    return [...routes, ...operationRoutes(operations, clock), ...this.#stateRoutes(), ...this.#queueRoutes(), ...this.#recordRoutes()]
  }

  #stateRoutes(): readonly Route[] {
    const { operations, status, readFiles } = this.#deps
    return [
      route({ method: 'GET', path: '/destinations', role: 'local', handler: () => json(operations.destinations()) }),
      route({ method: 'GET', path: '/status', role: 'local', handler: async () => json(await status()) }),
      route({ method: 'POST', path: '/read-files', role: 'local', handler: async () => (await readFiles(), DONE) }),
    ]
  }

  #queueRoutes(): readonly Route[] {
    const { operations } = this.#deps
    return [
      route({
        method: 'POST',
        path: '/move',
        role: 'local',
        body: jsonBody(moveShape, BODY_LIMIT),
        handler: ({ body }) => ({ kind: 'lines', produce: (send) => this.#move(body, send) }),
      }),
      route({
        method: 'POST',
        path: '/suspend',
        role: 'local',
        body: jsonBody(suspensionShape, BODY_LIMIT),
        handler: async ({ body: { destination, ...request } }) => (await operations.suspend(destination, request), DONE),
      }),
      route({
        method: 'POST',
        path: '/resume',
        role: 'local',
        body: jsonBody(destinationShape, BODY_LIMIT),
        handler: async ({ body: { destination, who } }) => (await operations.resume(destination, who), DONE),
      }),
    ]
  }

  #recordRoutes(): readonly Route[] {
    const { access, removeStsPolicy } = this.#deps
    return [
      route({
        method: 'POST',
        path: '/access',
        role: 'local',
        body: jsonBody(accessShape, BODY_LIMIT),
        handler: async ({ body }) => (await access.add(body), DONE),
      }),
      route({
        method: 'POST',
        path: '/access/remove',
        role: 'local',
        body: jsonBody(accessRemovalShape, BODY_LIMIT),
        handler: async ({ body: { subject, key, who } }) => json({ removed: await access.remove(subject, key, who) }),
      }),
      route({
        method: 'POST',
        path: '/tls/forget',
        role: 'local',
        body: jsonBody(policyRemovalShape, BODY_LIMIT),
        handler: async ({ body }) => json({ removed: await removeStsPolicy(body) }),
      }),
    ]
  }

  async #move(request: MoveRequest, send: (reply: MoveReply) => void): Promise<void> {
    const { moves, clock } = this.#deps
    let sentAt = clock.monotonic()
    const summary = await moves.perform(request, (soFar) => {
      if (clock.monotonic() - sentAt < PROGRESS_INTERVAL) return
      sentAt = clock.monotonic()
      send({ kind: 'progress', soFar })
    })
    send({ kind: 'done', summary })
  }
}
