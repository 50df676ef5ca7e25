/**
 * Encodes a message that has left the queue as one JSON text for the history. A busy relay keeps a million such records and
 * writes one per delivery, so the encoding is compact: lists instead of named members, times relative to the message's creation,
 * and no repeated values. The result has a third of the bytes of plain JSON.
 */
import type { Duration } from '../system/clock.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import { sameTls, type TlsFacts } from '../mail/tls-facts.ts'
import { recipientId, type Message, type MessageId, type Recipient } from '../mail/message.ts'
import type { AttemptRecord } from './recorded-outcomes.ts'

export interface HistoryRecord {
  readonly message: Message
  readonly forcedExpire: boolean
  readonly warnings: number
  /** All recipients, ordered by position. */
  readonly recipients: readonly Recipient[]
  readonly history: readonly AttemptRecord[]
}

type MessageRest = Omit<Message, 'id' | 'createdAt' | 'arrivedAt' | 'sender' | 'size' | 'contentId' | 'smtputf8'>
type Wishes = Pick<Recipient, 'notify' | 'orcpt' | 'resentAs'>
/** `reply` is 0 when the reply equals the reason, and null or absent when there was no reply. */
type StatusEntry = readonly [
  status: string,
  stage: string,
  reason: string,
  reply?: string | 0 | null,
  remoteMta?: string | null,
  tls?: TlsEntry | null,
  limit?: string,
]
type TlsEntry = readonly [
  level: string,
  policy: TlsFacts['policy'],
  state: TlsFacts['state'],
  protocol?: string | null,
  cipher?: string | null,
  reason?: string | null,
]
/** Last status of a recipient; 0 when it equals the status of the recipient's last attempt, null when there is none. */
type LastEntry = StatusEntry | 0 | null
type RecipientEntry = readonly [
  address: string,
  destination: string,
  state: Recipient['state'],
  settledAt: Duration,
  expiresAt: Duration,
  steps: number,
  attempts: number,
  last: LastEntry,
  wishes?: Wishes,
]
type AttemptEntry = readonly [
  position: number,
  at: Duration,
  relay: string | null,
  outcome: AttemptRecord['outcome'],
  status: StatusEntry,
  ...delays: AttemptRecord['delays'],
  session?: string,
]
type Entry = readonly [
  createdAt: number,
  arrivedAt: Duration,
  sender: string,
  size: number,
  contentId: number,
  smtputf8: 0 | 1,
  forcedExpire: 0 | 1,
  warnings: number,
  rest: MessageRest,
  recipients: readonly RecipientEntry[],
  history: readonly AttemptEntry[],
]

export function encodeHistory({ message, forcedExpire, warnings, recipients, history }: HistoryRecord): string {
  const { id, createdAt, arrivedAt, sender, size, contentId, smtputf8, ...rest } = message
  const attempted = new Map(history.map((attempt) => [attempt.recipient, attempt.status]))
  const entry: Entry = [
    createdAt,
    arrivedAt - createdAt,
    sender,
    size,
    contentId,
    smtputf8 ? 1 : 0,
    forcedExpire ? 1 : 0,
    warnings,
    rest,
    recipients.map((one) => fromRecipient(one, createdAt, attempted.get(one.id))),
    history.map(({ recipient, at, relay, outcome, status, delays, session }) => [
      recipient - recipientId(id, 0),
      at - createdAt,
      relay,
      outcome,
      fromStatus(status),
      ...delays,
      ...named(session),
    ]),
  ]
  return JSON.stringify(entry)
}

