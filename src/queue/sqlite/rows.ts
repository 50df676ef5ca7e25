/**
 * Rows as SQLite keeps them, and the values they stand for. What cannot be decoded throws Undecodable: such mail is
 * set aside as corrupt, it never stops the queue.
 */
import type { Instant } from '../../mail/clock.ts'
import type { Notify, Ret } from '../../mail/envelope.ts'
import type { DeliveryStatus, Stage } from '../../mail/reply.ts'
import type { Debt, LeasedRecipient, Message, MessageSummary, Placement, Recipient, RecipientState } from '../message.ts'
import type { ListedRecipient } from '../reader.ts'
import type { AttemptRecord, DestinationRecord } from '../store.ts'

export interface MessageRow {
  readonly id: number
  readonly created_at: number
  readonly arrived_at: number
  readonly sender: string
  readonly size: number
  readonly body: number
  readonly shares_body: number
  readonly ret: Ret | null
  readonly envid: string | null
  readonly smtputf8: number
  readonly body_type: '7bit' | '8bitmime' | null
  readonly message_id: string | null
  readonly placement: Placement
  readonly deleted_at: number | null
  readonly why: string | null
  readonly forced_expire: number
  readonly warnings: number
  readonly warn_at: number | null
}

/** What listings read of it. */
export type ListedRow = Pick<
  MessageRow,
  'id' | 'created_at' | 'arrived_at' | 'sender' | 'size' | 'body' | 'message_id' | 'placement' | 'forced_expire'
>

export interface RecipientRow {
  readonly id: number
  readonly state: RecipientState
  readonly destination: string
  readonly address: string
  readonly notify: string | null
  readonly orcpt: string | null
  readonly due_at: number
  readonly kept_due_at: number | null
  readonly expires_at: number
  readonly steps: number
  readonly attempts: number
  readonly starts: number
  readonly settled_at: number | null
  readonly debt: Debt | null
  readonly last: string | null
}

/** What listings read of it. */
export type ListedRecipientRow = Omit<RecipientRow, 'notify' | 'kept_due_at' | 'starts' | 'settled_at' | 'debt'>

export interface AttemptRow {
  readonly recipient: number
  readonly at: number
  readonly relay: string | null
  readonly outcome: AttemptRecord['outcome']
  readonly status: string
  readonly delays: string
}

export interface DestinationRow {
  readonly name: string
  readonly dead_until: number | null
  readonly probe_interval: number | null
  readonly suspended_by: string | null
  readonly reason: string | null
}

/** The row does not say anything that we could have written. */
export class Undecodable extends Error {
  override readonly name = 'Undecodable'
}

/** What is shown where a stored outcome cannot be read any more. */
const UNREADABLE: DeliveryStatus = { status: '4.3.0', reason: 'the stored outcome cannot be read', stage: 'queue' }

const instant = (value: unknown, column: string): Instant => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw new Undecodable(`${column} is not a whole number`)
}

const text = (value: unknown, column: string): string => {
  if (typeof value === 'string') return value
  throw new Undecodable(`${column} is not text`)
}

/** The message, after a look at everything that a delivery depends on. */
export function toMessage(row: MessageRow): Message {
  for (const column of ['created_at', 'arrived_at', 'size', 'body'] as const) instant(row[column], column)
  text(row.sender, 'sender')
  for (const column of ['envid', 'message_id'] as const) if (row[column] !== null) text(row[column], column)
  return asMessage(row)
}

/** The message as it stands in the row, for history. */
export const asMessage = (row: MessageRow): Message => ({
  id: row.id,
  createdAt: row.created_at,
  arrivedAt: row.arrived_at,
  sender: row.sender,
  size: row.size,
  body: row.body,
  smtputf8: row.smtputf8 === 1,
  ...(row.ret === null ? {} : { ret: row.ret }),
  ...(row.envid === null ? {} : { envid: row.envid }),
  ...(row.body_type === null ? {} : { bodyType: row.body_type }),
  ...(row.message_id === null ? {} : { messageId: row.message_id }),
})

export function toLeased(row: RecipientRow, warnings: number): LeasedRecipient {
  return {
    id: row.id,
    address: text(row.address, 'address'),
    ...(row.notify === null ? {} : { notify: toNotify(row.notify) }),
    ...(row.orcpt === null ? {} : { orcpt: text(row.orcpt, 'orcpt') }),
    dueAt: instant(row.kept_due_at ?? row.due_at, 'due_at'),
    expiresAt: instant(row.expires_at, 'expires_at'),
    steps: instant(row.steps, 'steps'),
    attempts: instant(row.attempts, 'attempts'),
    last: toStatus(row.last),
    warnings,
    flushed: row.kept_due_at !== null,
  }
}

