/** Reads the access entries at intervals, because commands at other nodes change them. */
import { errorMessage } from '../../system/caught-error.ts'
import { SECOND, type Clock, type Duration, type Timer } from '../../system/clock.ts'

/** Time after which the access entries of other nodes have their effect. */
const INTERVAL: Duration = 5 * SECOND

export interface AccessWatchDeps {
  readonly clock: Clock
  readonly load: () => Promise<void>
  /** Called with the reason why the entries could not be read. The next look tries again. */
  readonly failed: (why: string) => void
}

export class AccessWatch {
  readonly #deps: AccessWatchDeps
  #timer: Timer
  #isStopped = false

  constructor(deps: AccessWatchDeps) {
    this.#deps = deps
    this.#timer = this.#later()
  }

  /** Leaves no timer behind, also while the entries are being read. */
  stop(): void {
    this.#isStopped = true
    this.#timer.cancel()
  }

  #later(): Timer {
    return this.#deps.clock.after(INTERVAL, () => void this.#look())
  }

  async #look(): Promise<void> {
    const { load, failed } = this.#deps
    try {
      await load()
    } catch (error) {
      if (!this.#isStopped) failed(errorMessage(error))
    }
    if (!this.#isStopped) this.#timer = this.#later()
  }
}
