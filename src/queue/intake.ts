/**
 * The way into the queue, for the SMTP server, for local submissions and for MAILER-DAEMON: gives a message its id,
 * routes its recipients, makes their schedule, commits everything at once and hands to the scheduler what may run.
 */
import type { Settings } from '../config/destination-settings.ts'
import { SECOND, type Clock, type Duration, type Instant } from '../mail/clock.ts'
import type { EnvelopeRecipient } from '../mail/envelope.ts'
import type { SmtpReply } from '../mail/reply.ts'
import type { ClientName, Events } from '../telemetry/events.ts'
import {
  packRequests,
  queueIdOf,
  recipientId,
  type BodyId,
  type DeliveryRequest,
  type DestinationName,
  type Lease,
  type Message,
  type MessageId,
} from './message.ts'
import type { Scheduler } from './scheduler.ts'
import type { NewMessage, NewRecipient, QueueStore } from './store.ts'
import type { WarmBodies } from './warm-bodies.ts'

export interface Beginning {
  readonly id: MessageId
  readonly queueId: string
  readonly arrivedAt: Instant
}

/** What comes in: a message whose content is given whole or was staged before. */
export interface Entry {
  readonly message: Message
  readonly recipients: readonly EnvelopeRecipient[]
  /** The content, or the rest of it after what was staged. */
  readonly content: readonly Uint8Array[]
}

/** An entry that somebody handed in, with who it was. */
export interface Submitted extends Entry {
  /** Null for local submissions. */
  readonly client: ClientName | null
  readonly uid?: number | undefined
  readonly saslUsername?: string | undefined
  readonly saslMethod?: string | undefined
}

export interface IntakeParts {
  readonly store: QueueStore
  readonly scheduler: Scheduler
  readonly clock: Clock
  readonly events: Events
  readonly warmBodies: WarmBodies
  /** New mail waits from the start: no outcome will say when its sender is to be warned. */
  readonly waits: (message: Message) => void
  readonly destinationOf: (address: string) => DestinationName
  readonly settingsOf: (destination: DestinationName) => Settings
  /** Bytes that must be free on the disk for mail to be taken: `queue_minfree` or 1.5 × `message_size_limit`. */
  readonly needed: () => number
}

/** How long mail is tried: `maximal_queue_lifetime`, for mail from <> `bounce_queue_lifetime`; in ms. */
export const lifetimeOf = (sender: string, settings: Settings): Duration =>
  sender === '' ? settings.bounce_queue_lifetime : settings.maximal_queue_lifetime

const NO_SPACE: SmtpReply = { code: 452, status: '4.3.1', text: 'Insufficient system storage' }
const STORE_ILL: SmtpReply = { code: 451, status: '4.3.0', text: 'Error: queue file write error' }

export class Intake {
  readonly #parts: IntakeParts
  #space: { readonly at: Duration; readonly free: number } = { at: -Infinity, free: 0 }

  constructor(parts: IntakeParts) {
    this.#parts = parts
  }

  /** A new message id and its queue id. */
  begin(): Beginning {
    const arrivedAt = this.#parts.clock.now()
    const id = this.#parts.store.nextId()
    return { id, arrivedAt, queueId: queueIdOf({ id, createdAt: arrivedAt }) }
  }

  /** Keeps a part of a long content early. Rejects with StoreUnavailable. */
  stage(body: BodyId, from: number, chunks: readonly Uint8Array[]): Promise<void> {
    return this.#parts.store.stage(body, from, chunks)
  }

  unstage(body: BodyId): Promise<void> {
    return this.#parts.store.unstage(body)
  }

