/** Requests of commands to the API of a daemon: at the socket of its queue with the local token, or at a URL with a token. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { createInterface } from 'node:readline'
import { adminSocketPath, localTokenPath } from '../../daemon/admin/socket-path.ts'
import { BASE, LOCAL_PREFIX, LOCAL_REALM, NDJSON, OPERATOR_FIELD, SOFTWARE, VERSION_FIELD } from '../../http/command-protocol.ts'
import { errorCode } from '../../system/caught-error.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import type { Duration } from '../../system/clock.ts'
import { VERSION } from '../../system/version.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { RelayApi } from '../shell/shell.ts'

// Importing node:http as a module takes 20 ms, because it evaluates all exports, including WebSocket, and loads fetch.
const { request: httpRequest } = process.getBuiltinModule('node:http')
/** Takes 10 ms, and is loaded for a URL only. */
const https = () => process.getBuiltinModule('node:https')

/** Time without data from the daemon, in ms, after which a query is abandoned. */
const QUERY_LIMIT: Duration = 5_000
/** The same for a resource, which may be counted first. */
const READ_LIMIT: Duration = 60_000

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below the path of the API. */
  readonly path: string
  readonly body?: object
  /** Name of the operator, for the audit log. */
  readonly who?: string
  /** Time without data, in ms, after which the call is abandoned. */
  readonly limit?: Duration
}

/** A refused request, as the daemon reports it. */
export interface Refusal {
  readonly type?: string
  readonly detail?: string
  readonly exit_code?: number
}

/** Address of a daemon, and the meaning of its refusals. */
export interface Endpoint {
  readonly at: RequestOptions
  readonly isEncrypted: boolean
  /** Path before that of the API; empty without one. */
  readonly prefix: string
  token(): string
  /** The error of a refused request. */
  refusal(refusal: Refusal, response: IncomingMessage): CommandError
  /** The error of a request that got no answer. */
  failure(cause: Error): Error
}

/** Types of the progress and of the outcome of an operation. */
interface OperationSteps {
  readonly progress: unknown
  readonly done: unknown
}

/** A line of an answer by lines. */
type Line<L extends OperationSteps> = Pick<L, 'progress'> | Pick<L, 'done'> | { readonly failed: Refusal }

/** The daemon refused the request. `type` is that of the problem. */
export class RequestRefused extends CommandError {
  readonly type: string

  constructor(exitCode: number, message: string, type: string) {
    super(exitCode, message)
    this.type = type
  }
}

/** The daemon does not answer, although the kernel accepts connections for it (EX_TEMPFAIL). */
export class DaemonSilent extends CommandError {
  constructor(limit: Duration) {
    const text = `the daemon has not answered for ${limit / 1000} seconds: the process is stopped (SIGSTOP) or overloaded`
    super(
      EX.temporary,
      `${text}; an operation that it has received may still be carried out: check \`deferd audit\`, then repeat the command`,
    )
  }
}

/** Path segment with a name. */
export const segment = (name: string): string => encodeURIComponent(name)

