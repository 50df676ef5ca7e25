/**
 * Where a command hands in what it wants changed: at the daemon, over its control socket, or at itself when no daemon
 * runs and it may own the queue for a moment. Both do the same things the same way.
 */
import type { IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { controlPath } from '../daemon/control-path.ts'
import type { OrderReply } from '../daemon/control.ts'
import type { LiveDestination, Operations, Order, Progress, Tally } from '../queue/operations.ts'
import { CommandError, EX } from './shell.ts'

export interface OperationsDesk {
  perform(order: Order, progress?: (soFar: Progress) => void): Promise<Tally>
  suspend(name: string, who: string): Promise<void>
  resume(name: string, who: string): Promise<void>
  /** Destinations as the scheduler has them in memory; null when no daemon runs. */
  destinations(): Promise<readonly LiveDestination[] | null>
  close(): Promise<void>
}

// An import of node:http as a module reads all it exports, WebSocket among them, and so loads the whole of fetch: 20 ms.
const { request: httpRequest } = process.getBuiltinModule('node:http')

/** The desk of a running daemon. */
class DaemonDesk implements OperationsDesk {
  readonly #socketPath: string

  constructor(socketPath: string) {
    this.#socketPath = socketPath
  }

  async perform(order: Order, progress: (soFar: Progress) => void = () => undefined): Promise<Tally> {
    try {
      const response = await this.#ask('POST', '/orders', order)
      for await (const line of createInterface({ input: response })) {
        const reply = JSON.parse(line) as OrderReply
        if (reply.kind === 'failed') throw new CommandError(reply.exitCode, reply.why)
        if (reply.kind === 'done') return reply.tally
        progress(reply.soFar)
      }
    } catch (error) {
      // It was killed, or its machine went down with it.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    }
    throw new CommandError(EX.temporary, 'the daemon went away before it had finished; what it had done is done')
  }

  async suspend(destination: string, who: string): Promise<void> {
    await this.#json('POST', '/suspend', { destination, who })
  }

  async resume(destination: string, who: string): Promise<void> {
    await this.#json('POST', '/resume', { destination, who })
  }

  async destinations(): Promise<readonly LiveDestination[]> {
    return (await this.#json('GET', '/destinations')) as readonly LiveDestination[]
  }

  async close(): Promise<void> {
    // Every request had a connection of its own.
  }

  async #json(method: string, path: string, body?: object): Promise<unknown> {
    const response = await this.#ask(method, path, body)
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
    const value: unknown = JSON.parse(text)
    if (response.statusCode === 200) return value
    const { why, exitCode } = value as Extract<OrderReply, { kind: 'failed' }>
    throw new CommandError(exitCode, why)
  }

  #ask(method: string, path: string, body?: object): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({ socketPath: this.#socketPath, method, path, agent: false }, resolve)
      request.on('error', reject)
      request.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

/** The desk of the running daemon; null when none listens at this queue. */
export async function openDaemonDesk(queueDirectory: string): Promise<OperationsDesk | null> {
  const desk = new DaemonDesk(controlPath(queueDirectory))
  return (await answerOf(desk)) === null ? null : desk
}

/** What the daemon knows of destinations; null when it does not answer because there is none. */
async function answerOf(desk: DaemonDesk): Promise<readonly LiveDestination[] | null> {
  try {
    return await desk.destinations()
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? ''
    if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTDIR') return null
    if (code === 'EACCES') throw new CommandError(EX.notPermitted, 'only the user who runs the daemon, or root, may do this', { cause })
    throw cause
  }
}

/** Destinations as the daemon has them; nothing of them when we may not ask it, null when none runs. */
export async function askForDestinations(queueDirectory: string): Promise<readonly LiveDestination[] | null> {
  try {
    return await answerOf(new DaemonDesk(controlPath(queueDirectory)))
  } catch (error) {
    if (error instanceof CommandError && error.exitCode === EX.notPermitted) return []
    throw error
  }
}

/** A desk of our own, for a queue that we own until it is closed. */
export function ownDesk(operations: Operations, close: () => Promise<void>): OperationsDesk {
  return {
    perform: (order, progress) => operations.perform(order, progress),
    suspend: (name, who) => operations.suspend(name, who),
    resume: (name, who) => operations.resume(name, who),
    destinations: () => Promise.resolve(null),
    close,
  }
}
