/** Reports the connections that a simulated node opens to remote servers, and the MAIL commands that it sends on them in clear. */
import type { Socket } from 'node:net'
import { ForwardingNet, type DialOptions, type Net } from '../../../src/system/net.ts'

/** MAIL alone, or after the RSET of a kept connection. */
const MAIL = /^(?:RSET\r\n)?MAIL /

export class WatchedNet extends ForwardingNet {
  readonly #did: (what: 'dialled' | 'sent MAIL') => void

  constructor(net: Net, did: (what: 'dialled' | 'sent MAIL') => void) {
    super(net)
    this.#did = did
  }

  override async dial(options: DialOptions): Promise<Socket> {
    this.#did('dialled')
    const socket = await this.net.dial(options)
    const write = socket.write.bind(socket) as (...given: unknown[]) => boolean
    const watched = (...given: unknown[]): boolean => {
      if (MAIL.test(String(given[0]))) this.#did('sent MAIL')
      return write(...given)
    }
    return Object.assign(socket, { write: watched })
  }
}