  /** Undefined when mail of this size can be taken now; else the reply to MAIL. */
  async refusal(size: number): Promise<SmtpReply | undefined> {
    const { scheduler, needed } = this.#parts
    if (scheduler.storeIsIll) return STORE_ILL
    return (await this.#freeSpace()) <= Math.max(needed(), size) ? NO_SPACE : undefined
  }

  /** Asked of the disk at most once a second: a disk fills up more slowly than mail comes in. */
  async #freeSpace(): Promise<number> {
    const now = this.#parts.clock.monotonic()
    if (now - this.#space.at >= SECOND) this.#space = { at: now, free: await this.#parts.store.freeSpace() }
    return this.#space.free
  }

  /** Durable when it resolves: message, recipients, schedule and content in one commit. Rejects with StoreUnavailable. */
  async take(entry: Submitted): Promise<void> {
    const { store, events } = this.#parts
    const prepared = this.prepare(entry)
    try {
      await store.enqueue(prepared)
    } catch (error) {
      this.withdrawn(prepared)
      throw error
    }
    const { message, client, uid, saslUsername, saslMethod } = entry
    events.emit({
      kind: 'accepted',
      message,
      recipients: entry.recipients.map((one) => one.address),
      client,
      uid,
      saslUsername,
      saslMethod,
    })
    this.entered(prepared)
  }

  /** Routes and schedules an entry; whoever prepares it commits it and then says `entered`. */
  prepare({ message, recipients, content }: Entry): NewMessage {
    const { destinationOf } = this.#parts
    const byDestination = new Map<DestinationName, number>()
    const routed = recipients.map((recipient) => {
      const destination = destinationOf(recipient.address)
      byDestination.set(destination, (byDestination.get(destination) ?? 0) + 1)
      return { recipient, destination }
    })
    const admitted = new Map<DestinationName, { readonly leased: boolean; readonly expiresAt: Instant }>()
    for (const [destination, count] of byDestination) admitted.set(destination, this.#schedule(message, destination, count))
    return {
      message,
      content,
      recipients: routed.map(({ recipient: { address, notify, orcpt }, destination }): NewRecipient => {
        const { leased, expiresAt } = admitted.get(destination) ?? { leased: false, expiresAt: message.createdAt }
        return { address, notify, orcpt, destination, dueAt: message.createdAt, expiresAt, leased }
      }),
    }
  }

  /** A prepared entry is on disk: what was admitted starts, what was not waits. */
  entered(entry: NewMessage): void {
    const { scheduler, warmBodies, settingsOf } = this.#parts
    const leases = leasesOf(entry)
    if (leases.length > 0) warmBodies.keep(entry.message, entry.content)
    const byDestination = Map.groupBy(leases, (lease) => lease.destination)
    const requests: DeliveryRequest[] = []
    for (const [destination, there] of byDestination) {
      const packed = packRequests(there, settingsOf(destination).destination_recipient_limit)
      // The destination was counted in as one request; each further one counts for itself.
      for (const _ of packed.slice(1)) scheduler.admitFurther(entry.message.id)
      requests.push(...packed)
    }
    scheduler.offer(requests)
    const waiting = entry.recipients.filter((one) => !one.leased)
    if (waiting.length === 0) return
    this.#parts.waits(entry.message)
    const due = new Map(waiting.map((one) => [one.destination, { destination: one.destination, dueAt: one.dueAt }]))
    scheduler.woken([...due.values()], { expiresAt: waiting.reduce((earliest, one) => Math.min(earliest, one.expiresAt), Infinity) })
  }

  /** A prepared entry could not be committed: what was admitted for it is free again. */
  withdrawn(entry: NewMessage): void {
    const counted = Map.groupBy(leasesOf(entry), (lease) => lease.destination)
    for (const leases of counted.values()) this.#parts.scheduler.unadmit(entry.message.id, leases.length)
  }

  #schedule(message: Message, destination: DestinationName, count: number): { readonly leased: boolean; readonly expiresAt: Instant } {
    const { scheduler, settingsOf } = this.#parts
    const expiresAt = message.createdAt + lifetimeOf(message.sender, settingsOf(destination))
    return { leased: scheduler.admit(message.id, destination, count), expiresAt }
  }
}

/** The recipients of a new message that were born with a lease. */
function leasesOf({ message, recipients }: NewMessage): Lease[] {
  const leases: Lease[] = []
  recipients.forEach(({ address, notify, orcpt, destination, dueAt, expiresAt, leased }, position) => {
    if (!leased) return
    const progress = { dueAt, expiresAt, steps: 0, attempts: 0 }
    const recipient = {
      id: recipientId(message.id, position),
      address,
      notify,
      orcpt,
      ...progress,
      last: null,
      warnings: 0,
      flushed: false,
    }
    leases.push({ message, destination, recipient, fresh: true, forcedExpire: false })
  })
  return leases
}
