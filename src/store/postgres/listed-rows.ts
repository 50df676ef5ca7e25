/**
 * Rows of listings and their conversion. Every object has all members, because V8 is
 * fastest with objects of one shape and a listing reads millions of rows.
 */
import type { MessageId, MessageSummary, Recipient } from '../../mail/message.ts'
import type { ListedRecipient } from '../queue-reader.ts'
import { readableStatus } from '../stored-values.ts'

interface ListedMessageColumns {
  readonly created_at: number
  readonly arrived_at: number
  readonly sender: string
  readonly size: number
  readonly content_id: number
  readonly message_id: string | null
  readonly not_before: number | null
  readonly scheduled: boolean | null
  readonly expires: number | null
  readonly class: string | null
  readonly share: string | null
  readonly hold_request: string | null
}

interface ListedRecipientColumns {
  readonly id: number
  readonly state: Recipient['state']
  readonly destination: string
  readonly address: string
  readonly orcpt: string | null
  readonly due_at: number
  readonly expires_at: number
  readonly steps: number
  readonly attempts: number
  readonly last: string | null
}

export const toListedMessage = (id: MessageId, row: ListedMessageColumns): MessageSummary => ({
  id,
  createdAt: row.created_at,
  arrivedAt: row.arrived_at,
  sender: row.sender,
  size: row.size,
  contentId: row.content_id,
  messageId: row.message_id ?? undefined,
  notBefore: row.not_before ?? undefined,
  scheduled: row.scheduled === true,
  expires: row.expires ?? undefined,
  class: row.class ?? undefined,
  share: row.share ?? undefined,
  holdRequest: row.hold_request ?? undefined,
})

export const toListedRecipient = (row: ListedRecipientColumns): ListedRecipient => ({
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
