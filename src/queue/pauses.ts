/** The pauses between deliveries that an operator asked for: by destination, by rate, by transport. */
import { MINUTE, type Clock, type Duration } from '../mail/clock.ts'
import type { ActiveQueue, Turn } from './active-queue.ts'
import type { Destination } from './destination.ts'

export interface PausesParts {
  readonly clock: Clock
  readonly active: ActiveQueue
  /** `default_transport_rate_delay`. */
  readonly transportPause: () => Duration
  /** A pause is over. */
  readonly turn: () => void
}

export class Pauses {
  readonly #parts: PausesParts

  constructor(parts: PausesParts) {
    this.#parts = parts
  }

  /** A delivery begins: with a message rate, the next one there begins a while after it. */
  begun({ destination, alone }: Turn): void {
    if (alone) return
    const perMinute = destination.settings.destination_message_rate_limit
    if (perMinute > 0) this.#rest(destination, MINUTE / perMinute)
  }

  /** A delivery has ended: with a rate delay, the next one there, or of the whole transport, begins a while after this. */
  ended({ destination, alone }: Turn): void {
    if (alone) return
    const pause = destination.settings.destination_rate_delay
    if (pause > 0) this.#rest(destination, pause)
    const { clock, active, transportPause, turn } = this.#parts
    const { transport } = destination
    if (transportPause() === 0) return active.freeTransport(transport)
    clock.after(transportPause(), () => {
      active.freeTransport(transport)
      turn()
    })
  }

  #rest(destination: Destination, pause: Duration): void {
    const { clock, active, turn } = this.#parts
    destination.rests++
    clock.after(pause, () => {
      destination.rests--
      active.stir(destination)
      turn()
    })
  }
}
