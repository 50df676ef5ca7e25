/**
 * Decides when the maildrop is read: at once when `sendmail` has woken the daemon, and once a minute. Any local user can wake the
 * daemon at any rate and fill the folder with entries that are not mail, so passes keep a distance that grows with their cost.
 */
import { MINUTE, SECOND, sleep, type Clock, type Duration } from '../../system/clock.ts'

/** Result of a pass over the folder. */
export interface PassResult {
  /** Number of queued messages. */
  readonly taken: number
  /** Number of entries that were read and remain in the folder. */
  readonly left: number
  /** True when the pass ended early, because no mail can be queued now. */
  readonly isStopped: boolean
}

/** Time between passes (Postfix master.cf: pickup every 60 s). */
const INTERVAL: Duration = MINUTE
/** Time until the next pass after a pass that queued mail. */
const BUSY_INTERVAL: Duration = SECOND
/** Minimum time between two passes. */
const DISTANCE: Duration = 100
/** Added to the minimum for each entry that remains, about ten times as long as it takes to look at the entry. */
const PER_ENTRY: Duration = 1
/** Minimum time after a pass that ended early. */
const AFTER_STOP: Duration = SECOND

/** Pause before the next pass in ms: `least` if the daemon is woken, else `most`. */
export function pauseAfter({ taken, left, isStopped }: PassResult): { readonly least: Duration; readonly most: Duration } {
  const least = Math.min(INTERVAL, Math.max(isStopped ? AFTER_STOP : 0, DISTANCE + left * PER_ENTRY))
  return { least, most: Math.max(least, taken > 0 ? BUSY_INTERVAL : INTERVAL) }
}

export class MaildropPasses {
  readonly #clock: Clock
  readonly #pass: () => Promise<PassResult>
  readonly #stopping = new AbortController()
  #waking = new AbortController()
  #running: Promise<void> | null = null

  /** `pass` reads the folder once and does not reject. */
  constructor(clock: Clock, pass: () => Promise<PassResult>) {
    this.#clock = clock
    this.#pass = pass
  }

  /** Aborts when the passes are to end. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Starts the passes, which continue until `stop`. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Has a pass begin as soon as its distance to the last one allows. */
  wake(): void {
    this.#waking.abort()
  }

  /** Stops the passes. Resolves when the running pass has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#waking.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      this.#waking = new AbortController()
      const { least, most } = pauseAfter(await this.#pass())
      await sleep(this.#clock, least, signal)
      // A wake during the pass may stand for a file that the pass did not see.
      await sleep(this.#clock, most - least, this.#waking.signal)
    }
  }
}
