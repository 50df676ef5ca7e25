/** A program that uses the admin API of a daemon: at `admin.sock`, with a token. The daemon may be killed and started again meanwhile. */
import { join } from 'node:path'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import type { ClientRole } from '../../src/http/requests/requester.ts'
import { ask, type RawResponse } from './raw-http.ts'

export interface Operation {
  readonly id: number
  readonly operation: string
  readonly state: 'running' | 'done' | 'failed' | 'cancelled'
  readonly matched: number
  readonly changed: number
  readonly error: string | null
  readonly undone_by: number | null
}

export interface Sent {
  readonly status: number
  readonly headers: RawResponse['headers']
  /** The parsed body: its members by name. */
  readonly json: Readonly<Record<string, unknown>>
}

/** A mail to submit: its recipient, and the fields of the request. */
export interface Submission {
  readonly to: string
  readonly content?: string
  readonly key?: string
}

export class ApiProgram {
  readonly #socket: string
  readonly #token: string

  private constructor(socket: string, token: string) {
    this.#socket = socket
    this.#token = token
  }

  /** Adds a token to the queue of a running daemon. It is valid after a restart too. */
  static async of(queueDirectory: string, role: ClientRole = 'admin'): Promise<ApiProgram> {
    const client = await openDaemonClient(queueDirectory)
    if (client === null) throw new Error(`no daemon runs for the queue in ${queueDirectory}`)
    const token = await client.addToken({ name: 'ci', role, content: true, destinations: null, duration: null, who: 'root' })
    await client.close()
    return new ApiProgram(join(queueDirectory, 'admin.sock'), token)
  }

  /** Rejects when the daemon does not answer. */
  async send(method: string, path: string, body?: unknown, fields: Readonly<Record<string, string>> = {}): Promise<Sent> {
    const type = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const response = await ask(this.#socket, {
      method,
      target: `/api/v1${path}`,
      fields: { Authorization: `Bearer ${this.#token}`, ...type, ...fields },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { ...response, json: response.body === '' ? {} : (JSON.parse(response.body) as Sent['json']) }
  }

  /** Submits a mail. */
  mail({ to, content = 'Subject: hi\r\n\r\nhi\r\n', key }: Submission): Promise<Sent> {
    const fields = { 'Content-Type': 'message/rfc822', ...(key === undefined ? {} : { 'Idempotency-Key': key }) }
    return this.send('POST', `/messages?from=app@us.example&to=${encodeURIComponent(to)}`, content, fields)
  }

  /** Begins an operation, or asks for the state of one; see Operation. */
  async operation(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Operation & { readonly status: number }> {
    const { status, json } = await this.send(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(json)}`)
    return { ...(json as unknown as Operation), status }
  }

  /** Number of queued messages for an address. */
  async queuedFor(recipient: string): Promise<number> {
    const { status, json } = await this.send('GET', `/messages/count?recipient=${encodeURIComponent(recipient)}`)
    if (status !== 200) throw new Error(`messages for ${recipient} were not counted: ${status}`)
    return Number(json['count'])
  }
}
