/** A reverse proxy on loopback that strips a prefix, as nginx does, and that can break. */
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** State of the proxy: it works, answers 502 to all requests or to streams, passes nothing of a stream on, or nothing at all. */
export type ProxyState = 'works' | 'answers 502' | 'refuses streams' | 'holds streams' | 'answers nothing'

export class PrefixProxy {
  state: ProxyState = 'works'
  /** Paths outside of the prefix that were asked for. */
  readonly outside: string[] = []
  /** Method and path of the requests so far, below the prefix and without the query. */
  readonly asked: string[] = []
  /** Requests so far but those of the script for screens, these, and the streams that are open. */
  requests = 0
  screens = 0
  readonly streams = new Set<ServerResponse>()
  readonly #prefix: string
  readonly #target: URL
  readonly #server: Server
  #port = 0

  constructor(target: string, prefix: string) {
    this.#target = new URL(target)
    this.#prefix = prefix
    this.#server = createServer((incoming, response) => this.#serve(incoming, response))
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => void this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}${this.#prefix}`
  }

  /** Cuts all connections, and refuses further ones until `listen`. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }

  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    const { url = '', method, headers } = incoming
    const isStream = headers.accept === 'text/event-stream'
    // A chart is renewed after the end of its interval, by the time of the server.
    if (headers.accept === 'text/html') this.screens++
    else if (!url.includes('/charts/')) this.requests++
    if (!url.startsWith(this.#prefix)) {
      this.outside.push(url)
      return void response.writeHead(404).end()
    }
    this.asked.push(`${method} /${url.slice(this.#prefix.length).replace(/[?].*/, '')}`)
    if (this.state === 'answers 502' || (this.state === 'refuses streams' && isStream)) return void response.writeHead(502).end()
    if (this.state === 'answers nothing') return
    const { hostname, port } = this.#target
    const forwarded = request({ hostname, port, method, path: `/${url.slice(this.#prefix.length)}`, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      response.flushHeaders()
      if (!isStream) return void answer.pipe(response)
      this.streams.add(response)
      response.on('close', () => {
        this.streams.delete(response)
        forwarded.destroy()
      })
      answer.on('data', (piece) => {
        if (this.state === 'holds streams' || this.state === 'answers nothing') return
        response.write(piece)
      })
      answer.on('end', () => response.end())
      answer.on('error', () => response.destroy())
    })
    forwarded.on('error', () => response.destroy())
    incoming.pipe(forwarded)
  }

  /** Cuts the open streams. */
  cut(): void {
    for (const stream of this.streams) stream.destroy()
  }
}
