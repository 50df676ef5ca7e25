/** The port of a parameter such as http_listen, which a reload opens, moves or closes. */
import { listenAt, openPort } from '../config/values/endpoints.ts'
import type { Family } from '../config/values/values.ts'
import type { Endpoint, ListenOptions } from '../system/net.ts'

interface PortServer {
  /** Opens the port and resolves with its address. Rejects with the system's error. */
  listen(at: ListenOptions): Promise<Endpoint>
  close(): Promise<void>
}

interface WantedPort {
  /** Address and port; empty for none. */
  readonly address: string
  readonly families: readonly Family[]
  /** Kind of server, such as one with TLS. A port whose server is of another kind is opened again. */
  readonly kind: string
}

export class HttpPort<S extends PortServer> {
  readonly #parameter: string
  readonly #newServer: () => S
  #wanted: Omit<WantedPort, 'families'> = { address: '', kind: '' }
  #server: S | null = null
  #bound: Endpoint | null = null

  constructor(parameter: string, newServer: () => S) {
    this.#parameter = parameter
    this.#newServer = newServer
  }

  /** The open port; null without one. */
  get endpoint(): Endpoint | null {
    return this.#bound
  }

  /** `address:port` of the open port; null without one. */
  get bound(): string | null {
    if (this.#bound === null) return null
    const { address, port } = this.#bound
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  }

  /** The server of the open port; null without one. */
  get server(): S | null {
    return this.#server
  }

  /** Opens the port, and closes the former one. Rejects with CannotListen, and a former port at another address then stays open. */
  async apply({ address, families, kind }: WantedPort): Promise<void> {
    const { address: formerAddress, kind: formerKind } = this.#wanted
    if (address === formerAddress && kind === formerKind) return
    const former = this.#server
    if (address === formerAddress) await this.close()
    if (address === '') [this.#server, this.#bound] = [null, null]
    else await this.#open(listenAt(address, this.#parameter, families))
    this.#wanted = { address, kind }
    await former?.close()
  }

  async close(): Promise<void> {
    const server = this.#server
    this.#wanted = { address: '', kind: '' }
    this.#server = null
    this.#bound = null
    await server?.close()
  }

  async #open(at: ListenOptions): Promise<void> {
    const server = this.#newServer()
    this.#bound = await openPort(this.#parameter, at, () => server.listen(at))
    this.#server = server
  }
}
