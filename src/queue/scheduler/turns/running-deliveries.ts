/** Numbers of deliveries in progress by band, at one place with a limit: the relay, a destination or a provider. */
import type { Band, MailClasses, SchedulingClass } from '../../../config/values/mail-classes.ts'

/** Least limit of which reserves keep a place free. */
const LEAST_LIMIT = 4

/** Number of places that classes of less weight have, when those above reserve a part of a limit: at least one, at a limit of 4 or more. */
export const placesLeft = (limit: number, reserved: number): number =>
  limit < LEAST_LIMIT ? limit : limit - Math.max(1, Math.floor(limit * reserved))

export class RunningDeliveries {
  readonly #counts = new Map<Band, number>()
  #all = 0

  get all(): number {
    return this.#all
  }

  begin(band: Band): void {
    this.#all++
    this.#counts.set(band, (this.#counts.get(band) ?? 0) + 1)
  }

  end(band: Band): void {
    this.#all--
    this.#counts.set(band, (this.#counts.get(band) ?? 0) - 1)
  }

  /**
   * True when the reserves of the classes above leave a place to the band; `places` is the number of places that classes below have when
   * those above reserve a part. The deliveries of the classes below are counted, and not the free places: otherwise a busy class would keep
   * the others from all of them.
   */
  leavesRoomTo(band: Band, classes: MailClasses, places: (reserved: number) => number): boolean {
    return classes.reservedAbove(classes.ofBand(band)).every(({ above, reserved }) => this.#below(above, classes) < places(reserved))
  }

  #below(above: SchedulingClass, classes: MailClasses): number {
    let running = 0
    for (const [band, count] of this.#counts) if (classes.ofBand(band).weight < above.weight) running += count
    return running
  }
}
