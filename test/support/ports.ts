/** Ports for daemons that are started more than once. */
import { createServer } from 'node:net'

/** First port, and number of ports. Those above are ephemeral (Linux: from 32768): a connection may take one between two starts. */
const FIRST = 20_000
const PORTS = 12_000

/** Each process of the tests has a part of the ports, so that no two processes choose the same free port. */
const PARTS = 8
const PART = Number(process.env['VITEST_POOL_ID'] ?? 0) % PARTS

/** The ports that this process has given out last. They may be free because their daemons have not started yet. */
const given = new Set<number>()
const REMEMBERED = 500

/** A free port of 127.0.0.1 below the ephemeral ones. */
export async function portBelowEphemeral(chance: () => number = Math.random): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(((PART + chance()) * PORTS) / PARTS)
    if (given.has(port) || !(await isFree(port))) continue
    if (given.size === REMEMBERED) given.clear()
    given.add(port)
    return port
  }
}

/** True when nothing listens at the port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const listens = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (listens) await new Promise((resolve) => server.close(resolve))
  return listens
}
