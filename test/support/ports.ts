/** Ports for daemons that are started more than once. */
import { createServer } from 'node:net'

/** A free port of 127.0.0.1 below the ephemeral ones (Linux: from 32768), so that no connection takes it between two starts. */
export async function portBelowEphemeral(chance: () => number): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(chance() * 12_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
