/** Requests of commands to the API of the daemon of a queue, at its socket, with the local token. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { adminSocketPath, localTokenPath } from '../../daemon/admin/socket-path.ts'
import { BASE, LOCAL_PREFIX, LOCAL_REALM, NDJSON, OPERATOR_FIELD, SOFTWARE, VERSION_FIELD } from '../../http/command-protocol.ts'
import { errorCode } from '../../system/caught-error.ts'
import { maskControls } from '../../mail/smtp-reply.ts'
import type { Duration } from '../../system/clock.ts'
import { VERSION } from '../../system/version.ts'
import { CommandError, EX } from '../shell/exit.ts'

// Importing node:http as a module takes 20 ms, because it evaluates all exports, including WebSocket, and loads fetch.
const { request: httpRequest } = process.getBuiltinModule('node:http')

/** Time without data from the daemon, in ms, after which a query is abandoned. */
const QUERY_LIMIT: Duration = 5_000

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
interface Refusal {
  readonly type?: string
  readonly detail?: string
  readonly exit_code?: number
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

export class ApiConnection {
  readonly #queueDirectory: string

  constructor(queueDirectory: string) {
    this.#queueDirectory = queueDirectory
  }

  /** The JSON value of an answer. Rejects with RequestRefused, and with the error of the connection when no daemon listens. */
  async json(call: Call): Promise<unknown> {
    try {
      const response = await this.#answer(call, 'application/json')
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

  /** The outcome of a request whose answer has a line for each step. */
  async lines<L extends OperationSteps>(call: Call, progress: (soFar: L['progress']) => void): Promise<L['done']> {
    try {
      const response = await this.#answer(call, NDJSON)
      for await (const text of createInterface({ input: response })) {
        const line = JSON.parse(text) as Line<L>
        if ('failed' in line) throw this.#refusal(line.failed, response)
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

  async #answer(call: Call, accept: string): Promise<IncomingMessage> {
    let response = await this.#ask(call, accept)
    // The daemon has written the file again.
    if (isOtherToken(response)) {
      response.resume()
      response = await this.#ask(call, accept)
    }
    if (response.statusCode !== undefined && response.statusCode < 300) return response
    const refusal = JSON.parse(await textOf(response)) as Refusal
    if (!isOtherToken(response)) throw this.#refusal(refusal, response)
    const path = localTokenPath(this.#queueDirectory)
    throw new CommandError(EX.unavailable, `the daemon cannot write ${path}, by which commands prove themselves: its log has the reason`)
  }

  #ask({ method, path, body, who, limit = QUERY_LIMIT }: Call, accept: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = {
        host: 'localhost',
        accept,
        authorization: `Bearer ${this.#token()}`,
        ...(who === undefined ? {} : { [OPERATOR_FIELD]: encodeURIComponent(who) }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const socketPath = adminSocketPath(this.#queueDirectory)
      const request = httpRequest({ socketPath, method, path: `${BASE}${path}`, headers, agent: false }, resolve)
      request.on('error', reject)
      request.setTimeout(limit, () => request.destroy(new DaemonSilent(limit)))
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** The content of local.token. Without it, the answer of the daemon says what is the matter. */
  #token(): string {
    try {
      return readFileSync(localTokenPath(this.#queueDirectory), 'utf8').trim() || LOCAL_PREFIX
    } catch {
      return LOCAL_PREFIX
    }
  }

  /** The error of a refused request. A daemon of another version may not know the request, or its form. */
  #refusal({ detail = '', type = '', exit_code: exitCode = SOFTWARE }: Refusal, { headers }: IncomingMessage): CommandError {
    const running = headers[VERSION_FIELD]
    if (exitCode !== SOFTWARE || running === VERSION) return new RequestRefused(exitCode, detail, type)
    const daemon = typeof running === 'string' ? `deferd ${maskControls(running)}` : 'an older deferd'
    return new CommandError(
      EX.unavailable,
      `the daemon is ${daemon} and does not understand this command of deferd ${VERSION} (${detail}): restart the daemon, or use the command of its version`,
    )
  }
}

const isOtherToken = ({ statusCode, headers }: IncomingMessage): boolean =>
  statusCode === 401 && headers['www-authenticate'] === LOCAL_REALM

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
  return text
}
