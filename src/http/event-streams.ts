/** Responses of server-sent events. Their number is limited, and a client that does not read loses events, then its stream. */
import type { ServerResponse } from 'node:http'
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'

const MOST_STREAMS = 50
/** Number of unread bytes above which a stream gets no events. */
const UNREAD_LIMIT = 64 * 1024
/** Time after which a stream that still has more unread bytes is closed. */
const PATIENCE: Duration = seconds(30)
/** Interval of comments that keep the connection through proxies, and of the check that the client may still read. */
const KEEP_ALIVE: Duration = seconds(15)

/** Keeps proxies such as nginx from buffering the response. */
const HEADERS = { 'x-accel-buffering': 'no' }

interface Client {
  readonly response: ServerResponse
  /** Resolves with false when the client has lost the right to the events. */
  readonly confirm: () => Promise<boolean>
}

interface OpenStream extends Client {
  /** Time since which the client has not read; null while it reads. */
  behindSince: Duration | null
}

export class EventStreams {
  readonly #clock: Timers
  readonly #open = new Set<OpenStream>()
  /** Runs while a stream is open. */
  #comments: PeriodicTask | null = null

  constructor(clock: Timers) {
    this.#clock = clock
  }

  /** Begins a stream, which lasts until the client disconnects. Throws Problem when as many as are allowed are open. */
  open(
    { response, confirm }: Client,
    subscribe: (send: (event: string) => void) => () => void,
    begin: (headers: Readonly<Record<string, string>>) => void,
  ): void {
    if (this.#open.size >= MOST_STREAMS)
      throw new Problem(HTTP_PROBLEMS.busy, `${MOST_STREAMS} streams are open already: close one, or ask without a stream`, {
        headers: { 'retry-after': '10' },
      })
    const stream: OpenStream = { response, confirm, behindSince: null }
    begin(HEADERS)
    response.flushHeaders()
    this.#open.add(stream)
    const unsubscribe = subscribe((event) => this.#send(stream, event))
    this.#comments ??= every(this.#clock, KEEP_ALIVE, () => this.#keepAlive())
    const ended = (): void => {
      if (this.#open.delete(stream)) unsubscribe()
      if (this.#open.size === 0) this.#endComments()
    }
    if (response.destroyed) ended()
    else response.on('close', ended)
  }

  /** Ends the streams of clients that have lost the right to them. */
  async confirmAll(): Promise<void> {
    await Promise.all(
      [...this.#open].map(async ({ response, confirm }) => {
        // A failed check is repeated at the next keep-alive: the store may be unavailable for a moment.
        if (!(await confirm().catch(() => true))) response.end()
      }),
    )
  }

  close(): void {
    this.#endComments()
    for (const { response } of this.#open) response.end()
  }

  #send(stream: OpenStream, event: string): void {
    const { response } = stream
    if (response.writableLength <= UNREAD_LIMIT) {
      stream.behindSince = null
      response.write(event)
      return
    }
    stream.behindSince ??= this.#clock.monotonic()
    if (this.#clock.monotonic() - stream.behindSince >= PATIENCE) response.destroy()
  }

  #keepAlive(): void {
    for (const stream of this.#open) this.#send(stream, ': keep-alive\n\n')
    void this.confirmAll()
  }

  #endComments(): void {
    void this.#comments?.stop()
    this.#comments = null
  }
}
