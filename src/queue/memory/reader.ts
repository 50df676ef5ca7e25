/**
 * QueueReader over the queue of plain maps.
 */
import type { Duration, Instant } from '../../mail/clock.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import { inOrder, isLive, queueOf, snapshot, type HeldMessage, type MemoryQueue } from './held.ts'
import { messageOf, type DestinationName, type Message, type MessageId, type Recipient } from '../message.ts'
import type { DestinationLoad, ListedMessage, ListPage, MessageStory, QueueFilter, QueueName, QueueReader } from '../reader.ts'

export class MemoryReader implements QueueReader {
  readonly #queue: MemoryQueue

  constructor(queue: MemoryQueue) {
    this.#queue = queue
  }

  list(filter: QueueFilter, { after, through = Infinity, limit, now }: ListPage): ListedMessage[] {
    return inOrder(this.#queue)
      .filter((held) => held.message.id > after && held.message.id <= through && matches(filter, held, queueOf(held, this.#queue, now)))
      .slice(0, limit)
      .map((held) => ({
        message: held.message,
        queue: queueOf(held, this.#queue, now),
        forcedExpire: held.forcedExpire,
        recipients: held.recipients.filter(isLive).map(snapshot),
      }))
  }

  sliceEnd(after: MessageId, size: number): MessageId | null {
    const next = inOrder(this.#queue).filter(({ message }) => message.id > after)
    return next.slice(0, size).at(-1)?.message.id ?? null
  }

  story(queueId: string, now: Instant): MessageStory | undefined {
    const parsed = parseQueueId(queueId)
    if (parsed === undefined) return undefined
    const held = this.#queue.messages.get(parsed.row)
    const story = held === undefined ? this.#queue.departed.get(parsed.row) : present(held, this.#queue, now)
    return story?.message.createdAt === parsed.createdAt ? story : undefined
  }

  readBody(message: Pick<Message, 'body'>, index: number): Uint8Array | undefined {
    return this.#queue.bodies.get(message.body)?.[index]
  }

  destinationLoads({ after, limit }: { after: DestinationName; limit: number }): DestinationLoad[] {
    const active = this.#recipients().filter(({ state }) => state === 'waiting' || state === 'leased')
    return [...Map.groupBy(active, (one) => one.destination)]
      .filter(([destination]) => compare(destination, after) > 0)
      .toSorted(([a], [b]) => compare(a, b))
      .slice(0, limit)
      .map(([destination, there]) => {
        const due = there.filter((one) => one.state === 'waiting').map((one) => one.dueAt)
        return {
          destination,
          waiting: due.length,
          leased: there.length - due.length,
          nextDueAt: due.length === 0 ? null : Math.min(...due),
        }
      })
  }

  destinationRecords() {
    return [...this.#queue.destinations.values()]
  }

  audit({ after, limit }: { after: number; limit: number }) {
    return this.#queue.audit.map((record, index) => ({ ...record, id: index + 1 })).slice(after, after + limit)
  }

  ages({ after, limit, queues, now }: { after: number; limit: number; queues: readonly QueueName[]; now: Instant }) {
    const wanted: readonly string[] = queues
    return inOrder(this.#queue)
      .filter((held) => wanted.includes(queueOf(held, this.#queue, now)))
      .flatMap(({ message, recipients }) =>
        recipients
          .filter((one) => isLive(one) && one.id > after)
          .map(({ id, address }) => ({
            cursor: id,
            sender: message.sender,
            address,
            arrivedAt: message.arrivedAt,
            message: messageOf(id),
          })),
      )
      .slice(0, limit)
  }

  counts(now: Instant): { queue: QueueName; messages: number; recipients: number; oldest: Duration }[] {
    const counted = [...this.#queue.messages.values()].filter(({ recipients }) => recipients.some(isLive))
    return [...Map.groupBy(counted, (held) => queueOf(held, this.#queue, now))].flatMap(([queue, messages]) => {
      if (queue === 'trash') return []
      const recipients = messages.flatMap((held) => held.recipients.filter(isLive)).length
      const oldest = Math.max(0, ...messages.map(({ message }) => now - message.arrivedAt))
      return [{ queue, messages: messages.length, recipients, oldest }]
    })
  }

  close(): void {
    // Nothing is held.
  }

  #recipients(): Recipient[] {
    return [...this.#queue.messages.values()].flatMap(({ recipients }) => recipients)
  }
}

function present(held: HeldMessage, queue: MemoryQueue, now: Instant): MessageStory {
  const { message, forcedExpire, warnings, recipients, history } = held
  return { message, queue: queueOf(held, queue, now), forcedExpire, warnings, recipients: recipients.map(snapshot), history: [...history] }
}

function matches(filter: QueueFilter, { message, recipients }: HeldMessage, queue: QueueName | 'trash'): boolean {
  if (queue !== (filter.queue ?? (queue === 'trash' ? undefined : queue))) return false
  if (filter.queueId !== undefined && parseQueueId(filter.queueId)?.row !== message.id) return false
  if (filter.arrivedBefore !== undefined && message.arrivedAt >= filter.arrivedBefore) return false
  return like(filter.sender, message.sender) && recipients.some((one) => isLive(one) && recipientMatches(filter, one))
}

/** Recipient parts of a filter must hold of one live recipient together. */
function recipientMatches({ recipient, destination, attemptsOver, reply }: QueueFilter, one: Recipient): boolean {
  if (attemptsOver !== undefined && one.attempts <= attemptsOver) return false
  const said = `${one.last?.reply ?? ''}\n${one.last?.reason ?? ''}`.toLowerCase()
  if (reply !== undefined && (one.last === null || !said.includes(reply.toLowerCase()))) return false
  return like(recipient, one.address) && like(destination, one.destination)
}

/** `*` is the only wildcard; everything else means itself, in any case. */
function like(pattern: string | undefined, text: string): boolean {
  if (pattern === undefined) return true
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 'is').test(text)
}

/** By UTF-8 bytes, as the SQLite store does. */
const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))
