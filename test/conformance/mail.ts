/**
 * Mail for the conformance suite: builders of the store's arguments, and short forms of its results.
 */
import { recipientId, type DeliveryRequest, type Message, type MessageId, type OwnerId, type RecipientId } from '../../src/mail/message.ts'
import { inChunks } from '../../src/store/chunks.ts'
import type { NodeTable } from '../../src/store/membership/node-table.ts'
import type { MoveStore } from '../../src/store/move-store.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import type { NewMessage, NewRecipient } from '../../src/store/new-message.ts'
import type { BandClaim, Claim, QueueStore } from '../../src/store/queue-store.ts'
import type { AttemptRecord, Settled } from '../../src/store/recorded-outcomes.ts'
import type { DeliveryStatus } from '../../src/mail/smtp-reply.ts'

/** Start of the suite's clock: 2026-01-01T00:00:00Z. */
export const T0 = 1_767_225_600_000
export const MIN = 60_000
export const LIFETIME = 2 * 24 * 60 * MIN

/** A store under test, as the suite gets it. */
export interface Subject {
  readonly store: QueueStore
  /** The same store, as the port of moves; absent where the engine cannot move mail. */
  readonly moves?: MoveStore
  readonly reader: QueueReader
  readonly quarantined: readonly { readonly queueId: string; readonly why: string }[]
  readonly swept: number
  /** Closes the store and what belongs to it. */
  done(): Promise<void>
  /** The owner dies without a word and another one takes the queue up; undefined for a store that dies with its owner. */
  readonly crash: (() => Promise<Subject>) | undefined
  /** Present for a store that several nodes share. This node owns all shards. */
  readonly shared?: { readonly nodes: NodeTable; join(): Promise<SharedNode> } | undefined
}

/** One of several nodes. */
export interface SharedNode extends Pick<Subject, 'store' | 'reader' | 'done'> {
  readonly nodes: NodeTable
}

export type Open = () => Promise<Subject>

export const OK: DeliveryStatus = {
  status: '2.0.0',
  reason: '250 2.0.0 Ok: queued as ABC',
  reply: '250 2.0.0 Ok: queued as ABC',
  remoteMta: 'mx.example',
  stage: 'end-of-data',
  tls: { level: 'secure', policy: 'config', state: 'verified', protocol: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384' },
}
export const BUSY: DeliveryStatus = {
  status: '4.2.1',
  reason: 'host mx.example said: 450 4.2.1 Busy',
  reply: '450 4.2.1 Busy',
  stage: 'rcpt',
  tls: { level: 'may', policy: 'none', state: 'clear' },
}
export const UNKNOWN: DeliveryStatus = { status: '5.1.1', reason: 'host mx.example said: 550 5.1.1 No such user', stage: 'rcpt' }

export interface Mail {
  readonly sender?: string
  readonly to?: readonly (Partial<NewRecipient> & { readonly address: string })[]
  readonly content?: readonly Uint8Array[]
  readonly at?: number
  readonly hold?: boolean
  readonly leased?: boolean
  readonly contentId?: number
  /** Class, with its number in the store. */
  readonly ofClass?: { readonly name: string; readonly band: number }
  readonly share?: string
}

/** A message for ann@far.example, due at once, unless said otherwise. */
export function mail(store: Pick<QueueStore, 'nextId'>, options: Mail = {}): NewMessage {
  const { sender = 'app@us.example', to = [{ address: 'ann@far.example' }], content = [Buffer.from('Subject: hi\r\n\r\nhi\r\n')] } = options
  const { at = T0, hold, leased = false, ofClass, share } = options
  const id = store.nextId()
  const size = content.reduce((sum, part) => sum + part.byteLength, 0)
  const origin = { createdAt: at, arrivedAt: at, sender, size, contentId: options.contentId ?? id, smtputf8: false }
  const message: Message = {
    id,
    ...origin,
    ...(ofClass === undefined ? {} : { class: ofClass.name }),
    ...(share === undefined ? {} : { share }),
  }
  const schedule = { dueAt: at, expiresAt: at + LIFETIME, leased }
  const recipients = to.map((one) => ({ destination: one.address.slice(one.address.indexOf('@') + 1), ...schedule, ...one }))
  return { message, band: ofClass?.band, recipients, content: inChunks(...content), ...(hold === undefined ? {} : { hold }) }
}

/** Queues a message and returns its id. */
export async function queue(store: QueueStore, options: Mail = {}): Promise<MessageId> {
  const entry = mail(store, options)
  await store.enqueue(entry)
  return entry.message.id
}

export const first = (message: MessageId): RecipientId => recipientId(message, 0)

interface ClaimOptions extends Partial<Pick<Claim, 'destination' | 'recipientLimit'>>, Partial<BandClaim> {}

/** A claim of one band, and the due time that the answer has for the band. */
export async function claim(store: QueueStore, now: number, { band = 0, limit = 100, from, recipients, ...options }: ClaimOptions = {}) {
  const claimed = await store.claimDue({
    destination: 'far.example',
    now,
    bands: [{ band, limit, from, recipients }],
    recipientLimit: 50,
    ...options,
  })
  return { requests: claimed.requests, nextDueAt: claimed.next[0]?.dueAt ?? null }
}

/** The ids of the messages in requests. */
export const messagesIn = (requests: readonly DeliveryRequest[]): MessageId[] => requests.map((request) => request.message.id)

export const attempt = (
  recipient: RecipientId,
  at: number,
  outcome: AttemptRecord['outcome'] = 'deferred',
  status = BUSY,
): AttemptRecord => ({
  recipient,
  at,
  relay: 'mx.example[192.0.2.1]:25',
  outcome,
  status,
  delays: [1, 2, 3, 4],
})

/** A failed attempt that is repeated later. */
export const deferred = (recipient: RecipientId, dueAt: number, more: Partial<Settled & { state: 'waiting' }> = {}): Settled => ({
  recipient,
  state: 'waiting',
  dueAt,
  steps: 1,
  attempts: 1,
  last: BUSY,
  ...more,
})

export const delivered = (recipient: RecipientId, at: number): Settled => ({ recipient, state: 'delivered', at, attempts: 1, last: OK })

export const bounced = (recipient: RecipientId, at: number): Settled => ({
  recipient,
  state: 'bounced',
  at,
  attempts: 1,
  last: UNKNOWN,
  noticeDue: 'failure',
})

/** The owner of the leases that a store hands out. */
export const ownerOf = (store: QueueStore): OwnerId => store.leaseTerms().owner

/** Settles one recipient of a message, with the attempt. */
export function settleOne(store: QueueStore, message: MessageId, settled: Settled, at = T0) {
  const outcome = settled.state === 'waiting' ? 'deferred' : settled.state === 'removed' ? 'bounced' : settled.state
  const attempts = [attempt(settled.recipient, at, outcome, settled.last ?? BUSY)]
  return store.settle({ owner: ownerOf(store), message, recipients: [settled], attempts })
}

/** Reads a whole content. */
export async function contentOf(store: QueueStore, body: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for (let part = await store.readChunk(body, 0); part !== undefined; part = await store.readChunk(body, parts.length)) parts.push(part)
  return Buffer.concat(parts)
}
