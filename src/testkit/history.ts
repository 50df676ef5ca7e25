/** Everything that happened in a world, in order: only ever added to. Its hash is the identity of a run. */
import { createHash } from 'node:crypto'
import type { Duration } from '../mail/clock.ts'
import type { QueueEvent } from '../telemetry/events.ts'
import type { FarEvent } from './far-side/events.ts'

export type HistoryEvent =
  | { readonly at: Duration; readonly where: 'queue'; readonly event: QueueEvent }
  | { readonly at: Duration; readonly where: 'far side'; readonly event: FarEvent }
  /** What the test did to the world, or wants to be remembered. */
  | { readonly at: Duration; readonly where: 'test'; readonly event: Deed }

/** In words, and with whatever else belongs to it. */
export interface Deed {
  readonly did: string
  readonly [detail: string]: unknown
}

export class History {
  readonly #events: HistoryEvent[] = []

  /** `at`: milliseconds since the world began. */
  get events(): readonly HistoryEvent[] {
    return this.#events
  }

  add(event: HistoryEvent): void {
    this.#events.push(event)
  }

  /** SHA-256 over all events, Message-IDs aside. The same seed and the same test give the same hash, on every machine. */
  hash(): string {
    const hash = createHash('sha256')
    for (const event of this.#events) hash.update(`${JSON.stringify(event, inOrder)}\n`)
    return hash.digest('hex')
  }
}

/** The app's own: mailers make Message-IDs of true chance, and a world cannot seed them. */
const OF_THE_APP: ReadonlySet<string> = new Set(['messageId', 'message_id'])

function inOrder(key: string, value: unknown): unknown {
  if (OF_THE_APP.has(key)) return undefined
  // In JSON all maps would look the same.
  return value instanceof Map ? [...value] : value
}
