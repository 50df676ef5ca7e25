/** Closes the open parts of the daemon in the reverse order of their opening, also after an opening that failed. */
import { errorMessage } from '../system/caught-error.ts'
import type { Duration } from '../system/clock.ts'
import type { Events } from '../telemetry/events.ts'

/** Closes a part. `grace` is the time in ms that its work in progress may take. */
type Closer = (grace: Duration) => Promise<void> | void

export class Closers {
  readonly #closers: Closer[] = []
  readonly #events: Events

  constructor(events: Events) {
    this.#events = events
  }

  add(close: Closer): void {
    this.#closers.push(close)
  }

  /** Stops a part before the parts that were added earlier. */
  addPart(part: { readonly stop: () => Promise<void> | void }): void {
    this.add(() => part.stop())
  }

  /**
   * Closes everything. Errors are logged, because the other parts must still be closed: accepted mail is in the store, however the process
   * ends.
   */
  async close(grace: Duration): Promise<void> {
    for (let last = this.#closers.pop(); last !== undefined; last = this.#closers.pop()) {
      try {
        await last(grace)
      } catch (error) {
        this.#events.emit({ kind: 'note', level: 'error', text: `while stopping: ${errorMessage(error)}` })
      }
    }
  }
}
