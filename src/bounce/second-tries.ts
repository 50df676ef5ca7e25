/**
 * Notices that could not be made by reason of a bug of ours. Their debts stand; they are tried again ever more rarely,
 * never in a hurry, and for the last time after some hours: from then on they wait for a start of a better program.
 */
import { MINUTE, type Clock, type Duration, type Timer } from '../mail/clock.ts'
import type { MessageId } from '../queue/message.ts'

const FIRST: Duration = MINUTE
/** The last one comes some 17 hours after the first failure. */
const TRIES = 10

export class SecondTries {
  readonly #clock: Clock
  readonly #again: (message: MessageId) => void
  readonly #failures = new Map<MessageId, { readonly times: number; readonly timer: Timer | undefined }>()

  constructor(clock: Clock, again: (message: MessageId) => void) {
    this.#clock = clock
    this.#again = again
  }

  /** The notice of the message failed (again); says when it is tried again, in how long. */
  failed(message: MessageId): Duration | null {
    const before = this.#failures.get(message)
    before?.timer?.cancel()
    const times = (before?.times ?? 0) + 1
    const wait = times > TRIES ? null : FIRST * 2 ** (times - 1)
    this.#failures.set(message, { times, timer: wait === null ? undefined : this.#clock.after(wait, () => this.#again(message)) })
    return wait
  }

  /** The notice was made. */
  made(message: MessageId): void {
    this.#failures.get(message)?.timer?.cancel()
    this.#failures.delete(message)
  }

  stop(): void {
    for (const { timer } of this.#failures.values()) timer?.cancel()
    this.#failures.clear()
  }
}