/** For history and notices: nothing that can still be read is withheld because something else cannot. */
export function toRecipient(row: RecipientRow): Recipient {
  return {
    id: row.id,
    address: row.address,
    destination: row.destination,
    state: row.state,
    ...(row.notify === null ? {} : { notify: lenient(() => toNotify(row.notify ?? ''), 'never') }),
    ...(row.orcpt === null ? {} : { orcpt: row.orcpt }),
    dueAt: row.due_at,
    expiresAt: row.expires_at,
    steps: row.steps,
    attempts: row.attempts,
    starts: row.starts,
    last: readableStatus(row.last),
    ...(row.settled_at === null ? {} : { settledAt: row.settled_at }),
    ...(row.debt === null ? {} : { debt: row.debt }),
  }
}

/** For listings, which read millions: every object has all members, so that one shape fits them all. */
export const toListedMessage = (row: ListedRow): MessageSummary => ({
  id: row.id,
  createdAt: row.created_at,
  arrivedAt: row.arrived_at,
  sender: row.sender,
  size: row.size,
  body: row.body,
  messageId: row.message_id ?? undefined,
})

/** The same for recipients. */
export const toListedRecipient = (row: ListedRecipientRow): ListedRecipient => ({
  id: row.id,
  address: row.address,
  destination: row.destination,
  state: row.state,
  orcpt: row.orcpt ?? undefined,
  dueAt: row.due_at,
  expiresAt: row.expires_at,
  steps: row.steps,
  attempts: row.attempts,
  last: readableStatus(row.last),
})

export const toAttempt = (row: AttemptRow): AttemptRecord => ({
  recipient: row.recipient,
  at: row.at,
  relay: row.relay,
  outcome: row.outcome,
  status: lenient(() => toStatus(row.status), null) ?? UNREADABLE,
  delays: lenient(() => toDelays(row.delays), [0, 0, 0, 0] as const),
})

export const toDestination = (row: DestinationRow): DestinationRecord => ({
  name: row.name,
  deadUntil: row.dead_until,
  probeInterval: row.probe_interval,
  suspendedBy: row.suspended_by,
  reason: lenient(() => toStatus(row.reason), UNREADABLE),
})

/** `never` or the list, as one text. */
export const fromNotify = (notify: Notify | undefined): string | null =>
  notify === undefined ? null : notify === 'never' ? notify : notify.join(',')

export const fromStatus = (status: DeliveryStatus | null): string | null => (status === null ? null : JSON.stringify(status))

const WISHES: readonly string[] = ['success', 'failure', 'delay']

function toNotify(value: string): Notify {
  if (value === 'never') return value
  const wishes = text(value, 'notify').split(',')
  if (!wishes.every((wish): wish is 'success' | 'failure' | 'delay' => WISHES.includes(wish))) throw new Undecodable('notify is unknown')
  return wishes
}

/** Outcomes that were decoded lately: a backlog waits for few reasons, and says each of them thousands of times. */
const decoded = new Map<string, DeliveryStatus>()
const DECODED_AT_MOST = 100
/** The last of them: what waits side by side mostly waits for the same. */
let latest: { readonly json: string; readonly status: DeliveryStatus } | undefined

function toStatus(json: string | null): DeliveryStatus | null {
  if (json === null) return null
  if (json === latest?.json) return latest.status
  let status = decoded.get(json)
  if (status === undefined) {
    status = decodedStatus(json)
    if (decoded.size >= DECODED_AT_MOST) decoded.clear()
    decoded.set(json, status)
  }
  latest = { json, status }
  return status
}

const readableStatus = (json: string | null): DeliveryStatus | null => lenient(() => toStatus(json), UNREADABLE)

function decodedStatus(json: string): DeliveryStatus {
  const value = parsed(json)
  if (typeof value === 'object' && value !== null && 'status' in value && 'reason' in value && 'stage' in value) {
    const { status, reason, stage } = value
    if (typeof status === 'string' && typeof reason === 'string' && typeof stage === 'string') {
      return { ...value, status, reason, stage: stage as Stage }
    }
  }
  throw new Undecodable('an outcome lacks its parts')
}

function toDelays(json: string): AttemptRecord['delays'] {
  const value = parsed(json)
  if (!Array.isArray(value)) throw new Undecodable('delays are no list')
  const [a, b, c, d] = value.map(Number)
  return [a ?? 0, b ?? 0, c ?? 0, d ?? 0]
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new Undecodable('the row holds broken JSON', { cause })
  }
}

function lenient<T, F>(read: () => T, fallback: F): T | F {
  try {
    return read()
  } catch (error) {
    if (error instanceof Undecodable) return fallback
    throw error
  }
}
