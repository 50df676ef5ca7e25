/** A simulated HTTPS host, such as the host of an MTA-STS policy (RFC 8461 §3.3). */
import { createServer, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** Certificate chain and key (PEM) of a simulated host. */
export interface HostIdentity {
  readonly cert: string
  readonly key: string
}

/** An answer to a request. */
export interface PolicyAnswer {
  readonly status?: number | undefined
  readonly type?: string | undefined
  readonly body: string
}

export interface PolicyHost {
  readonly identity: HostIdentity
  /** Returns the answer for a path; null lets the request wait without an answer. */
  readonly answer: (path: string) => PolicyAnswer | null
  /** Receives what is posted, and returns the answer; requests with a body are answered like others without it. */
  readonly receive?: ((path: string, body: Buffer, type: string) => PolicyAnswer) | undefined
}

/** Serves one connection. */
export function servePolicy({ identity, answer, receive }: PolicyHost, socket: Socket): void {
  const secure = new TLSSocket(socket, { ...identity, isServer: true })
  socket.on('error', (error) => secure.destroy(error))
  secure.on('error', () => socket.destroy())
  const reply = (response: ServerResponse, said: PolicyAnswer | null): void => {
    if (said === null) return
    // A date of the real clock must not appear in a world.
    response.sendDate = false
    response.writeHead(said.status ?? 200, { 'content-type': said.type ?? 'text/plain', connection: 'close' }).end(said.body)
  }
  const server = createServer((request, response) => {
    const { url = '', method, headers } = request
    if (method !== 'POST' || receive === undefined) return reply(response, answer(url))
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => reply(response, receive(url, Buffer.concat(chunks), headers['content-type'] ?? '')))
  })
  server.emit('connection', secure)
}
