/** Web servers as targets: POST requests over the Net port, to public addresses unless the subscription allows others. */
import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connectToServer, hostOf, requestTo, startTls } from '../system/web-connection.ts'
import { errorCode, errorMessage } from '../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../system/clock.ts'
import type { Net } from '../system/net.ts'
import type { TargetAnswer } from './answer-decision.ts'
import { eventRequest, type EventRequest } from './event-request.ts'
import type { Consignment, SendEvents } from './target.ts'

interface WebTargetDeps {
  readonly net: Net
  readonly clock: Clock
  /** Name of the relay, for the CloudEvents member `source` and for User-Agent. */
  readonly source: () => string
  readonly version: string
}

/** Limit of one try: look-up, connection and response. */
const TRY_LIMIT: Duration = 15 * SECOND
const REMEDY = 'set allow_private (--allow-private) to send events there'

export function webTarget(deps: WebTargetDeps): { readonly send: SendEvents; readonly close: () => void } {
  const agents = new Map<string, Agent>()
  return {
    send: (consignment) => send(consignment, deps, agents),
    close: () => agents.forEach((agent) => agent.destroy()),
  }
}

async function send(consignment: Consignment, deps: WebTargetDeps, agents: Map<string, Agent>): Promise<TargetAnswer> {
  const { events, settings, secrets } = consignment
  const url = new URL(settings.to)
  const { clock } = deps
  const terms = { format: settings.format, isBatch: settings.batch > 1, secrets, source: deps.source() }
  const made = eventRequest(events, { ...terms, now: clock.wall.now() })
  const key = `${settings.allowPrivate} ${url.origin}`
  let agent = agents.get(key)
  if (agent === undefined) agents.set(key, (agent = agentFor(url, settings.allowPrivate, deps)))
  const first = await post(url, made, { agent, ...deps, signal: consignment.signal })
  // The server has closed an idle connection at the moment of the request.
  return first === 'stale' ? answerOrFailure(await post(url, made, { agent, ...deps, signal: consignment.signal })) : first
}

const answerOrFailure = (answer: TargetAnswer | 'stale'): TargetAnswer =>
  answer === 'stale' ? { kind: 'failed', text: 'the server closed the connection' } : answer

interface PostOptions extends WebTargetDeps {
  readonly agent: Agent
  readonly signal: AbortSignal
}

function post(url: URL, { headers, body }: EventRequest, { agent, clock, version, signal }: PostOptions): Promise<TargetAnswer | 'stale'> {
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
    const timer = clock.after(TRY_LIMIT, () => giveUp(`no response within ${TRY_LIMIT / SECOND} s`))
    const abort = (): void => giveUp('deferd stops')
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

/** Keeps one connection to a server. Its address is checked after the look-up, so that no name leads to a private address. */
function agentFor(url: URL, allowPrivate: boolean, deps: WebTargetDeps): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  agent.createConnection = (_options, callback) => {
    open(url, allowPrivate, deps).then(
      (socket) => callback?.(null, socket),
      (error: unknown) => callback?.(error as Error, undefined as never),
    )
    return undefined
  }
  return agent
}

async function open(url: URL, allowPrivate: boolean, { net, clock }: Pick<WebTargetDeps, 'net' | 'clock'>): Promise<Socket> {
  const isTls = url.protocol === 'https:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const server = { host: hostOf(url), port, names: 'system', allowPrivate, remedy: REMEDY, end: clock.monotonic() + TRY_LIMIT } as const
  const socket = await connectToServer(server, { net, clock })
  return isTls ? startTls(socket, server, clock) : socket
}
