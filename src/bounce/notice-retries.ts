/**
 * Retries notices that failed with an internal error: 10 retries with exponential backoff (about 17 h), then none until a restart.
 * The notices stay due in the store.
 */
import { MINUTE, type Clock, type Duration, type Timer } from '../system/clock.ts'
import type { MessageId } from '../mail/message.ts'

const FIRST: Duration = MINUTE
/** Maximum number of retries. The last one is about 17 hours after the first failure. */
const TRIES = 10

export class NoticeRetries {
  readonly #clock: Clock
  readonly #again: (message: MessageId) => void
  readonly #failures = new Map<MessageId, { readonly times: number; readonly timer: Timer | undefined }>()

  constructor(clock: Clock, again: (message: MessageId) => void) {
    this.#clock = clock
    this.#again = again
  }

  /** Records a failure. Returns the delay in ms before the next retry; null after the last retry. */
  failed(message: MessageId): Duration | null {
    const before = this.#failures.get(message)
    before?.timer?.cancel()
    const times = (before?.times ?? 0) + 1
    const wait = times > TRIES ? null : FIRST * 2 ** (times - 1)
    this.#failures.set(message, { times, timer: wait === null ? undefined : this.#clock.after(wait, () => this.#again(message)) })
    return wait
  }

  /** Clears the failures of a message whose notice was queued. */
  made(message: MessageId): void {
    this.#failures.get(message)?.timer?.cancel()
    this.#failures.delete(message)
  }

  stop(): void {
    for (const { timer } of this.#failures.values()) timer?.cancel()
    this.#failures.clear()
  }
}
