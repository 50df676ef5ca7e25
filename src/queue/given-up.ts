/**
 * Mail that operators gave up. Nobody is asked about it, so it needs no slot and waits for no window; but there may be
 * all of a queue of it, so it is settled a few messages at a time, and the store has time for others.
 */
import type { DeliveryRequest } from './message.ts'

export interface GivenUpParts {
  /** Settles one, and lets go of it. */
  readonly settle: (request: DeliveryRequest) => Promise<void>
  readonly track: (work: Promise<void>) => void
}

/** Settlements under way: enough to share commits, too few to be in the way. */
const AT_ONCE = 50

export class GivenUp {
  readonly #parts: GivenUpParts
  readonly #waiting = new Set<DeliveryRequest>()
  #underWay = 0

  constructor(parts: GivenUpParts) {
    this.#parts = parts
  }

  add(request: DeliveryRequest): void {
    this.#waiting.add(request)
    this.#next()
  }

  /** What has not begun, taken out. */
  drain(): readonly DeliveryRequest[] {
    const left = [...this.#waiting]
    this.#waiting.clear()
    return left
  }

  #next(): void {
    for (const request of this.#waiting) {
      if (this.#underWay >= AT_ONCE) return
      this.#waiting.delete(request)
      this.#underWay++
      this.#parts.track(this.#settle(request))
    }
  }

  async #settle(request: DeliveryRequest): Promise<void> {
    try {
      await this.#parts.settle(request)
    } finally {
      this.#underWay--
    }
    this.#next()
  }
}
