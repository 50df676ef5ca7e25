/**
 * The socket by which `sendmail` wakes the daemon when it has written to the maildrop (Postfix public/pickup), and by which it asks for
 * queue ids. All local users may connect. A connection begins a pass over the maildrop and no more; a client that sends names of files, one
 * per line, gets the outcome of each in a line. The names are random, so only their submitter knows them.
 *
 * A user who connects at a high rate has the socket closed for the rest of the time window. Files that are submitted meanwhile are found
 * by the pass that follows each opening of the socket.
 */
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import type { SubmissionOutcomes } from '../queue/intake/submission-outcomes.ts'
import { errorMessage } from '../system/caught-error.ts'
import { MINUTE, SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'
import type { Events } from '../telemetry/events.ts'
import { pickupPath } from './admin/socket-path.ts'

/** Connections accepted within WINDOW. */
const MOST_ACCEPTED = 32
const WINDOW: Duration = 500
/** Connections open at the same time. */
const MOST_OPEN = 32
/** Limit of a connection; `sendmail` waits for a shorter time. */
const TIME_LIMIT: Duration = 15 * SECOND
/** Bytes that a client may send. */
const INPUT_LIMIT = 64 * 1024
/** Applies after a failure to open the socket. */
const RETRY_INTERVAL: Duration = MINUTE

interface PickupSocketDeps {
  readonly queueDirectory: string
  /** Announces that files may be in the maildrop. */
  readonly wake: () => void
  readonly outcomes: Pick<SubmissionOutcomes, 'listen'>
  readonly clock: Clock
  readonly events: Events
}

export class PickupSocket {
  readonly #deps: PickupSocketDeps
  readonly #path: string
  readonly #stopping = new AbortController()
  readonly #open = new Set<Socket>()
  #running: Promise<void> | null = null
  /** The reason why the socket cannot be opened, as logged last. */
  #failure: string | null = null

  constructor(deps: PickupSocketDeps) {
    this.#deps = deps
    this.#path = pickupPath(deps.queueDirectory)
  }

  /** Opens the socket, now and after each closing, until `stop`. The caller holds the lock of the queue. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Closes the socket and its connections. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const socket of this.#open) socket.destroy()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, wake } = this.#deps
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const server = await this.#listen()
      const closed = server === null ? null : this.#serve(server)
      // Clients that found no socket have left files.
      wake()
      await closed
      await sleep(clock, server === null ? RETRY_INTERVAL : WINDOW, signal)
    }
  }

  /** Opens the socket. Resolves with null when it cannot be opened, which is logged once. */
  async #listen(): Promise<Server | null> {
    try {
      // A killed daemon leaves the file of its socket.
      await rm(this.#path, { force: true })
      const server = await listening(this.#path)
      this.#failure = null
      return server
    } catch (error) {
      const text = `cannot open ${this.#path}, so that mail of sendmail waits for up to a minute: ${errorMessage(error)}`
      if (text !== this.#failure) this.#deps.events.emit({ kind: 'note', level: 'warning', text })
      this.#failure = text
      return null
    }
  }

  /** Accepts connections. Resolves when the socket is closed: at the limit of connections, at a failure to accept one, or by `stop`. */
  #serve(server: Server): Promise<void> {
    const { clock } = this.#deps
    const { signal } = this.#stopping
    return new Promise((resolve) => {
      let began = clock.monotonic()
      let count = 0
      const close = (): void => {
        signal.removeEventListener('abort', close)
        server.close()
        resolve()
      }
      signal.addEventListener('abort', close)
      server.on('error', close)
      server.on('connection', (socket) => {
        this.#accepted(socket)
        const now = clock.monotonic()
        if (now - began >= WINDOW) [began, count] = [now, 0]
        if (++count === MOST_ACCEPTED) close()
      })
      if (signal.aborted) close()
    })
  }

  #accepted(socket: Socket): void {
    this.#deps.wake()
    // A client may leave at any time.
    socket.on('error', () => undefined)
    if (this.#open.size >= MOST_OPEN || this.#stopping.signal.aborted) return void socket.destroy()
    this.#open.add(socket)
    const limit = this.#deps.clock.after(TIME_LIMIT, () => socket.destroy())
    const forget = this.#answer(socket)
    socket.once('close', () => {
      limit.cancel()
      forget()
      this.#open.delete(socket)
    })
  }

  /** Writes the outcome of each file that the client names. Returns a function that ends the waiting for outcomes. */
  #answer(socket: Socket): () => void {
    const waiting: (() => void)[] = []
    let input = ''
    let received = 0
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      received += text.length
      if (received > INPUT_LIMIT) return void socket.destroy()
      const names = (input + text).split('\n')
      input = names.pop() ?? ''
      for (const name of names) waiting.push(this.#deps.outcomes.listen(name, (outcome) => socket.write(`${outcome}\n`)))
    })
    return () => {
      for (const end of waiting) end()
    }
  }
}

/** Opens a socket at a path, for clients of all users: a client needs the permission to write (unix(7)). */
function listening(path: string): Promise<Server> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path, writableAll: true }, () => {
      server.off('error', reject)
      resolve(server)
    })
  })
}
