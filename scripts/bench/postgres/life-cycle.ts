/**
 * The life of messages in a store, by so many callers, each of which waits for its message: queued and delivered. `born leased` is mail
 * that its own node delivers at once; `claimed` is mail that waits, is claimed by the owner of its destination, read, and delivered.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { DeliveryStatus } from '../../../src/mail/smtp-reply.ts'
import { recipientId, type DeliveryRequest, type DestinationName, type MessageId } from '../../../src/mail/message.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import type { DestinationDue } from '../../../src/store/message-operation.ts'

export const LIVES = ['born leased', 'claimed'] as const
export type Life = (typeof LIVES)[number]

export interface Traffic {
  readonly life: Life
  readonly callers: number
  readonly messages: number
  /** Destinations of the store's own, which take turns. */
  readonly destinations: readonly DestinationName[]
}

const BYTES = 2_048
const HOUR = 3_600_000
const LIFETIME = 48 * HOUR
/** Recipients in one claim. */
const CLAIM = 100
const OK: DeliveryStatus = {
  status: '2.0.0',
  reason: '250 2.0.0 Ok: queued as 4abcDEF',
  reply: '250 2.0.0 Ok: queued as 4abcDEF',
  stage: 'end-of-data',
}

/** Resolves when all messages have left the store. */
export async function liveThrough(store: QueueStore, traffic: Traffic): Promise<void> {
  const { callers, messages, destinations } = traffic
  const deliver = traffic.life === 'claimed' ? claimer(store) : () => undefined
  let left = messages
  let next = 0
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left--
      const destination = destinations[next++ % destinations.length] ?? ''
      const { id, dueAt } = await queue(store, destination, traffic.life)
      await (deliver(id, { destination, dueAt }) ?? settle(store, id))
    }
  }
  await Promise.all(Array.from({ length: Math.min(callers, messages) }, caller))
}

async function queue(store: QueueStore, destination: DestinationName, life: Life, dueIn = 0) {
  const [id, now] = [store.nextId(), Date.now()]
  const message = { id, createdAt: now, arrivedAt: now, sender: 'app@us.example', size: BYTES, contentId: id, smtputf8: false }
  const schedule = { dueAt: now + dueIn, expiresAt: now + LIFETIME, leased: life === 'born leased' }
  const recipient = { address: `user${id}@${destination}`, destination, ...schedule }
  await store.enqueue({ message, recipients: [recipient], content: [contentOf(id)] })
  return { id, dueAt: schedule.dueAt }
}

/** Incompressible bytes, as of encoded attachments: a part of one random text that differs for each message. */
function contentOf(id: MessageId): Buffer {
  const from = id % (RANDOM.length - BYTES)
  return Buffer.from(RANDOM.subarray(from, from + BYTES))
}
const RANDOM = Buffer.from(Array.from({ length: 64_000 }, () => 33 + Math.floor(Math.random() * 90)))

async function settle(store: QueueStore, id: MessageId): Promise<void> {
  const recipient = recipientId(id, 0)
  const at = Date.now()
  await store.settle({
    owner: store.leaseTerms().owner,
    message: id,
    recipients: [{ recipient, state: 'delivered', at, attempts: 1, last: OK }],
    attempts: [{ recipient, at, relay: 'mx.example[192.0.2.1]:25', outcome: 'delivered', status: OK, delays: [1, 2, 3, 4] }],
  })
}

/**
 * Claims the mail of a destination while some is due, one claim at a time, as the scheduler does: a claim covers all mail of the commits
 * before it. The result resolves when a message is delivered.
 */
function claimer(store: QueueStore): (id: MessageId, due: DestinationDue) => Promise<void> {
  const waiting = new Map<MessageId, () => void>()
  /** The earliest due time that each destination is expected to have. */
  const expected = new Map<DestinationName, number>()
  const claiming = new Map<DestinationName, 'planned' | 'sent' | 'sent, with more'>()

  async function deliver({ message }: DeliveryRequest): Promise<void> {
    if ((await store.readChunk(message.contentId, 0)) === undefined) throw new Error(`message ${message.id} has no content`)
    await settle(store, message.id)
    waiting.get(message.id)?.()
    waiting.delete(message.id)
  }

  const expect = ({ destination, dueAt }: DestinationDue): void =>
    void expected.set(destination, Math.min(dueAt, expected.get(destination) ?? Infinity))

  async function claim(destination: DestinationName): Promise<void> {
    const state = claiming.get(destination)
    if (state === 'sent') claiming.set(destination, 'sent, with more')
    if (state !== undefined) return
    claiming.set(destination, 'planned')
    // The other messages of a commit are reported in the same turn of the event loop.
    await nextTurn()
    claiming.set(destination, 'sent')
    const from = expected.get(destination)
    expected.delete(destination)
    const bands = [{ band: 0, limit: CLAIM, from }]
    const { requests, next } = await store.claimDue({ destination, now: Date.now(), bands, recipientLimit: 1 })
    for (const { dueAt } of next) expect({ destination, dueAt })
    const isWanted = claiming.get(destination) === 'sent, with more' || requests.length === CLAIM
    claiming.delete(destination)
    await Promise.all([...requests.map(deliver), ...(isWanted ? [claim(destination)] : [])])
  }

  return (id, due) =>
    new Promise((resolve, reject) => {
      waiting.set(id, resolve)
      expect(due)
      claim(due.destination).catch(reject)
    })
}

/** Queues messages that become due in an hour. */
export async function queueWaiting(store: QueueStore, destination: DestinationName, messages: number): Promise<void> {
  await Promise.all(Array.from({ length: messages }, () => queue(store, destination, 'claimed', HOUR)))
}

export interface Claims {
  readonly destination: DestinationName
  /** Recipients of one claim. */
  readonly limit: number
  readonly claims: number
}

/** Times of claims of `limit` recipients of a destination, in ms. What was claimed is given back. */
export async function claimTimes(store: QueueStore, { destination, limit, claims }: Claims): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < claims; n++) {
    const begun = performance.now()
    const { requests } = await store.claimDue({ destination, now: Date.now() + LIFETIME, bands: [{ band: 0, limit }], recipientLimit: 1 })
    times.push(performance.now() - begun)
    if (requests.length !== limit) throw new Error(`claimed ${requests.length} of ${limit} at ${destination}`)
    await store.giveBack(
      requests.flatMap(({ recipients }) => recipients.map(({ id }) => id)),
      store.leaseTerms().owner,
    )
  }
  return times
}
