/**
 * A proxy in front of PostgreSQL that loses answers, holds statements back and delivers them late, as a network does. Faults concern the
 * connections that are open; only a stall concerns later ones too.
 */
import { connect, createServer, type Socket } from 'node:net'

interface Pair {
  readonly client: Socket
  readonly server: Socket
  /** Loses the answers of a commit and after it, or all. */
  drops: 'nothing' | 'from the commit' | 'all'
  /** Statements that were held back; null when they pass. */
  held: Buffer[] | null
  /** Answers that were held back; null when they pass. */
  heldAnswers: Buffer[] | null
}

export interface LossyProxy {
  readonly port: number
  /** Loses the answers from now on, or from that of the next commit on. */
  dropAnswers(from: 'now' | 'the commit'): void
  /** Holds all statements back from now on. */
  holdStatements(): void
  /** Closes the connections towards the client. Those with statements held back stay open towards the server. */
  cut(): void
  /** Holds everything back in both directions, on these and on later connections, until `deliver`. */
  stall(): void
  /** Delivers what was held back. Connections that the client has closed meanwhile end after it. */
  deliver(): void
  close(): Promise<void>
}

/** Starts the proxy on a free port of 127.0.0.1. */
export async function startLossyProxy(serverPort: number): Promise<LossyProxy> {
  const pairs = new Set<Pair>()
  let isStalled = false
  const stalled = () => (isStalled ? [] : null)
  const proxy = createServer((client) => {
    const pair: Pair = { client, server: connect(serverPort, '127.0.0.1'), drops: 'nothing', held: stalled(), heldAnswers: stalled() }
    pairs.add(pair)
    for (const socket of [pair.client, pair.server]) socket.on('error', () => undefined)
    pair.client.on('data', (data) => (pair.held === null ? pair.server.write(data) : pair.held.push(data)))
    pair.server.on('data', (data) => {
      if (pair.drops === 'from the commit' && data.includes('COMMIT\0')) pair.drops = 'all'
      if (pair.drops === 'all') return
      if (pair.heldAnswers === null) pair.client.write(data)
      else pair.heldAnswers.push(data)
    })
    pair.client.on('close', () => pair.held === null && pair.server.destroy())
    pair.server.on('close', () => {
      pair.client.destroy()
      pairs.delete(pair)
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    dropAnswers: (from) => pairs.forEach((pair) => (pair.drops = from === 'now' ? 'all' : 'from the commit')),
    holdStatements: () => pairs.forEach((pair) => (pair.held ??= [])),
    cut: () => pairs.forEach(({ client }) => client.destroy()),
    stall: () => {
      isStalled = true
      pairs.forEach((pair) => {
        pair.held ??= []
        pair.heldAnswers ??= []
      })
    },
    deliver: () => {
      isStalled = false
      pairs.forEach(pass)
    },
    close: () => {
      for (const { client, server } of pairs) for (const socket of [client, server]) socket.destroy()
      return new Promise((resolve) => void proxy.close(() => resolve()))
    },
  }
}

/** Delivers what a pair of connections has held back. */
function pass(pair: Pair): void {
  const { client, server } = pair
  for (const data of pair.held ?? []) server.write(data)
  for (const data of pair.heldAnswers ?? []) client.write(data)
  if (pair.held !== null && client.destroyed) server.end()
  pair.held = null
  pair.heldAnswers = null
}
