/** A proxy on loopback that passes bytes on later, as a longer way through a network does. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Duration } from '../../src/system/clock.ts'

export interface DelayingProxy {
  readonly port: number
  /** Ends the proxy and its connections. */
  close(): Promise<void>
}

/** Starts a proxy on a free port of 127.0.0.1. Bytes take `delay` ms longer in each direction. */
export async function startDelayingProxy(port: number, delay: Duration): Promise<DelayingProxy> {
  const open = new Set<Socket>()
  const pass = (from: Socket, to: Socket): void => {
    open.add(from)
    from.on('data', (data) => void setTimeout(() => to.write(data), delay))
    from.on('end', () => void setTimeout(() => to.end(), delay))
    // The end of the connection follows, and is passed on.
    from.on('error', () => undefined)
    from.on('close', () => {
      open.delete(from)
      to.destroy()
    })
  }
  const proxy = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const server = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    pass(client, server)
    pass(server, client)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    port: (proxy.address() as AddressInfo).port,
    close: () => {
      const closed = new Promise<void>((resolve) => void proxy.close(() => resolve()))
      for (const socket of open) socket.destroy()
      return closed
    },
  }
}
