/** HTTP server of http_listen: `/metrics` and the probes, read-only and without authentication. */
import type { AddressInfo } from 'node:net'
import { errorMessage } from '../system/caught-error.ts'
import { withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import { openServer, type OpenServer } from '../http/open-server.ts'
import { route, type Answer, type Route } from '../http/route-table.ts'
import type { RequestTimes } from '../http/unparsed-requests.ts'

/** `healthz`: the relay works, for people and alerts. `readyz`: this relay accepts mail now, for balancers. */
type Probe = 'healthz' | 'readyz'

/** A condition of probes. It fails when `run` rejects or does not settle within TIME_LIMIT. */
export interface HealthCheck {
  readonly name: string
  readonly probes: readonly Probe[]
  readonly run: () => Promise<void>
  /** True to run at each request, for a check that reads memory only. */
  readonly isLive?: boolean
}

interface HttpServerDeps {
  readonly metrics: Pick<Metrics, 'contentType' | 'render'>
  readonly checks: readonly HealthCheck[]
  readonly clock: Clock
}

/** Limit for a health check, and for receiving a request. */
const TIME_LIMIT: Duration = 5_000
const TIMES: RequestTimes = { header: TIME_LIMIT, request: TIME_LIMIT }
/** Up to this age, the result of a check is served again, because one costs a disk sync. */
const RESULT_AGE: Duration = 1_000
/** Further connections are closed on accept. */
const MAX_CONNECTIONS = 64

export class HttpServer {
  readonly #deps: HttpServerDeps
  readonly #open: OpenServer
  readonly #closing = new AbortController()
  /** The last run of each check, with its start time on the monotonic clock. */
  readonly #lastRuns = new Map<HealthCheck, { readonly at: Duration; readonly result: Promise<string> }>()

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
      route({ method: 'GET', path: '/healthz', role: 'anyone', handler: () => this.#answer('healthz', 'healthy') }),
      route({ method: 'GET', path: '/readyz', role: 'anyone', handler: () => this.#answer('readyz', 'ready') }),
      // An answer proves that the process and its event loop run.
      route({
        method: 'GET',
        path: '/livez',
        role: 'anyone',
        handler: async () => ({ kind: 'json', status: 200, value: { alive: true } }),
      }),
    ]
  }

  async #answer(probe: Probe, member: string): Promise<Answer> {
    const checks = this.#deps.checks.filter(({ probes }) => probes.includes(probe))
    const results = await Promise.all(checks.map(async (check) => [check.name, await this.#lastResult(check)] as const))
    const isGood = results.every(([, result]) => result === 'ok')
    return { kind: 'json', status: isGood ? 200 : 503, value: { [member]: isGood, ...Object.fromEntries(results) } }
  }

  #lastResult(check: HealthCheck): Promise<string> {
    if (check.isLive === true) return this.#result(check)
    const now = this.#deps.clock.monotonic()
    const last = this.#lastRuns.get(check)
    if (last !== undefined && now - last.at < RESULT_AGE) return last.result
    const result = this.#result(check)
    this.#lastRuns.set(check, { at: now, result })
    return result
  }

  /** `ok`, or the reason for the failure of the check. */
  async #result({ run }: HealthCheck): Promise<string> {
    const result = run().then(() => 'ok', errorMessage)
    return (await withTimeout(result, this.#deps.clock, TIME_LIMIT, this.#closing.signal)) ?? `no answer within ${TIME_LIMIT / 1000} s`
  }
}