export function decodeHistory(id: MessageId, json: string): HistoryRecord {
  const [createdAt, arrivedAt, sender, size, contentId, smtputf8, forcedExpire, warnings, rest, recipients, history] = JSON.parse(
    json,
  ) as Entry
  const attempts = history.map(([position, at, relay, outcome, status, before, queued, connecting, sending, session]): AttemptRecord => ({
    recipient: recipientId(id, position),
    at: createdAt + at,
    relay,
    outcome,
    status: toStatus(status),
    delays: [before, queued, connecting, sending],
    ...(session === undefined ? {} : { session }),
  }))
  const attempted = new Map(attempts.map((attempt) => [attempt.recipient, attempt.status]))
  return {
    message: { id, createdAt, arrivedAt: createdAt + arrivedAt, sender, size, contentId, smtputf8: smtputf8 === 1, ...rest },
    forcedExpire: forcedExpire === 1,
    warnings,
    recipients: recipients.map((one, position) => toRecipient(recipientId(id, position), one, createdAt, attempted)),
    history: attempts,
  }
}

const named = (session: string | undefined): [string?] => (session === undefined ? [] : [session])

function fromRecipient(one: Recipient, createdAt: number, attempted: DeliveryStatus | undefined): RecipientEntry {
  const { address, destination, state, settledAt = createdAt, expiresAt, steps, attempts, last, notify, orcpt, resentAs } = one
  const said = last === null ? null : attempted !== undefined && isSame(last, attempted) ? 0 : fromStatus(last)
  const wishes: [Wishes?] = notify === undefined && orcpt === undefined && resentAs === undefined ? [] : [{ notify, orcpt, resentAs }]
  return [address, destination, state, settledAt - createdAt, expiresAt - createdAt, steps, attempts, said, ...wishes]
}

function toRecipient(
  id: number,
  [address, destination, state, settledAt, expiresAt, steps, attempts, last, wishes]: RecipientEntry,
  createdAt: number,
  attempted: ReadonlyMap<number, DeliveryStatus>,
): Recipient {
  const end = createdAt + settledAt
  const said = last === 0 ? (attempted.get(id) ?? null) : last === null ? null : toStatus(last)
  const progress = { dueAt: end, expiresAt: createdAt + expiresAt, steps, attempts, deliveryStarts: 0 }
  return { id, address, destination, state, ...progress, last: said, settledAt: end, ...wishes }
}

const fromStatus = ({ status, stage, reason, reply, remoteMta, tls, limit }: DeliveryStatus): StatusEntry => {
  const said = reply === undefined ? null : reply === reason ? 0 : reply
  if (limit !== undefined) return [status, stage, reason, said, remoteMta ?? null, tls === undefined ? null : fromTls(tls), limit]
  if (tls !== undefined) return [status, stage, reason, said, remoteMta ?? null, fromTls(tls)]
  if (remoteMta !== undefined) return [status, stage, reason, said, remoteMta]
  return reply === undefined ? [status, stage, reason] : [status, stage, reason, said]
}

const toStatus = ([status, stage, reason, reply, remoteMta, tls, limit]: StatusEntry): DeliveryStatus => ({
  status,
  reason,
  stage: stage as DeliveryStatus['stage'],
  ...(reply === undefined || reply === null ? {} : { reply: reply === 0 ? reason : reply }),
  ...(remoteMta === undefined || remoteMta === null ? {} : { remoteMta }),
  ...(tls === undefined || tls === null ? {} : { tls: toTls(tls) }),
  ...(limit === undefined ? {} : { limit }),
})

function fromTls({ level, policy, state, protocol, cipher, reason }: TlsFacts): TlsEntry {
  if (reason !== undefined) return [level, policy, state, protocol ?? null, cipher ?? null, reason]
  return protocol === undefined && cipher === undefined ? [level, policy, state] : [level, policy, state, protocol ?? null, cipher ?? null]
}

const toTls = ([level, policy, state, protocol, cipher, reason]: TlsEntry): TlsFacts => ({
  level,
  policy,
  state,
  ...(protocol === undefined || protocol === null ? {} : { protocol }),
  ...(cipher === undefined || cipher === null ? {} : { cipher }),
  ...(reason === undefined || reason === null ? {} : { reason }),
})

const PARTS = ['status', 'reason', 'reply', 'remoteMta', 'stage', 'limit'] as const
const isSame = (a: DeliveryStatus, b: DeliveryStatus): boolean => PARTS.every((part) => a[part] === b[part]) && sameTls(a.tls, b.tls)
