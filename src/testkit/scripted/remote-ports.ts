/** Real ports at which the hosts of a remote network listen, for relays in other processes. */
import type { Socket } from 'node:net'
import type { Endpoint, Listener, Net } from '../../system/net.ts'
import type { WebHost } from '../remote/policy-host.ts'
import type { RemoteNetwork } from '../remote/remote-network.ts'

export interface RemotePort {
  readonly at: Endpoint
  /** Simulated host. */
  readonly mx: string
}

export class RemotePorts {
  readonly #net: Net
  readonly #remote: RemoteNetwork
  readonly #listeners: Listener[] = []

  constructor(net: Net, remote: RemoteNetwork) {
    this.#net = net
    this.#remote = remote
  }

  /** Opens the SMTP port of a host. Rejects with the error of the system, such as EADDRINUSE. */
  open({ at, mx }: RemotePort): Promise<Endpoint> {
    return this.#listen(at, (socket) => void this.#remote.accept(socket, mx))
  }

  /** Opens the port of a web server, which is asked for at each connection; null for a server that is not ready. */
  openWeb(at: Endpoint, server: () => WebHost | null): Promise<Endpoint> {
    return this.#listen(at, (socket) => {
      const host = server()
      if (host !== null) this.#remote.acceptWeb(socket, host)
    })
  }

  async #listen(at: Endpoint, accept: (socket: Socket) => void): Promise<Endpoint> {
    const listener = await this.#net.listen(at, accept)
    this.#listeners.push(listener)
    const { address, port } = listener
    return { address, port }
  }

  /** Closes the ports, and the connections of the remote network. */
  async close(): Promise<void> {
    const closed = Promise.all(this.#listeners.splice(0).map((listener) => listener.close()))
    this.#remote.close()
    await closed
  }
}
