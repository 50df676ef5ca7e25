/**
 * Record of a scenario by destination and by share. It collects the times of the queue's events; totals, waits and curves are computed from
 * them. Times are in milliseconds since the start of the scenario.
 */
import type { Duration, WallTime } from '../../system/clock.ts'
import { messageOf, type NoticeDue, type DestinationName, type MessageId } from '../../mail/message.ts'
import { onEvents, type EventOf } from '../../telemetry/events.ts'
import type { Outage } from './outages.ts'

/**
 * Record of some mail. The times of `accepted`, `delivered`, `bounced` and `expired` have one entry per recipient, those of
 * `failed` one per recipient and attempt.
 */
export interface MailRecord {
  messages: number
  readonly accepted: Duration[]
  readonly delivered: Duration[]
  /** Times from acceptance to delivery, in the order of `delivered`. */
  readonly waits: Duration[]
  /** Times of permanent failures. */
  readonly bounced: Duration[]
  readonly expired: Duration[]
  /** Times of attempts without delivery, including final ones. */
  readonly failed: Duration[]
}

export interface DestinationRecord extends MailRecord {
  readonly destination: DestinationName
  /** Changes of the window; 0 while the destination is dead. */
  readonly windows: { readonly at: Duration; readonly window: number }[]
  /** Number of times that the destination became dead. */
  deaths: number
}

/** The share and the class of mail. */
export interface RecordedShare {
  /** Null without classes. */
  readonly class: string | null
  /** Empty without fair shares, and for mail without a share. */
  readonly key: string
  readonly weight: number
}

export interface ShareRecord extends MailRecord, RecordedShare {}

export interface ScenarioResult {
  /** Records in the order of the first message of each destination. */
  readonly destinations: readonly DestinationRecord[]
  /** Records in the order of the first message of each share and class; none without fair shares and classes. */
  readonly shares: readonly ShareRecord[]
  /** Number of notices to the senders, by kind. */
  readonly notices: Readonly<Record<NoticeDue, number>>
  readonly outages: readonly Outage[]
  /** Duration of the run. */
  readonly ended: Duration
}

/** Times of a message. Its waits are counted from `released`. */
interface Arrival {
  readonly arrived: WallTime
  readonly released: WallTime
}

/** A message before its submission. */
interface Expected {
  readonly destination: DestinationName
  /** Null without fair shares and classes. */
  readonly share: RecordedShare | null
  readonly recipients: number
}

const emptyRecord = (): MailRecord => ({ messages: 0, accepted: [], delivered: [], waits: [], bounced: [], expired: [], failed: [] })

export class ScenarioRecord {
  readonly notices: Record<NoticeDue, number> = { failure: 0, delay: 0, success: 0 }
  readonly #startedAt: WallTime
  readonly #windowOf: (destination: DestinationName) => number
  readonly #destinations = new Map<DestinationName, DestinationRecord>()
  readonly #shares = new Map<string, ShareRecord>()
  /** Messages of the scenario, without notices, each with the records to which it counts. */
  readonly #messages = new Map<MessageId, { readonly records: readonly MailRecord[]; readonly at: Duration }>()
  #open = 0

  constructor(startedAt: WallTime, windowOf: (destination: DestinationName) => number) {
    this.#startedAt = startedAt
    this.#windowOf = windowOf
  }

  get destinations(): readonly DestinationRecord[] {
    return [...this.#destinations.values()]
  }

  get shares(): readonly ShareRecord[] {
    return [...this.#shares.values()]
  }

  /** Number of recipients without a final outcome. */
  get open(): number {
    return this.#open
  }

  /** Registers a message before its submission, so that its events can be recorded. */
  expect(message: MessageId, { destination, share, recipients }: Expected, { arrived, released }: Arrival): void {
    const records = [this.#destination(destination), ...(share === null ? [] : [this.#share(share)])]
    const since = arrived - this.#startedAt
    this.#messages.set(message, { records, at: released - this.#startedAt })
    for (const record of records) {
      record.messages++
      for (let i = 0; i < recipients; i++) record.accepted.push(since)
    }
    this.#open += recipients
  }

  /** Listener for the events of the queue. */
  readonly onEvent = onEvents({
    attempted: (event, when) => this.#attempted(event, when - this.#startedAt),
    expired: (event, when) => this.#expired(event, when - this.#startedAt),
    'notice-sent': ({ to, notice }) => {
      if (to === 'sender') this.notices[notice]++
    },
    window: ({ destination, window }, when) => this.#windowIs(destination, when - this.#startedAt, window),
    died: ({ destination }, when) => this.#died(destination, when - this.#startedAt),
    revived: ({ destination }, when) => this.#windowIs(destination, when - this.#startedAt, this.#windowOf(destination)),
  })

  #attempted({ attempts }: EventOf<'attempted'>, at: Duration): void {
    for (const { recipient, outcome } of attempts) {
      const message = this.#messages.get(messageOf(recipient))
      if (message === undefined) continue
      if (outcome !== 'deferred') this.#open--
      for (const record of message.records) {
        if (outcome === 'delivered') {
          record.delivered.push(at)
          record.waits.push(at - message.at)
          continue
        }
        record.failed.push(at)
        if (outcome === 'bounced') record.bounced.push(at)
      }
    }
  }

  #expired({ message, recipients }: EventOf<'expired'>, at: Duration): void {
    const known = this.#messages.get(message.id)
    if (known === undefined) return
    for (const record of known.records) for (const _ of recipients) record.expired.push(at)
    this.#open -= recipients.length
  }

  #died(destination: DestinationName, at: Duration): void {
    const record = this.#destinations.get(destination)
    if (record === undefined) return
    // A failed probe does not count as another death.
    if (record.windows.at(-1)?.window !== 0) record.deaths++
    this.#windowIs(destination, at, 0)
  }

  #windowIs(destination: DestinationName, at: Duration, window: number): void {
    this.#destinations.get(destination)?.windows.push({ at, window })
  }

  #destination(name: DestinationName): DestinationRecord {
    const known = this.#destinations.get(name)
    if (known !== undefined) return known
    const record = { destination: name, ...emptyRecord(), windows: [{ at: 0, window: this.#windowOf(name) }], deaths: 0 }
    this.#destinations.set(name, record)
    return record
  }

  #share(share: RecordedShare): ShareRecord {
    const key = `${share.class ?? ''} ${share.key}`
    const record = this.#shares.get(key) ?? { ...share, ...emptyRecord() }
    this.#shares.set(key, record)
    return record
  }
}