/** The query with the given values; empty without any. */
export function queryOf(values: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(values).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

export class ApiConnection implements RelayApi {
  readonly #endpoint: Endpoint

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  /** The JSON value of an answer. Rejects with RequestRefused, and with the error of the connection when no daemon listens. */
  async json(call: Call): Promise<unknown> {
    try {
      const response = await this.answer(call, 'application/json')
      return JSON.parse(await textOf(response)) as unknown
    } catch (cause) {
      if (errorCode(cause) !== 'ECONNRESET' || call.method === 'GET') throw cause
      throw new CommandError(
        EX.temporary,
        'lost connection to the daemon before its answer; the change may have been made: look before you repeat the command',
        { cause },
      )
    }
  }

  async get<T>(path: string): Promise<T> {
    return (await this.json({ method: 'GET', path, limit: READ_LIMIT })) as T
  }

  content(path: string): Promise<AsyncIterable<Uint8Array>> {
    return this.answer({ method: 'GET', path, limit: READ_LIMIT }, '*/*')
  }

  async *rows<T>(path: string, most = Infinity): AsyncGenerator<T> {
    let left = most
    if (left <= 0) return
    const response = await this.answer({ method: 'GET', path, limit: READ_LIMIT }, NDJSON)
    try {
      for await (const line of createInterface({ input: response })) {
        yield JSON.parse(line) as T
        if (--left <= 0) return
      }
    } finally {
      response.destroy()
    }
  }

  /** The outcome of a request whose answer has a line for each step. */
  async lines<L extends OperationSteps>(call: Call, progress: (soFar: L['progress']) => void): Promise<L['done']> {
    try {
      const response = await this.answer(call, NDJSON)
      for await (const text of createInterface({ input: response })) {
        const line = JSON.parse(text) as Line<L>
        if ('failed' in line) throw this.#endpoint.refusal(line.failed, response)
        if ('done' in line) return line.done
        progress(line.progress)
      }
    } catch (error) {
      // The daemon ended while the operation was running.
      if (errorCode(error) !== 'ECONNRESET') throw error
    }
    throw new CommandError(
      EX.temporary,
      'lost connection to the daemon; the operation may be partly applied: check `deferd audit`, then repeat the command',
    )
  }

  /** The response to a request, which has succeeded. */
  async answer(call: Call, accept: string): Promise<IncomingMessage> {
    let response = await this.#ask(call, accept)
    // The daemon has written the file again.
    if (isOtherToken(response)) {
      response.resume()
      response = await this.#ask(call, accept)
    }
    if (response.statusCode !== undefined && response.statusCode < 300) return response
    throw this.#endpoint.refusal(refusalIn(await textOf(response)), response)
  }

  #ask({ method, path, body, who, limit = QUERY_LIMIT }: Call, accept: string): Promise<IncomingMessage> {
    const endpoint = this.#endpoint
    return new Promise((resolve, reject) => {
      const headers = {
        accept,
        authorization: `Bearer ${endpoint.token()}`,
        ...(who === undefined ? {} : { [OPERATOR_FIELD]: encodeURIComponent(who) }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const ask = endpoint.isEncrypted ? https().request : httpRequest
      const request = ask({ ...endpoint.at, method, path: `${endpoint.prefix}${BASE}${path}`, headers, agent: false }, resolve)
      request.on('error', (cause) => reject(endpoint.failure(cause)))
      request.setTimeout(limit, () => request.destroy(new DaemonSilent(limit)))
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

/** The daemon of a queue directory. */
export const localEndpoint = (queueDirectory: string): Endpoint => ({
  at: { socketPath: adminSocketPath(queueDirectory) },
  isEncrypted: false,
  prefix: '',
  token: () => localToken(localTokenPath(queueDirectory)),
  refusal: (refusal, response) => localRefusal(refusal, response, localTokenPath(queueDirectory)),
  failure: (cause) => cause,
})

/** The content of local.token. Without it, the answer of the daemon says what is the matter. */
function localToken(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim() || LOCAL_PREFIX
  } catch {
    return LOCAL_PREFIX
  }
}

/** A daemon of another version may not know the request, or its form. */
function localRefusal(
  { detail = '', type = '', exit_code: exitCode = SOFTWARE }: Refusal,
  response: IncomingMessage,
  path: string,
): CommandError {
  if (isOtherToken(response))
    return new CommandError(EX.unavailable, `the daemon cannot write ${path}, by which commands prove themselves: its log has the reason`)
  const running = response.headers[VERSION_FIELD]
  if (exitCode !== SOFTWARE || running === VERSION) return new RequestRefused(exitCode, detail, type)
  const daemon = typeof running === 'string' ? `deferd ${maskControls(running)}` : 'an older deferd'
  return new CommandError(
    EX.unavailable,
    `the daemon is ${daemon} and does not understand this command of deferd ${VERSION} (${detail}): restart the daemon, or use the command of its version`,
  )
}

function refusalIn(text: string): Refusal {
  try {
    return JSON.parse(text) as Refusal
  } catch {
    return {}
  }
}

const isOtherToken = ({ statusCode, headers }: IncomingMessage): boolean =>
  statusCode === 401 && headers['www-authenticate'] === LOCAL_REALM

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
  return text
}
