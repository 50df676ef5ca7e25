/** An application that gets webhooks on a port of loopback. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface AppRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Status of the answer to a request, by its number from 0; `never` for none. */
type Answer = (request: AppRequest, number: number) => number | Promise<number> | 'never'

export class WebhookApplication implements AsyncDisposable {
  readonly requests: AppRequest[] = []
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(answer: Answer = () => 200): Promise<WebhookApplication> {
    const server = createServer()
    const app = new WebhookApplication(server)
    server.on('request', (request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text))
      request.on('end', () => {
        const got: AppRequest = { headers: request.headers as Record<string, string>, body }
        const status = answer(got, app.requests.push(got) - 1)
        if (status !== 'never') void Promise.resolve(status).then((code) => response.writeHead(code).end())
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return app
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
