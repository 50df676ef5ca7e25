/**
 * Warnings about 8-bit content for hosts that do not offer 8BITMIME, one for each destination. The content is sent unchanged, as by Postfix
 * with disable_mime_output_conversion = yes.
 */
import { queueIdOf, type DeliveryRequest, type DestinationName } from '../../mail/message.ts'

const MOST_DESTINATIONS = 10_000

export class EightBitWarnings {
  readonly #warn: (text: string) => void
  readonly #warned = new Set<DestinationName>()

  constructor(warn: (text: string) => void) {
    this.#warn = warn
  }

  /** Called when content went to a relay that does not offer 8BITMIME. */
  sent({ destination, message }: DeliveryRequest, relay: string): void {
    if (this.#warned.has(destination)) return
    if (this.#warned.size >= MOST_DESTINATIONS) this.#warned.clear()
    this.#warned.add(destination)
    this.#warn(`${queueIdOf(message)}: 8-bit content sent to ${relay}, which does not offer 8BITMIME; reported once for ${destination}`)
  }
}
