/**
 * The control socket: how commands ask the daemon, which alone may change the queue. HTTP on a Unix socket that only
 * the owner of the queue can open; orders are answered with JSON lines that say how far they have come, the last one
 * with the outcome.
 */
import { chmod, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { z } from 'zod'
import type { Clock, Duration } from '../mail/clock.ts'
import { OPERATIONS, type Operations, type Order, type Progress, type Tally } from '../queue/operations.ts'
import { controlPath } from './control-path.ts'

/** One line of the answer to an order. */
export type OrderReply =
  | { readonly kind: 'progress'; readonly soFar: Progress }
  | { readonly kind: 'done'; readonly tally: Tally }
  | { readonly kind: 'failed'; readonly why: string; readonly exitCode: number }

const optionalText = z.string().optional()

const queueShape = z.enum(['incoming', 'active', 'deferred', 'hold', 'corrupt'])

const filterShape = z.strictObject({
  queueId: optionalText,
  sender: optionalText,
  recipient: optionalText,
  destination: optionalText,
  queue: queueShape.or(z.literal('trash')).optional(),
  arrivedBefore: z.number().optional(),
  attemptsOver: z.number().optional(),
  reply: optionalText,
})

const orderShape: z.ZodType<Order> = z.strictObject({
  operation: z.enum(OPERATIONS),
  selection: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('ids'), ids: z.array(z.string()) }),
    z.strictObject({ kind: z.literal('filter'), filter: filterShape, limit: z.number().optional() }),
  ]),
  queues: z.array(queueShape).optional(),
  purge: z.boolean().optional(),
  dryRun: z.boolean().optional(),
  who: z.string(),
  words: z.string(),
})

const destinationShape = z.strictObject({ destination: z.string().min(1), who: z.string() })

/** Room for a million queue ids. */
const LONGEST_ORDER = 32 * 1024 * 1024

/** How often an order says how far it has come. */
const TELL_EVERY: Duration = 100

/** EX_SOFTWARE, for failures that name no code of their own. */
const SOFTWARE = 70

class BadRequest extends Error {
  override readonly name = 'BadRequest'
}

async function readJson<T>(request: IncomingMessage, shape: z.ZodType<T>): Promise<T> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > LONGEST_ORDER) throw new BadRequest('the order is too long')
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  try {
    return shape.parse(JSON.parse(text))
  } catch (cause) {
    throw new BadRequest(`the order cannot be understood: ${(cause as Error).message}`, { cause })
  }
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

const exitCodeOf = (error: unknown): number =>
  typeof error === 'object' && error !== null && 'exitCode' in error && typeof error.exitCode === 'number' ? error.exitCode : SOFTWARE

export interface ControlParts {
  readonly queueDirectory: string
  readonly operations: Operations
  readonly clock: Clock
  readonly pid: number
}

export class ControlServer {
  readonly #parts: ControlParts
  readonly #path: string
  readonly #server: Server

  constructor(parts: ControlParts) {
    this.#parts = parts
    this.#path = controlPath(parts.queueDirectory)
    this.#server = createServer((request, response) => void this.#serve(request, response))
  }

  /** Opens the socket. The caller holds the lock of the queue, so a socket that is there was left behind. */
  async start(): Promise<void> {
    await rm(this.#path, { force: true })
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.#path, resolve)
    })
    await chmod(this.#path, 0o600)
  }

  /** Closes the socket; an order that is being carried out is finished first. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Nobody waits for the answer any more; what was ordered is done all the same.
    response.on('error', () => undefined)
    try {
      await this.#route(request, response)
    } catch (error) {
      const failed: OrderReply = { kind: 'failed', why: (error as Error).message, exitCode: exitCodeOf(error) }
      if (response.headersSent) response.end(`${JSON.stringify(failed)}\n`)
      else answer(response, error instanceof BadRequest ? 400 : 500, failed)
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operations, pid } = this.#parts
    switch (`${request.method} ${request.url}`) {
      case 'GET /status':
        return answer(response, 200, { pid })
      case 'GET /destinations':
        return answer(response, 200, operations.destinations())
      case 'POST /orders':
        return this.#perform(await readJson(request, orderShape), response)
      case 'POST /suspend': {
        const { destination, who } = await readJson(request, destinationShape)
        await operations.suspend(destination, who)
        return answer(response, 200, {})
      }
      case 'POST /resume': {
        const { destination, who } = await readJson(request, destinationShape)
        await operations.resume(destination, who)
        return answer(response, 200, {})
      }
      default:
        return answer(response, 404, { kind: 'failed', why: `no such request: ${request.method} ${request.url}`, exitCode: SOFTWARE })
    }
  }

  async #perform(order: Order, response: ServerResponse): Promise<void> {
    const { operations, clock } = this.#parts
    const tell = (line: OrderReply) => response.write(`${JSON.stringify(line)}\n`)
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    let untold: Progress = { matched: 0, changed: 0, unknown: [], ids: [] }
    let toldAt = clock.monotonic()
    const tellProgress = () => {
      tell({ kind: 'progress', soFar: untold })
      untold = { ...untold, ids: [] }
      toldAt = clock.monotonic()
    }
    const perform = operations.perform(order, ({ matched, changed, ids }) => {
      untold = { matched, changed, unknown: [], ids: [...untold.ids, ...ids] }
      if (clock.monotonic() - toldAt >= TELL_EVERY) tellProgress()
    })
    // What was done is told also when the rest fails.
    const tally = await perform.finally(tellProgress)
    tell({ kind: 'done', tally })
    response.end()
  }
}
