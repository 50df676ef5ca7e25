/**
 * Decides which answers are durable. Answers are counted in the order of their calls. A sync makes those durable that were written when it
 * began, whichever sync ends first.
 */
export class SyncOrder {
  /** Number of answers whose transactions have ended, so that their frames are in the log. */
  #written = 0
  /** Number of answers up to the last transaction that has changed the queue. */
  #changed = 0
  /** Number of answers that the syncs include which have begun. */
  #begun = 0
  /** Number of answers that the syncs include which have ended without an error. */
  #synced = 0
  #durable = 0
  #hasFailed = false

  /** Number of durable answers. Grows no more after a failed sync. */
  get durable(): number {
    return this.#durable
  }

  /** True when a change is written that no sync includes. */
  get needsSync(): boolean {
    return !this.#hasFailed && this.#changed > this.#begun
  }

  /** Counts answers after the end of their transaction. Those that have changed nothing need no sync of their own. */
  written(answers: number, changed: boolean): void {
    this.#written += answers
    if (changed) this.#changed = this.#written
    this.#count()
  }

  /** Called before a sync begins. Returns the number of answers that it includes. */
  begin(): number {
    this.#begun = this.#written
    return this.#begun
  }

  /** Counts a sync that has ended without an error. Has no effect after a failed one, whose pages the system may have dropped. */
  ended(included: number): void {
    this.#synced = Math.max(this.#synced, included)
    this.#count()
  }

  failed(): void {
    this.#hasFailed = true
  }

  #count(): void {
    if (!this.#hasFailed) this.#durable = this.#synced >= this.#changed ? this.#written : Math.max(this.#durable, this.#synced)
  }
}
