/** Queue state other than mail in memory: due times by destination, saved destinations, schedules and deadlines. */
import { STARTS_UNTIL_SUSPECT, type DestinationName } from '../../mail/message.ts'
import type { NewEvent } from '../../events/kept-event.ts'
import type { QueueTime } from '../../system/clock.ts'
import type { DestinationDue } from '../message-operation.ts'
import type { DestinationRecord, ScheduledMail } from '../queue-store.ts'
import { joinProvider } from '../records/provider-state.ts'
import { countsAs } from '../share-counts.ts'
import type { HeldMail } from './held-mail.ts'
import type { QueueOwner } from './queue-owner.ts'
import type { HeldMessage, MemoryQueue } from './queue-state.ts'

export class Housekeeping {
  readonly #queue: MemoryQueue
  readonly #owner: QueueOwner
  readonly #mail: HeldMail

  constructor(queue: MemoryQueue, owner: QueueOwner, mail: HeldMail) {
    this.#queue = queue
    this.#owner = owner
    this.#mail = mail
  }

  async destinationsDue(): Promise<DestinationDue[]> {
    const earliest = new Map<string, DestinationDue>()
    for (const { destination, dueAt } of this.#mail.waiting((one) => one.deliveryStarts < STARTS_UNTIL_SUSPECT)) {
      if (!earliest.has(destination)) earliest.set(destination, { destination, dueAt })
    }
    return [...earliest.values()].toSorted((a, b) => Buffer.compare(Buffer.from(a.destination), Buffer.from(b.destination)))
  }

  async endSchedules(now: QueueTime) {
    const scheduled = [...this.#queue.messages.values()].filter(({ message }) => message.scheduled === true)
    const isOver = ({ message: { notBefore = 0 } }: HeldMessage): boolean => notBefore <= now
    const over = scheduled.filter(isOver)
    for (const held of over) held.message = { ...held.message, scheduled: undefined }
    const left = scheduled.filter((held) => !isOver(held))
    return { ended: over.map(({ message }) => message.id), next: least(left.map(({ message: { notBefore = 0 } }) => notBefore)) }
  }

  async scheduledMail(now: QueueTime) {
    const counts = new Map<string, ScheduledMail>()
    for (const { message, placement } of this.#queue.messages.values()) {
      if (message.scheduled !== true || (message.notBefore ?? 0) <= now || !countsAs(placement)) continue
      const { sender, saslUsername = null, client = null } = message
      const key = JSON.stringify([sender, saslUsername, client])
      counts.set(key, { sender, saslUsername, client, messages: (counts.get(key)?.messages ?? 0) + 1 })
    }
    return [...counts.values()]
  }

  async nextDeadlines() {
    const expiries = this.#mail.waiting(() => true).map((one) => one.expiresAt)
    return { expiresAt: least(expiries), warnAt: least(this.#mail.toBeWarned().map(({ at }) => at)) }
  }

  async destinations() {
    return [...this.#queue.destinations.values()].filter(({ name }) => this.#owner.owns(name))
  }

  async saveDestination(record: DestinationRecord, events?: readonly NewEvent[]): Promise<void> {
    this.#queue.outbox.keep(events)
    const ordinary = record.deadUntil === null && record.probeInterval === null && record.suspension === null
    if (ordinary) this.#queue.destinations.delete(record.name)
    else this.#queue.destinations.set(record.name, record)
    this.#owner.destination(record)
  }

  async joinProvider(destination: DestinationName, provider: string | null): Promise<void> {
    joinProvider.held(this.#queue.records, destination, provider)
    // The mail may be that of another owner now.
    const waiting = [...this.#queue.messages.values()].flatMap(({ recipients }) =>
      recipients.filter((one) => one.destination === destination && one.state === 'waiting').map(({ dueAt }) => dueAt),
    )
    if (waiting.length > 0) this.#owner.due({ destination, dueAt: Math.min(...waiting), revive: false })
    const record = this.#queue.destinations.get(destination)
    if (record !== undefined) this.#owner.destination(record)
    this.#owner.joined()
  }
}

const least = (times: readonly QueueTime[]): QueueTime | null =>
  times.reduce<QueueTime | null>((min, at) => (min === null || at < min ? at : min), null)
