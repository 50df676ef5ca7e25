/** The port of http_listen, which a reload opens, moves or closes. */
import { listenAt, openPort } from '../config/values/endpoints.ts'
import type { Config } from '../config/options.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'

/** A server without a port. */
export interface PortServer {
  /** Opens the port and resolves with its address. Rejects with the system's error. */
  listen(at: ListenOptions): Promise<Endpoint>
  close(): Promise<void>
}

export class HttpPort {
  readonly #newServer: () => PortServer
  #address = ''
  #server: PortServer | null = null
  #bound: string | null = null

  constructor(newServer: () => PortServer) {
    this.#newServer = newServer
  }

  /** `address:port` of the open port; null without one. */
  get bound(): string | null {
    return this.#bound
  }

  /**
   * Opens the port at http_listen, and closes the former one; opens none when http_listen is empty. Rejects with CannotListen, and
   * the former port then stays open.
   */
  async apply({ http_listen: address, inet_protocols }: Pick<Config, 'http_listen' | 'inet_protocols'>): Promise<void> {
    if (address === this.#address) return
    const former = this.#server
    if (address === '') [this.#server, this.#bound] = [null, null]
    else await this.#open(listenAt(address, 'http_listen', inet_protocols))
    this.#address = address
    await former?.close()
  }

  async close(): Promise<void> {
    await this.#server?.close()
  }

  async #open(at: ListenOptions): Promise<void> {
    const server = this.#newServer()
    const { address, port } = await openPort('http_listen', at, () => server.listen(at))
    this.#bound = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
    this.#server = server
  }
}
