/** Append-only record of all events of a world. Its hash identifies a run. */
import { createHash } from 'node:crypto'
import type { Duration } from '../system/clock.ts'
import type { QueueEvent } from '../telemetry/events.ts'
import type { RemoteEvent } from './remote/remote-events.ts'

/** One event; `at` is in milliseconds since the start of the world. */
export type HistoryEvent =
  | { readonly at: Duration; readonly where: 'queue'; readonly event: QueueEvent }
  | { readonly at: Duration; readonly where: 'remote'; readonly event: RemoteEvent }
  /** An action of the test on the world. */
  | { readonly at: Duration; readonly where: 'test'; readonly event: HistoryEntry }

/** An action of the test, as a text with details. */
export interface HistoryEntry {
  readonly did: string
  readonly [detail: string]: unknown
}

/** Record of a world. */
export class History {
  readonly #events: HistoryEvent[] = []

  /** All events so far, oldest first. */
  get events(): readonly HistoryEvent[] {
    return this.#events
  }

  /** Appends an event, such as an action of the test. */
  add(event: HistoryEvent): void {
    this.#events.push(event)
  }

  /** SHA-256 in hex of all events, with Message-IDs and signatures left out. Equal seeds and equal tests give equal hashes on every machine. */
  hash(): string {
    const hash = createHash('sha256')
    for (const event of this.#events) hash.update(`${JSON.stringify(event, inOrder)}\n`)
    return hash.digest('hex')
  }
}

/**
 * Members excluded from the hash. Clients create Message-IDs from random numbers that a world cannot seed, and signatures cover
 * them.
 */
const NOT_SEEDED: ReadonlySet<string> = new Set(['messageId', 'message_id', 'prependedHeaders'])

function inOrder(key: string, value: unknown): unknown {
  if (NOT_SEEDED.has(key)) return undefined
  // JSON.stringify would write any Map as {}.
  return value instanceof Map ? [...value] : value
}
