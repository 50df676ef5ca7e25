/**
 * Recipients of destinations within an hour, and how many of them their hosts do not know. Where they are too many, the failure is that of the
 * destination, such as a directory that is down, and lists no address. Counts are those of the node that delivers to the destination.
 */
import type { DestinationName } from '../mail/message.ts'
import { HOUR, MINUTE, type Duration, type QueueTime } from '../system/clock.ts'

const WINDOW: Duration = HOUR
const SLICE: Duration = 5 * MINUTE
const LEAST_RECIPIENTS = 20
const LARGEST_PART = 0.2

interface Counts {
  /** Recipients by begin of the slice. */
  readonly slices: Map<QueueTime, { recipients: number; failed: number }>
  isBraked: boolean
}

export class Brakes {
  readonly #destinations = new Map<DestinationName, Counts>()
  #prunedAt: QueueTime = 0

  /** Counts recipients that were delivered or refused. Returns true when the destination has now too many failures, and had not before. */
  count(
    destination: DestinationName,
    { recipients, failed, at }: { readonly recipients: number; readonly failed: number; readonly at: QueueTime },
  ): boolean {
    const counts = this.#destinations.get(destination) ?? { slices: new Map(), isBraked: false }
    this.#destinations.set(destination, counts)
    const begin = Math.floor(at / SLICE) * SLICE
    const slice = counts.slices.get(begin) ?? { recipients: 0, failed: 0 }
    counts.slices.set(begin, { recipients: slice.recipients + recipients, failed: slice.failed + failed })
    const was = counts.isBraked
    counts.isBraked = isTooMany(counts, at)
    this.#prune(at)
    return counts.isBraked && !was
  }

  isBraked(destination: DestinationName, now: QueueTime): boolean {
    const counts = this.#destinations.get(destination)
    return counts !== undefined && isTooMany(counts, now)
  }

  /** The destinations with too many failures. */
  braked(now: QueueTime): readonly DestinationName[] {
    return [...this.#destinations].filter(([, counts]) => isTooMany(counts, now)).map(([destination]) => destination)
  }

  #prune(now: QueueTime): void {
    if (now - this.#prunedAt < SLICE) return
    this.#prunedAt = now
    for (const [destination, { slices }] of this.#destinations) {
      for (const begin of slices.keys()) if (begin <= now - WINDOW - SLICE) slices.delete(begin)
      if (slices.size === 0) this.#destinations.delete(destination)
    }
  }
}

function isTooMany({ slices }: Pick<Counts, 'slices'>, now: QueueTime): boolean {
  let [recipients, failed] = [0, 0]
  for (const [begin, slice] of slices) {
    if (begin <= now - WINDOW) continue
    recipients += slice.recipients
    failed += slice.failed
  }
  return recipients >= LEAST_RECIPIENTS && failed > LARGEST_PART * recipients
}
