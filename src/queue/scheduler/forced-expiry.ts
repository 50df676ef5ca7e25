/**
 * Expires messages at the order of an operator. No attempt is made, so no slot or window is needed. At most 50 messages are
 * settled concurrently: an operator may expire the whole queue, and the store needs time for other mail.
 */
import type { DeliveryRequest } from '../../mail/message.ts'
import type { TaskSet } from '../../system/task-set.ts'
import type { ActiveQueue } from './active-queue.ts'
import type { DestinationTable } from './destination-table.ts'
import type { SchedulerPort } from './scheduler-port.ts'
import { ADMINISTRATIVELY_EXPIRED } from './settlement-writer.ts'

export interface ForcedExpiryDeps {
  readonly active: ActiveQueue
  readonly table: DestinationTable
  readonly tasks: TaskSet
  readonly scheduler: Pick<SchedulerPort, 'settle' | 'giveBack' | 'left'>
}

/** Maximum number of concurrent settlements. They share commits. */
const AT_ONCE = 50

export class ForcedExpiry {
  readonly #deps: ForcedExpiryDeps
  readonly #waiting = new Set<DeliveryRequest>()
  #underWay = 0

  constructor(deps: ForcedExpiryDeps) {
    this.#deps = deps
  }

  /** Expires a request that the active queue has counted. */
  add(request: DeliveryRequest): void {
    this.#waiting.add(request)
    this.#next()
  }

  /** Gives the requests that are `wanted` and whose expiry has not started back to the store. */
  async giveBack(wanted: (request: DeliveryRequest) => boolean = () => true): Promise<void> {
    const { active, table, scheduler } = this.#deps
    const returning = [...this.#waiting].filter(wanted).map((request) => {
      this.#waiting.delete(request)
      active.release(request.message.id, request.recipients.length)
      return scheduler.giveBack(table.get(request.destination), [request])
    })
    await Promise.all(returning)
  }

  #next(): void {
    for (const request of this.#waiting) {
      if (this.#underWay >= AT_ONCE) return
      this.#waiting.delete(request)
      this.#underWay++
      this.#deps.tasks.add(this.#expire(request))
    }
  }

  async #expire(request: DeliveryRequest): Promise<void> {
    const { active, table, scheduler } = this.#deps
    try {
      await scheduler.settle(request, ADMINISTRATIVELY_EXPIRED)
      const destination = table.get(request.destination)
      active.release(request.message.id, request.recipients.length)
      if (destination.isIdle && !destination.claiming) destination.probing(false)
      scheduler.left(request.message, destination)
    } finally {
      this.#underWay--
    }
    this.#next()
  }
}
