/** A receiver of webhooks: verifies each request with the library of Standard Webhooks, and keeps the events with their ids. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

export interface TakenEvent {
  readonly seq: number
  readonly type: string
  /** Seconds of the header webhook-timestamp. */
  readonly sentAt: number
  readonly data: Readonly<Record<string, unknown>>
}

export class WebhookLedger {
  /** The first of the requests with each id, in the order in which they came. */
  readonly taken = new Map<string, TakenEvent>()
  /** Number of requests for events that were taken before. */
  repeated = 0
  /** Requests that failed the check of their signature, and repeated ids with another body. */
  readonly faults: string[] = []
  readonly #bodies = new Map<string, string>()
  #verifier: Webhook | null = null
  #server: Server | null = null
  #port = 0

  /** Listens; again on the same port after `close`. */
  async listen(): Promise<number> {
    const server = createServer((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text))
      request.on('end', () => response.writeHead(this.#take(request.headers as Record<string, string>, body)).end())
    })
    await new Promise<void>((resolve, reject) => void server.once('error', reject).listen(this.#port, '127.0.0.1', resolve))
    this.#server = server
    return (this.#port = (server.address() as AddressInfo).port)
  }

  /** Verifies with a secret from now on; requests before it are refused with 503. */
  trust(secret: string): void {
    this.#verifier = new Webhook(secret)
  }

  /** Refuses connections, and ends those that are open. */
  async close(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (server === null) return
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }

  #take(headers: Readonly<Record<string, string>>, body: string): number {
    const id = headers['webhook-id'] ?? ''
    if (this.#verifier === null) return 503
    try {
      this.#verifier.verify(body, headers)
    } catch (error) {
      this.faults.push(`${id}: ${String(error)}`)
      return 401
    }
    const known = this.#bodies.get(id)
    if (known !== undefined) {
      this.repeated++
      if (known !== body) this.faults.push(`${id} came again with another body`)
      return 204
    }
    this.#bodies.set(id, body)
    const { type, data } = JSON.parse(body) as Pick<TakenEvent, 'type' | 'data'>
    const seq = Number(/^evt_[0-9a-z]+_(\d+)$/.exec(id)?.[1] ?? Number.NaN)
    this.taken.set(id, { seq, type, data, sentAt: Number(headers['webhook-timestamp']) })
    return 204
  }
}
