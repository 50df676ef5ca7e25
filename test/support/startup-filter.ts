/** A proxy in front of PostgreSQL that drops `options` from the startup message, as a transaction pooler does. */
import { connect, createServer, type Socket } from 'node:net'

export interface StartupFilter {
  readonly port: number
  close(): Promise<void>
}

/** A startup message (protocol 3.0) without the parameter `options`. */
function withoutOptions(message: Buffer): Buffer {
  const fields = message.subarray(8).toString('latin1').split('\0')
  const kept: string[] = []
  for (let i = 0; i + 1 < fields.length && fields[i] !== ''; i += 2) if (fields[i] !== 'options') kept.push(fields[i]!, fields[i + 1]!)
  const body = Buffer.from(`${kept.join('\0')}\0\0`, 'latin1')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + body.length, 0)
  message.copy(head, 4, 4, 8)
  return Buffer.concat([head, body])
}

/** Starts the proxy on a free port of 127.0.0.1. */
export async function startStartupFilter(serverPort: number): Promise<StartupFilter> {
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(serverPort, '127.0.0.1')
    for (const socket of [client, server]) sockets.add(socket.on('error', () => undefined))
    client.once('data', (startup) => {
      server.write(withoutOptions(startup))
      client.pipe(server)
    })
    server.pipe(client)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => void proxy.close(() => resolve()))
    },
  }
}
