/**
 * Memory for the bodies of requests that are collected as a whole. All requests together have a limit, and each client has half of it, so
 * that neither slow clients nor many of them take more.
 */
import { seconds, type Duration, type Timers } from '../system/clock.ts'
import { HTTP_PROBLEMS, Problem } from './problem-details.ts'

const MIB = 1024 * 1024

/** Bytes of all bodies together. */
const TOTAL = 64 * MIB
/** Bytes of the bodies of one client, and of the largest body. */
export const LARGEST_COLLECTED = TOTAL / 2
/** Size up to which a body takes no room; the number of connections limits such bodies. */
export const FREE = 64 * 1024
/** Time for which a body waits for room, unread, before it is refused. */
const PATIENCE: Duration = seconds(10)

/** The name of a client, and the end of its connection. */
interface BodyOwner {
  readonly name: string
  readonly signal: AbortSignal
}

interface Wanted {
  readonly name: string
  readonly bytes: number
  readonly granted: () => void
}

export class BodyRoom {
  readonly #clock: Timers
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Set<Wanted>()

  constructor(clock: Timers) {
    this.#clock = clock
  }

  /** Takes room for a body, after those that ask earlier. Rejects with Problem when there is none within PATIENCE. */
  async take(bytes: number, { name, signal }: BodyOwner): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const wanted = { name, bytes, granted: resolve }
    const leave = (error: Error): void => {
      if (!this.#waiting.delete(wanted)) return
      reject(error)
      this.#grant()
    }
    const left = (): void => leave(new Error('the client has disconnected'))
    const timer = this.#clock.after(PATIENCE, () => leave(busy()))
    signal.addEventListener('abort', left)
    this.#waiting.add(wanted)
    this.#grant()
    if (signal.aborted) left()
    await promise.finally(() => {
      timer.cancel()
      signal.removeEventListener('abort', left)
    })
  }

  giveBack(bytes: number, name: string): void {
    const left = (this.#taken.get(name) ?? 0) - bytes
    if (left > 0) this.#taken.set(name, left)
    else this.#taken.delete(name)
    this.#grant()
  }

  #grant(): void {
    for (const wanted of this.#waiting) {
      const { name, bytes, granted } = wanted
      const own = this.#taken.get(name) ?? 0
      if (own + bytes > LARGEST_COLLECTED) continue
      // A large body is not passed by smaller ones for ever.
      if ([...this.#taken.values()].reduce((sum, one) => sum + one, bytes) > TOTAL) return
      this.#taken.set(name, own + bytes)
      this.#waiting.delete(wanted)
      granted()
    }
  }
}

const busy = (): Problem =>
  new Problem(HTTP_PROBLEMS.busy, `${TOTAL / MIB} MiB of request bodies are under way: repeat the request later, or send a stream`, {
    headers: { 'retry-after': '5' },
  })

export class RequestRoom {
  readonly #room: BodyRoom
  readonly #owner: BodyOwner
  #bytes = 0
  #isReleased = false

  constructor(room: BodyRoom, owner: BodyOwner) {
    this.#room = room
    this.#owner = owner
  }

  /** Takes room once. Rejects with Problem when there is none. */
  async take(bytes: number): Promise<true> {
    await this.#room.take(bytes, this.#owner)
    this.#bytes = bytes
    // The request has failed while its body waited.
    if (this.#isReleased) this.release()
    return true
  }

  release(): void {
    this.#isReleased = true
    if (this.#bytes > 0) this.#room.giveBack(this.#bytes, this.#owner.name)
    this.#bytes = 0
  }
}
