/** Delays between deliveries: the message rates of a destination and of its provider, `destination_rate_delay`, `default_transport_rate_delay`. */
import type { Duration } from '../../system/clock.ts'
import type { Destination } from './destination.ts'
import type { RunningDelivery } from './destination-table.ts'
import type { Provider } from './provider.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

export class RateDelays {
  readonly #state: Pick<SchedulerState, 'clock' | 'table' | 'limits'>
  readonly #scheduler: Pick<SchedulerLoop, 'dispatch'>

  constructor(state: Pick<SchedulerState, 'clock' | 'table' | 'limits'>, scheduler: Pick<SchedulerLoop, 'dispatch'>) {
    this.#state = state
    this.#scheduler = scheduler
  }

  /** Starts the delays that are measured from the start of a delivery. */
  begun({ destination, provider }: Pick<RunningDelivery, 'destination' | 'provider'>): void {
    const now = this.#state.clock.monotonic()
    this.#delay(destination, destination.delayAfterBegin(now))
    if (provider !== null) this.#delayProvider(provider, provider.delayAfterBegin(now))
  }

  /** Starts the delays that are measured from the end of a delivery. */
  ended({ destination, provider }: Pick<RunningDelivery, 'destination' | 'provider'>): void {
    const now = this.#state.clock.monotonic()
    this.#delay(destination, destination.delayAfterEnd(now))
    if (provider !== null) this.#delayProvider(provider, provider.delayAfterEnd(now))
    const { transport } = destination
    const delay = this.#state.limits().transportDelay
    if (delay === 0) return this.#state.table.freeTransport(transport)
    this.#state.clock.after(delay, () => {
      this.#state.table.freeTransport(transport)
      this.#scheduler.dispatch()
    })
  }

  #delayProvider(provider: Provider, delay: Duration): void {
    if (delay === 0) return
    provider.beginDelay()
    this.#state.clock.after(delay, () => {
      provider.endDelay()
      this.#scheduler.dispatch()
    })
  }

  #delay(destination: Destination, delay: Duration): void {
    if (delay === 0) return
    destination.beginDelay()
    this.#state.clock.after(delay, () => {
      this.#state.table.endDelay(destination)
      this.#scheduler.dispatch()
    })
  }
}
