/** HTTP server of http_listen: `/metrics` and `/healthz`, read-only and without authentication. */
import type { AddressInfo } from 'node:net'
import { errorMessage } from '../system/caught-error.ts'
import { withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { openServer, type OpenServer } from '../http/open-server.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import type { RequestTimes } from '../http/unparsed-requests.ts'

/** A health condition. It fails when `run` rejects or does not settle within TIME_LIMIT. */
export interface HealthCheck {
  readonly name: string
  readonly run: () => Promise<void>
}

export interface HttpServerDeps {
  readonly metrics: Pick<Metrics, 'contentType' | 'render'>
  readonly checks: readonly HealthCheck[]
  readonly clock: Clock
}

/** Limit for a health check, and for receiving a request. */
const TIME_LIMIT: Duration = 5_000
const TIMES: RequestTimes = { header: TIME_LIMIT, request: TIME_LIMIT }
/** Up to this age, a health result is served again, because a check costs a disk sync. */
const HEALTH_AGE: Duration = 1_000
/** Further connections are closed on accept. */
const MAX_CONNECTIONS = 64

export class HttpServer {
  readonly #deps: HttpServerDeps
  readonly #open: OpenServer
  readonly #closing = new AbortController()
  /** The last run of the health checks, with its start time on the monotonic clock. */
  #lastHealth: { readonly at: Duration; readonly answer: Promise<Answer> } | null = null

  constructor(deps: HttpServerDeps) {
    this.#deps = deps
    this.#open = openServer(this.#routes(), { clock: deps.clock, times: TIMES })
    this.#open.server.maxConnections = MAX_CONNECTIONS
  }

  /** Opens the port and resolves with its address. Rejects with the system's error. */
  async listen({ address, port, ipv6Only = false }: ListenOptions): Promise<Endpoint> {
    const { server } = this.#open
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host: address, ipv6Only }, resolve)
    })
    const bound = server.address() as AddressInfo
    return { address: bound.address, port: bound.port }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#open.connections.close(0)
  }

  #routes(): readonly Route[] {
    const { metrics } = this.#deps
    return [
      route({
        method: 'GET',
        path: '/metrics',
        role: 'anyone',
        handler: async () => ({ kind: 'text', status: 200, contentType: metrics.contentType, text: await metrics.render() }),
      }),
      route({ method: 'GET', path: '/healthz', role: 'anyone', handler: () => this.#health() }),
    ]
  }

  #health(): Promise<Answer> {
    const now = this.#deps.clock.monotonic()
    if (this.#lastHealth === null || now - this.#lastHealth.at >= HEALTH_AGE) this.#lastHealth = { at: now, answer: this.#checkHealth() }
    return this.#lastHealth.answer
  }

  async #checkHealth(): Promise<Answer> {
    const results = await Promise.all(this.#deps.checks.map(async (check) => [check.name, await this.#result(check)] as const))
    const healthy = results.every(([, result]) => result === 'ok')
    return { kind: 'json', status: healthy ? 200 : 503, value: { healthy, ...Object.fromEntries(results) } }
  }

  /** `ok`, or the reason for the failure of the check. */
  async #result({ run }: HealthCheck): Promise<string> {
    const result = run().then(() => 'ok', errorMessage)
    return (await withTimeout(result, this.#deps.clock, TIME_LIMIT, this.#closing.signal)) ?? `no answer within ${TIME_LIMIT / 1000} s`
  }
}
