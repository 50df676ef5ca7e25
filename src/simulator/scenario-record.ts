/**
 * What happened in a scenario, by destination: listens to the queue and keeps the times of everything, so that totals,
 * waits and curves can be had afterwards. Times are milliseconds since the scenario began.
 */
import type { Duration, Instant } from '../mail/clock.ts'
import { messageOf, type Debt, type DestinationName, type MessageId } from '../queue/message.ts'
import type { QueueEvent } from '../telemetry/events.ts'

/** Of a destination; everything but `messages` is about recipients. */
export interface DestinationRecord {
  readonly destination: DestinationName
  messages: number
  readonly accepted: Duration[]
  readonly delivered: Duration[]
  /** From acceptance to delivery, in the order of `delivered`. */
  readonly waits: Duration[]
  /** Refused for good. */
  readonly bounced: Duration[]
  readonly expired: Duration[]
  /** Attempts that ended without delivery, the last ones included. */
  readonly failed: Duration[]
  /** Whenever it changed; 0 while nobody is asked because the destination is dead. */
  readonly windows: { readonly at: Duration; readonly window: number }[]
  /** How often it was given up for dead. */
  deaths: number
}

export interface ScenarioResult {
  /** In the order in which the scenario names them. */
  readonly destinations: readonly DestinationRecord[]
  /** How many notices the senders got. */
  readonly notices: Readonly<Record<Debt, number>>
  /** How long was watched. */
  readonly ended: Duration
}

type Of<K extends QueueEvent['kind']> = Extract<QueueEvent, { kind: K }>

export class ScenarioRecord {
  readonly notices: Record<Debt, number> = { failure: 0, delay: 0, success: 0 }
  readonly #startedAt: Instant
  readonly #windowOf: (destination: DestinationName) => number
  readonly #destinations = new Map<DestinationName, DestinationRecord>()
  /** Where each message of the scenario goes; notices are not in it. */
  readonly #messages = new Map<MessageId, { readonly record: DestinationRecord; readonly at: Duration }>()
  #open = 0

  constructor(startedAt: Instant, windowOf: (destination: DestinationName) => number) {
    this.#startedAt = startedAt
    this.#windowOf = windowOf
  }

  get destinations(): readonly DestinationRecord[] {
    return [...this.#destinations.values()]
  }

  /** Recipients whose fate is not sealed. */
  get open(): number {
    return this.#open
  }

  /** A message of the scenario is about to be handed in. */
  expect(message: MessageId, destination: DestinationName, recipients: number, at: Instant): void {
    const record = this.#destination(destination)
    const since = at - this.#startedAt
    this.#messages.set(message, { record, at: since })
    record.messages++
    for (let i = 0; i < recipients; i++) record.accepted.push(since)
    this.#open += recipients
  }

  hear(event: QueueEvent, when: Instant): void {
    const at = when - this.#startedAt
    switch (event.kind) {
      case 'attempted':
        return this.#attempted(event, at)
      case 'expired':
        return this.#expired(event, at)
      case 'noticed':
        if (event.to === 'sender') this.notices[event.notice]++
        return undefined
      case 'window':
        return this.#windowIs(event.destination, at, event.window)
      case 'died':
        return this.#died(event.destination, at)
      case 'revived':
        return this.#windowIs(event.destination, at, this.#windowOf(event.destination))
      default:
        return undefined
    }
  }

  #attempted({ attempts }: Of<'attempted'>, at: Duration): void {
    for (const { recipient, outcome } of attempts) {
      const message = this.#messages.get(messageOf(recipient))
      if (message === undefined) continue
      const { record } = message
      if (outcome === 'delivered') {
        record.delivered.push(at)
        record.waits.push(at - message.at)
        this.#open--
        continue
      }
      record.failed.push(at)
      if (outcome !== 'bounced') continue
      record.bounced.push(at)
      this.#open--
    }
  }

  #expired({ message, recipients }: Of<'expired'>, at: Duration): void {
    const record = this.#messages.get(message.id)?.record
    if (record === undefined) return
    for (const _ of recipients) record.expired.push(at)
    this.#open -= recipients.length
  }

  #died(destination: DestinationName, at: Duration): void {
    const record = this.#destinations.get(destination)
    if (record === undefined) return
    // A probe that failed prolongs a death; it is no other one.
    if (record.windows.at(-1)?.window !== 0) record.deaths++
    this.#windowIs(destination, at, 0)
  }

  #windowIs(destination: DestinationName, at: Duration, window: number): void {
    this.#destinations.get(destination)?.windows.push({ at, window })
  }

  #destination(name: DestinationName): DestinationRecord {
    const known = this.#destinations.get(name)
    if (known !== undefined) return known
    const record: DestinationRecord = {
      destination: name,
      messages: 0,
      accepted: [],
      delivered: [],
      waits: [],
      bounced: [],
      expired: [],
      failed: [],
      windows: [{ at: 0, window: this.#windowOf(name) }],
      deaths: 0,
    }
    this.#destinations.set(name, record)
    return record
  }
}
