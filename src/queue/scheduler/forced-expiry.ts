/**
 * Expires messages at the order of an operator. No attempt is made, so no slot or window is needed. At most 50 messages are
 * settled concurrently: an operator may expire the whole queue, and the store needs time for other mail.
 */
import type { DeliveryRequest } from '../../mail/message.ts'
import type { TaskSet } from '../../system/task-set.ts'

/** Maximum number of concurrent settlements. They share commits. */
const AT_ONCE = 50

export class ForcedExpiry {
  readonly #tasks: TaskSet
  readonly #settle: (request: DeliveryRequest) => Promise<void>
  readonly #waiting = new Set<DeliveryRequest>()
  #underWay = 0

  constructor(tasks: TaskSet, settle: (request: DeliveryRequest) => Promise<void>) {
    this.#tasks = tasks
    this.#settle = settle
  }

  add(request: DeliveryRequest): void {
    this.#waiting.add(request)
    this.#next()
  }

  /** Removes and returns the requests that are `wanted` and whose settlement has not started. */
  drain(wanted: (request: DeliveryRequest) => boolean = () => true): readonly DeliveryRequest[] {
    const left = [...this.#waiting].filter(wanted)
    for (const request of left) this.#waiting.delete(request)
    return left
  }

  #next(): void {
    for (const request of this.#waiting) {
      if (this.#underWay >= AT_ONCE) return
      this.#waiting.delete(request)
      this.#underWay++
      this.#tasks.add(this.#expire(request))
    }
  }

  async #expire(request: DeliveryRequest): Promise<void> {
    try {
      await this.#settle(request)
    } finally {
      this.#underWay--
    }
    this.#next()
  }
}
