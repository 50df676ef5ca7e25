/**
 * Closes connections whose client does not read its answers, so that it holds neither memory nor one of the connections for longer than
 * the limit. A client that reads slowly is not limited.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'

/** Time without progress after which a connection is closed. Answers are written in pieces, each of which is progress. */
const READ_WITHIN: Duration = seconds(30)
const CHECK_INTERVAL: Duration = seconds(5)

interface Progress {
  /** Number of responses that have not been sent. */
  open: number
  /** Number of bytes that the system has taken. */
  taken: number
  /** Time of the last progress, or at which nothing waited to be taken. */
  at: Duration
}

export class UnreadAnswers {
  readonly #clock: Timers
  readonly #sockets = new Map<Socket, Progress>()
  /** Runs while a response is open. */
  #task: PeriodicTask | null = null

  constructor(clock: Timers) {
    this.#clock = clock
  }

  /** Watches the connection of a response until it has been sent. */
  watch(response: ServerResponse): void {
    // The event `close` of a client that has left is over.
    if (response.destroyed) return
    const { socket } = response.req
    const progress = this.#sockets.get(socket) ?? { open: 0, taken: 0, at: this.#clock.monotonic() }
    progress.open++
    this.#sockets.set(socket, progress)
    this.#task ??= every(this.#clock, CHECK_INTERVAL, () => this.#examine())
    response.on('close', () => {
      progress.open--
      if (progress.open > 0) return
      this.#sockets.delete(socket)
      if (this.#sockets.size > 0) return
      void this.#task?.stop()
      this.#task = null
    })
  }

  #examine(): void {
    const now = this.#clock.monotonic()
    for (const [socket, progress] of this.#sockets) {
      const { bytesWritten, writableLength } = socket
      const taken = bytesWritten - writableLength
      if (writableLength === 0 || taken !== progress.taken) Object.assign(progress, { taken, at: now })
      else if (now - progress.at >= READ_WITHIN) socket.destroy()
    }
  }
}
