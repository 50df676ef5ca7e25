/**
 * Queues a backlog as after an outage: messages that were attempted and deferred, spread over destinations. They enter the store
 * as from the daemon, in large group commits.
 */
import type { Duration, QueueTime } from '../../src/system/clock.ts'
import { recipientId } from '../../src/mail/message.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'

export interface Backlog {
  readonly messages: number
  /** Destination of the n-th message. */
  readonly destinationOf: (n: number) => string
  readonly now: QueueTime
  /** Recipient of the n-th message; an address at its destination when absent. */
  readonly recipientOf?: (n: number) => string
  /** Due time of the n-th message, after `now`. */
  readonly dueIn: (n: number) => Duration
  readonly bytes?: number
  /** Sender of the n-th message. */
  readonly senderOf?: (n: number) => string
  /** Content of the n-th message; `bytes` of filling when absent. */
  readonly contentOf?: (n: number) => Uint8Array
  /** Class of the messages, with its number in the store; none when absent. */
  readonly ofClass?: { readonly name: string; readonly band: number }
  /** Share of the n-th message; none when absent. */
  readonly shareOf?: (n: number) => string
  /** Outcome of the attempt that was made; a connection that timed out when absent. */
  readonly last?: DeliveryStatus
}

const LIFETIME: Duration = 2 * 24 * 3_600_000
const GROUP = 1_280
const BUSY = {
  status: '4.4.1',
  reason: 'connect to mx.far.example[192.0.2.1]:25: Connection timed out',
  stage: 'connect',
} as const

/** Returns the ids in order. */
export async function fillBacklog(store: QueueStore, backlog: Backlog): Promise<number[]> {
  const ids: number[] = []
  const filling = Buffer.alloc(backlog.bytes ?? 1_000, 'x')
  for (let from = 0; from < backlog.messages; from += GROUP) {
    const group = Array.from({ length: Math.min(GROUP, backlog.messages - from) }, (_, k) => from + k)
    const entered = group.map((n) => enter(store, backlog, n, [backlog.contentOf?.(n) ?? filling]))
    // Behind all entries, so that no commit of the store waits for a settlement of the message before.
    await Promise.all([...entered.map(({ done }) => done), ...entered.map(({ id }, k) => defer(store, backlog, from + k, id))])
    ids.push(...entered.map(({ id }) => id))
  }
  return ids
}

interface Entered {
  readonly id: number
  readonly done: Promise<void>
}

function enter(
  store: QueueStore,
  {
    destinationOf,
    recipientOf = (one) => `user${one}@${destinationOf(one)}`,
    now,
    senderOf = (one) => `app${one % 100}@us.example`,
    shareOf,
    ofClass,
  }: Backlog,
  n: number,
  content: readonly Uint8Array[],
): Entered {
  const id = store.nextId()
  const destination = destinationOf(n)
  const size = content.reduce((sum, part) => sum + part.byteLength, 0)
  const order = { class: ofClass?.name, share: shareOf?.(n) }
  const message = { id, createdAt: now, arrivedAt: now, sender: senderOf(n), size, contentId: id, smtputf8: false, ...order }
  const recipient = { address: recipientOf(n), destination, dueAt: now, expiresAt: now + LIFETIME, leased: true }
  return { id, done: store.enqueue({ message, band: ofClass?.band, recipients: [recipient], content }) }
}

const defer = (store: QueueStore, { now, dueIn, last = BUSY }: Backlog, n: number, id: number): Promise<unknown> =>
  store.settle({
    owner: store.leaseTerms().owner,
    message: id,
    recipients: [{ recipient: recipientId(id, 0), state: 'waiting', dueAt: Math.round(now + dueIn(n)), steps: 1, attempts: 1, last }],
    attempts: [{ recipient: recipientId(id, 0), at: now, relay: null, outcome: 'deferred', status: last, delays: [1, 2, 30_000, 0] }],
  })
