/**
 * /metrics and /healthz over HTTP. Reading only; nothing else is served, and nothing is believed of what clients send.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock, Duration } from '../mail/clock.ts'
import type { Endpoint } from '../delivery/net.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Something that must go on for the daemon to be healthy. Rejects, or does not settle, when it does not. */
export interface HealthCheck {
  readonly name: string
  readonly run: () => Promise<void>
}

export interface HttpParts {
  readonly metrics: Pick<Metrics, 'contentType' | 'render'>
  readonly checks: readonly HealthCheck[]
  readonly clock: Clock
}

/** What takes longer is not healthy. */
const PATIENCE: Duration = 5_000

export class HttpServer {
  readonly #parts: HttpParts
  readonly #server: Server

  constructor(parts: HttpParts) {
    this.#parts = parts
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#server.headersTimeout = PATIENCE
    this.#server.requestTimeout = PATIENCE
  }

  /** Opens the port; rejects with the system's error when it cannot be had. */
  async listen({ address, port }: Endpoint): Promise<Endpoint> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, address, resolve)
    })
    const bound = this.#server.address() as AddressInfo
    return { address: bound.address, port: bound.port }
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client that has gone needs no answer.
    response.on('error', () => undefined)
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'text/plain', 'only GET is answered here\n')
    const [path = ''] = (request.url ?? '').split('?')
    try {
      if (path === '/metrics') answer(response, 200, this.#parts.metrics.contentType, await this.#parts.metrics.render())
      else if (path === '/healthz') await this.#health(response)
      else answer(response, 404, 'text/plain', 'there are /metrics and /healthz\n')
    } catch (error) {
      answer(response, 500, 'text/plain', `${(error as Error).message}\n`)
    }
  }

  async #health(response: ServerResponse): Promise<void> {
    const results = await Promise.all(this.#parts.checks.map(async (check) => [check.name, await this.#verdict(check)] as const))
    const healthy = results.every(([, verdict]) => verdict === 'ok')
    answer(response, healthy ? 200 : 503, 'application/json', `${JSON.stringify({ healthy, ...Object.fromEntries(results) })}\n`)
  }

  #verdict(check: HealthCheck): Promise<string> {
    return new Promise((resolve) => {
      const timer = this.#parts.clock.after(PATIENCE, () => resolve(`no answer within ${PATIENCE / 1000} s`))
      check
        .run()
        .then(
          () => 'ok',
          (error: unknown) => (error as Error).message,
        )
        .then(
          (verdict) => {
            timer.cancel()
            resolve(verdict)
          },
          () => undefined,
        )
    })
  }
}

function answer(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body)
}
