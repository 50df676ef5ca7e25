/**
 * Expires messages at the order of an operator. No attempt is made, so no slot or window is needed. At most 50 messages are
 * settled concurrently: an operator may expire the whole queue, and the store needs time for other mail.
 */
import type { GiveBack } from './give-back.ts'
import type { DeliveryRequest } from '../../mail/message.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'
import { ADMINISTRATIVELY_EXPIRED, type SettlementWriter } from './settlement-writer.ts'

type State = Pick<SchedulerState, 'active' | 'table' | 'tasks'>
interface Loops {
  readonly settlements: Pick<SettlementWriter, 'expired'>
  readonly giveBack: Pick<GiveBack, 'requests'>
  readonly scheduler: Pick<SchedulerLoop, 'left'>
}

/** Maximum number of concurrent settlements. They share commits. */
const AT_ONCE = 50

export class ForcedExpiry {
  readonly #state: State
  readonly #loops: Loops
  readonly #waiting = new Set<DeliveryRequest>()
  #underWay = 0

  constructor(state: State, loops: Loops) {
    this.#state = state
    this.#loops = loops
  }

  /** Expires a request that the active queue has counted. */
  add(request: DeliveryRequest): void {
    this.#waiting.add(request)
    this.#next()
  }

  /** Gives the requests that are `wanted` and whose expiry has not started back to the store. */
  async giveBack(wanted: (request: DeliveryRequest) => boolean = () => true): Promise<void> {
    const { active, table } = this.#state
    const returning = [...this.#waiting].filter(wanted).map((request) => {
      this.#waiting.delete(request)
      active.release(request.message.id, request.recipients.length)
      return this.#loops.giveBack.requests(table.get(request.destination), [request])
    })
    await Promise.all(returning)
  }

  #next(): void {
    for (const request of this.#waiting) {
      if (this.#underWay >= AT_ONCE) return
      this.#waiting.delete(request)
      this.#underWay++
      this.#state.tasks.add(this.#expire(request))
    }
  }

  async #expire(request: DeliveryRequest): Promise<void> {
    const { active, table } = this.#state
    const { settlements, scheduler } = this.#loops
    try {
      await settlements.expired(request, ADMINISTRATIVELY_EXPIRED)
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
