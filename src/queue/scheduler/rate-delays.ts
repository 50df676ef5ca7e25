/** Delays between deliveries: the message rates of a destination and of its provider, `destination_rate_delay`, `default_transport_rate_delay`. */
import type { Clock, Duration } from '../../system/clock.ts'
import type { Destination } from './destination.ts'
import type { DestinationTable, RunningDelivery } from './destination-table.ts'
import type { Provider } from './provider.ts'
import type { SchedulerPort } from './scheduler-port.ts'

export interface RateDelaysDeps {
  readonly clock: Clock
  readonly table: DestinationTable
  /** `default_transport_rate_delay`, in ms. */
  readonly transportDelay: () => Duration
  readonly scheduler: Pick<SchedulerPort, 'dispatch'>
}

export class RateDelays {
  readonly #clock: Clock
  readonly #table: DestinationTable
  readonly #transportDelay: () => Duration
  readonly #scheduler: RateDelaysDeps['scheduler']

  constructor({ clock, table, transportDelay, scheduler }: RateDelaysDeps) {
    this.#clock = clock
    this.#table = table
    this.#transportDelay = transportDelay
    this.#scheduler = scheduler
  }

  /** Starts the delays that are measured from the start of a delivery. */
  begun({ destination, provider }: Pick<RunningDelivery, 'destination' | 'provider'>): void {
    const now = this.#clock.monotonic()
    this.#delay(destination, destination.delayAfterBegin(now))
    if (provider !== null) this.#delayProvider(provider, provider.delayAfterBegin(now))
  }

  /** Starts the delays that are measured from the end of a delivery. */
  ended({ destination, provider }: Pick<RunningDelivery, 'destination' | 'provider'>): void {
    const now = this.#clock.monotonic()
    this.#delay(destination, destination.delayAfterEnd(now))
    if (provider !== null) this.#delayProvider(provider, provider.delayAfterEnd(now))
    const { transport } = destination
    const delay = this.#transportDelay()
    if (delay === 0) return this.#table.freeTransport(transport)
    this.#clock.after(delay, () => {
      this.#table.freeTransport(transport)
      this.#scheduler.dispatch()
    })
  }

  #delayProvider(provider: Provider, delay: Duration): void {
    if (delay === 0) return
    provider.beginDelay()
    this.#clock.after(delay, () => {
      provider.endDelay()
      this.#scheduler.dispatch()
    })
  }

  #delay(destination: Destination, delay: Duration): void {
    if (delay === 0) return
    destination.beginDelay()
    this.#clock.after(delay, () => {
      this.#table.endDelay(destination)
      this.#scheduler.dispatch()
    })
  }
}
