/** A simulated HTTPS host, such as the host of an MTA-STS policy (RFC 8461 §3.3) or an authorization server. */
import { createServer, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** Certificate chain and key (PEM) of a simulated host. */
export interface HostIdentity {
  readonly cert: string
  readonly key: string
}

export interface PolicyAnswer {
  readonly status?: number | undefined
  readonly type?: string | undefined
  readonly body: string
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** The body is empty unless the request is a POST. */
export interface WebRequest {
  readonly method: string
  readonly path: string
  readonly type: string
  readonly body: Buffer
}

/** Answers requests. Null lets a request wait without an answer; `close` ends its connection. */
type Respond = (request: WebRequest) => Promise<PolicyAnswer | 'close' | null>

export interface PolicyHost {
  readonly identity: HostIdentity
  /** Returns the answer for a path; null lets the request wait without an answer. */
  readonly answer: (path: string) => PolicyAnswer | null
  /** Receives what is posted, and returns the answer; requests with a body are answered like others without it. */
  readonly receive?: ((path: string, body: Buffer, type: string) => PolicyAnswer) | undefined
}

export interface WebHost {
  serve(socket: Socket): void
  /** True while connections are refused. */
  isRefusing?(): boolean
}

/** Serves one connection. */
export function servePolicy({ identity, answer, receive }: PolicyHost, socket: Socket): void {
  serveWeb(socket, identity, async ({ method, path, body, type }) =>
    method === 'POST' && receive !== undefined ? receive(path, body, type) : answer(path),
  )
}

export function serveWeb(socket: Socket, identity: HostIdentity, respond: Respond): void {
  const secure = new TLSSocket(socket, { ...identity, isServer: true })
  socket.on('error', (error) => secure.destroy(error))
  secure.on('error', () => socket.destroy())
  const server = createServer((request, response) => {
    const { url = '', method = 'GET', headers } = request
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const asked = { method, path: url, type: headers['content-type'] ?? '', body: Buffer.concat(chunks) }
      void respond(asked).then((said) => {
        if (said === 'close') secure.destroy()
        else if (said !== null) reply(response, said)
      })
    })
  })
  server.emit('connection', secure)
}

function reply(response: ServerResponse, { status = 200, type = 'text/plain', headers = {}, body }: PolicyAnswer): void {
  // A date of the real clock must not appear in a world.
  response.sendDate = false
  response.writeHead(status, { ...headers, 'content-type': type, connection: 'close' }).end(body)
}
