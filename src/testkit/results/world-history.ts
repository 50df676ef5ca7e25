/** Append-only record of all events of a world. Its hash identifies a run. */
import type { WallView } from '../../system/wall-view.ts'
import { createHash } from 'node:crypto'
import type { TypedEvent } from '../../events/event-types.ts'
import { typedEvents } from '../../outbox/event-data.ts'
import { inSeconds } from '../options/time.ts'
import type { Duration } from '../../system/clock.ts'
import type { QueueEvent } from '../../telemetry/events.ts'
import type { RemoteEvent } from '../remote/remote-events.ts'

/** One event; `at` is in seconds since the start of the world. */
export type HistoryEvent =
  /** An event of the relay, as programs get it (docs/events.md). */
  { readonly at: number; readonly where: 'queue'; readonly event: TypedEvent } | AddedEvent

/** An event that is not one of the relay; `at` is in seconds since the start of the world. */
export type AddedEvent =
  | { readonly at: number; readonly where: 'remote'; readonly event: RemoteEvent }
  /** An action of the test on the world. */
  | { readonly at: number; readonly where: 'test'; readonly event: HistoryEntry }

/** An action of the test, as a text with details. */
export interface HistoryEntry {
  readonly did: string
  readonly [detail: string]: unknown
}

/** An event inside the relay. */
interface Happened {
  readonly at: Duration
  readonly where: 'queue'
  readonly event: QueueEvent
  readonly wall: WallView
}

/** An event of the trace of a world, for tests of the relay itself; its `at` is in milliseconds. @internal */
export type TracedEvent = Happened | AddedEvent

/** Record of a world. */
export class History {
  readonly #events: TracedEvent[] = []
  readonly #listeners: ((event: HistoryEvent) => void)[] = []

  /** All events so far, oldest first. */
  get events(): readonly HistoryEvent[] {
    return this.#events.flatMap(published)
  }

  /** Adds a listener, called with each event from now on. @internal */
  onEvent(listener: (event: HistoryEvent) => void): void {
    this.#listeners.push(listener)
  }

  /** Appends an event. @internal */
  record(event: TracedEvent): void {
    this.#events.push(event)
    if (this.#listeners.length === 0) return
    for (const one of published(event)) for (const listener of this.#listeners) listener(one)
  }

  /** All that happened inside the relay, for tests of the relay itself. @internal */
  get trace(): readonly TracedEvent[] {
    return this.#events
  }

  /**
   * SHA-256 in hex of all that happened, in more detail than `events`, with Message-IDs and signatures left out. Equal seeds and equal tests
   * give equal hashes on every machine.
   */
  hash(): string {
    const hash = createHash('sha256')
    for (const event of this.#events) hash.update(`${JSON.stringify(event, inOrder)}\n`)
    return hash.digest('hex')
  }
}

const published = (one: TracedEvent): readonly HistoryEvent[] =>
  one.where === 'queue'
    ? typedEvents(one.event, one.wall).map((event) => ({ at: inSeconds(one.at), where: 'queue', event }))
    : [{ ...one, at: inSeconds(one.at) }]

/**
 * Members excluded from the hash. Clients create Message-IDs from random numbers that a world cannot seed, and signatures cover them. Dialogues
 * tell of the same session as the rest.
 */
const NOT_SEEDED: ReadonlySet<string> = new Set(['messageId', 'message_id', 'prependedHeaders', 'session'])

function inOrder(key: string, value: unknown): unknown {
  if (NOT_SEEDED.has(key)) return undefined
  // JSON.stringify would write any Map as {}.
  return value instanceof Map ? [...value] : value
}
