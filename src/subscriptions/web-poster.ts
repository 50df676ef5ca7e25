/** POST requests to web servers over the Net port, to public addresses unless others are allowed. */
import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connectToServer, hostOf, requestTo, startTls } from '../system/web-connection.ts'
import { errorCode, errorMessage } from '../system/caught-error.ts'
import { SECOND, type Duration, type Timers } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { TargetAnswer } from './answer-decision.ts'
import type { EventRequest } from './event-request.ts'

export interface WebPosterDeps {
  readonly net: Pick<Net, 'dial' | 'lookupAddresses' | 'lookupHost'>
  readonly clock: Timers
  /** Version of deferd, for User-Agent. */
  readonly version: string
  /** Limit of one request: look-up, connection and response. */
  readonly limit: Duration
  /** True to use the connection to a server again. */
  readonly keepsConnections: boolean
}

interface PostTerms {
  /** True to connect to private addresses. */
  readonly allowPrivate: boolean
  readonly signal: AbortSignal
}

const REMEDY = 'set allow_private (--allow-private) to send events there'

const STOPPED: TargetAnswer = { kind: 'failed', text: 'deferd stops' }

/** Makes one request at a time to each server. */
export class WebPoster {
  readonly #deps: WebPosterDeps
  readonly #agents = new Map<string, Agent>()

  constructor(deps: WebPosterDeps) {
    this.#deps = deps
  }

  /** Sends a request. Never rejects: a failure is an answer. */
  async post(url: URL, made: EventRequest, { allowPrivate, signal }: PostTerms): Promise<TargetAnswer> {
    if (signal.aborted) return STOPPED
    const key = `${allowPrivate} ${url.origin}`
    let agent = this.#agents.get(key)
    if (agent === undefined) this.#agents.set(key, (agent = agentFor(url, allowPrivate, this.#deps)))
    const options = { ...this.#deps, agent, signal }
    const first = await post(url, made, options)
    // The server has closed an idle connection at the moment of the request.
    return first === 'stale' ? answerOrFailure(await post(url, made, options)) : first
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
  }
}

const answerOrFailure = (answer: TargetAnswer | 'stale'): TargetAnswer =>
  answer === 'stale' ? { kind: 'failed', text: 'the server closed the connection' } : answer

interface PostOptions extends WebPosterDeps {
  readonly agent: Agent
  readonly signal: AbortSignal
}

function post(
  url: URL,
  { headers, body }: EventRequest,
  { agent, clock, version, limit, signal }: PostOptions,
): Promise<TargetAnswer | 'stale'> {
  return new Promise((resolve) => {
    const sending = requestTo(url, {
      agent,
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': `deferd/${version}` },
    })
    const end = (answer: TargetAnswer | 'stale'): void => {
      timer.cancel()
      signal.removeEventListener('abort', abort)
      resolve(answer)
    }
    // A request without a connection reports its destruction only once it is connected.
    const giveUp = (text: string): void => {
      end({ kind: 'failed', text })
      sending.destroy()
    }
    const timer = clock.after(limit, () => giveUp(`no response within ${limit / SECOND} s`))
    const abort = (): void => giveUp(STOPPED.text)
    signal.addEventListener('abort', abort, { once: true })
    sending.on('response', (response) => {
      // The body is discarded, because the connection can be used again only after its end.
      response.resume()
      response.on('error', () => undefined)
      end(answerOf(response))
    })
    sending.on('error', (error) => {
      const isStale = sending.reusedSocket && (errorCode(error) === 'ECONNRESET' || errorCode(error) === 'EPIPE')
      end(isStale ? 'stale' : { kind: 'failed', text: errorMessage(error) })
    })
    sending.end(body)
  })
}

function answerOf({ statusCode = 0, statusMessage = '', headers }: IncomingMessage): TargetAnswer {
  const text = `${statusCode} ${statusMessage}`.trim()
  const isRedirect = statusCode >= 300 && statusCode < 400
  return {
    kind: 'response',
    code: statusCode,
    retryAfter: retryAfter(headers['retry-after']),
    text: isRedirect ? `${text}: redirects are not followed; correct the URL` : text,
  }
}

/** Retry-After in seconds (RFC 9110 §10.2.3). A date is ignored, because clocks differ. */
const retryAfter = (value: string | undefined): Duration | null =>
  value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * SECOND : null

/** Connections to a server. Its address is checked after the look-up, so that no name leads to a private address. */
function agentFor(url: URL, allowPrivate: boolean, deps: WebPosterDeps): Agent {
  const agent = new Agent({ keepAlive: deps.keepsConnections, maxSockets: 1 })
  agent.createConnection = (_options, callback) => {
    open(url, allowPrivate, deps).then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    )
    return undefined
  }
  return agent
}

async function open(url: URL, allowPrivate: boolean, { net, clock, limit }: WebPosterDeps): Promise<Socket> {
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const server = { host: hostOf(url), port, names: 'system', allowPrivate, remedy: REMEDY, end: clock.monotonic() + limit } as const
  const socket = await connectToServer(server, { net, clock })
  return isTls ? startTls(socket, server, clock) : socket
}
