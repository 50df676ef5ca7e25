/**
 * Rounds of messages with a notice due. A round collects the recipients that fail together, so that one notice lists them. It
 * ends when no recipient of the message is in delivery or due at an open destination, at this node or at another, and at most one
 * minute after its first failure.
 */
import { MINUTE, type Clock, type Duration, type Timer } from '../system/clock.ts'
import type { MessageId } from '../mail/message.ts'

/** Maximum time that a failure waits for the other recipients of its message. */
const ROUND: Duration = MINUTE

export class NoticeRounds {
  readonly #clock: Clock
  readonly #isOpen: (message: MessageId) => boolean
  readonly #ended: (message: MessageId, isOverdue: boolean) => void
  /** Latest end of each round on the monotonic clock, ordered by first failure. */
  readonly #deadlines = new Map<MessageId, Duration>()
  #timer: Timer | null = null
  #stopped = false

  /**
   * `isOpen` returns true while the scheduler has a recipient of the message in memory. `ended` is called when a round ends;
   * `isOverdue` is true when the round has taken its maximum time.
   */
  constructor(clock: Clock, isOpen: (message: MessageId) => boolean, ended: (message: MessageId, isOverdue: boolean) => void) {
    this.#clock = clock
    this.#isOpen = isOpen
    this.#ended = ended
  }

  /** True while the message waits for the end of its round. */
  has(message: MessageId): boolean {
    return this.#deadlines.has(message)
  }

  /**
   * Begins the round of a message for which a notice is due, if it has not begun. Ends the round at once when no recipient of the
   * message is in memory.
   */
  begin(message: MessageId): void {
    if (this.#isOpen(message)) this.extend(message)
    else this.#end(message, false)
  }

  /** Lets the round of a message go on, because another node has a recipient of it in delivery. */
  extend(message: MessageId): void {
    if (this.#deadlines.has(message)) return
    this.#deadlines.set(message, this.#clock.monotonic() + ROUND)
    this.#arm()
  }

  /** Ends the message's round if no recipient of it is left in memory. */
  check(message: MessageId): void {
    if (this.#deadlines.has(message) && !this.#isOpen(message)) this.#end(message, false)
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #end(message: MessageId, isOverdue: boolean): void {
    this.#deadlines.delete(message)
    this.#ended(message, isOverdue)
  }

  #arm(): void {
    if (this.#timer !== null || this.#stopped) return
    const [first] = this.#deadlines.values()
    if (first === undefined) return
    this.#timer = this.#clock.after(first - this.#clock.monotonic(), () => {
      this.#timer = null
      const now = this.#clock.monotonic()
      for (const [message, deadline] of this.#deadlines) {
        if (deadline > now) break
        this.#end(message, true)
      }
      this.#arm()
    })
  }
}
