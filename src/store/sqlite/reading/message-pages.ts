/**
 * Pages of messages with their live recipients, in two statements or three of one transaction. A listing reads millions of rows: arrays take
 * less time than objects, null less than a text, and V8 is fastest with objects of one shape, which have all members.
 */
import {
  messageOf,
  type DestinationName,
  type MessageId,
  type MessageSummary,
  type Placement,
  type RecipientState,
} from '../../../mail/message.ts'
import { recipientRange } from '../../sql/id-ranges.ts'
import type { QueueFilter } from '../../message-conditions.ts'
import type { ListedMessage, ListedRecipient, RecipientGroup } from '../../queue-reader.ts'
import { queueNameOf } from '../../decisions/queue-name.ts'
import { queueOf, type MessagePage } from '../../sql/engine.ts'
import {
  CLOSED_DESTINATION,
  closedDestinations,
  IS_DEFERRED,
  listedBy,
  type ListedForm,
  type Selection,
} from '../../sql/message-selection.ts'
import { rowsOf, statement, type Query, type Read } from '../../sql/read.ts'
import { readableStatus } from '../../stored-values.ts'
import { SQLITE } from './spelling.ts'

/** The placement is null for `queued`. */
const OF_MESSAGE = `id, created_at, arrived_at, sender, size, content_id, message_id, nullif(placement, 'queued'), forced_expire,
  not_before, scheduled, expires, class, share, hold_request`

type MessageRow = readonly [
  id: number,
  created_at: number,
  arrived_at: number,
  sender: string,
  size: number,
  content_id: number,
  message_id: string | null,
  placement: Placement | null,
  forced_expire: number,
  not_before: number | null,
  scheduled: number | null,
  expires: number | null,
  class_name: string | null,
  share: string | null,
  hold_request: string | null,
]

/** The state is null for `waiting`. */
const OF_RECIPIENT = `r.id, nullif(state, 'waiting'), destination, address, orcpt, due_at, expires_at, steps, attempts, last`

type RecipientRow = readonly [
  id: number,
  state: RecipientState | null,
  destination: string,
  address: string,
  orcpt: string | null,
  due_at: number,
  expires_at: number,
  steps: number,
  attempts: number,
  last: string | null,
]

const arrays = (query: Query): Query => ({ ...query, asArrays: true })

/** One range of ids for a page of neighbouring messages. */
export const liveBetween = (first: MessageId, last: MessageId): Query =>
  statement(
    (add) =>
      `select ${OF_RECIPIENT} from recipient r where r.id ${recipientRange(add(first), add(last))} and settled_at is null order by r.id`,
  )

/** One range per message, for a filter that skips many messages. Live recipients come in the order in which the messages are given. */
export const liveOf = (messages: readonly MessageId[]): Query =>
  statement(
    (add) => `
      select ${OF_RECIPIENT} from json_each(${add(JSON.stringify(messages))}) cross join recipient r on r.id ${recipientRange('value')}
      where settled_at is null`,
  )

/** Live recipients of a message, at most `most`. */
export const firstLiveOf = (message: MessageId, most: number): Query =>
  statement(
    (add) => `
      select ${OF_RECIPIENT} from recipient r where r.id ${recipientRange(add(message))} and settled_at is null
      order by r.id limit ${add(most)}`,
  )

/** Live recipients of messages, by state and closed destination. */
export const liveGroupsOf = (messages: readonly MessageId[]): Query =>
  statement(
    (add) => `
      select value as id, state, min(destination) as destination, min(due_at) as dueAt, max(attempts) as attempts,
        max(expires_at) as expiresAt, count(*) as recipients, max(${IS_DEFERRED}) as isDeferred
      from json_each(${add(JSON.stringify(messages))}) cross join recipient r on r.id ${recipientRange('value')}
      where settled_at is null group by value, state, ${CLOSED_DESTINATION}`,
  )

interface LiveGroup extends RecipientGroup {
  readonly id: MessageId
  readonly recipients: number
  readonly isDeferred: 0 | 1
}

export function* messagePage(filter: QueueFilter, ids: Selection, form: ListedForm): Read<MessagePage> {
  const rows = yield* rowsOf<MessageRow>(arrays(listedBy({ filter, ids, columns: OF_MESSAGE }, form, SQLITE)))
  const { newestFirst, recipients: most } = form
  const listed =
    most !== undefined ? yield* shortened(rows, most) : newestFirst ? (yield* whole(rows.toReversed())).toReversed() : yield* whole(rows)
  return { matched: rows.length, last: rows.at(-1)?.[0], listed }
}

/** The messages among the rows that have live recipients. The rows are in the order of ids. */
function* whole(rows: readonly MessageRow[]): Read<ListedMessage[]> {
  const [first, last] = [rows[0]?.[0] ?? 0, rows.at(-1)?.[0] ?? 0]
  const isDense = last - first < 4 * rows.length
  const live = yield* rowsOf<RecipientRow>(arrays(isDense ? liveBetween(first, last) : liveOf(rows.map(([id]) => id))))
  const names = yield* rowsOf<{ name: DestinationName }>(statement(() => closedDestinations))
  return assembled(rows, live, new Set(names.map(({ name }) => name)))
}

function assembled(rows: readonly MessageRow[], live: readonly RecipientRow[], closed: ReadonlySet<DestinationName>): ListedMessage[] {
  const listed: ListedMessage[] = []
  let next = 0
  for (const row of rows) {
    const id = row[0]
    const recipients: ListedRecipient[] = []
    for (let one = live[next]; one !== undefined && messageOf(one[0]) <= id; one = live[++next]) {
      if (messageOf(one[0]) === id) recipients.push(toListedRecipient(one))
    }
    if (recipients.length === 0) continue
    listed.push({
      message: toListedMessage(row),
      queue: queueOf({ placement: placementOf(row), scheduled: row[10] === 1 }, recipients, closed),
      forcedExpire: row[8] === 1,
      recipients,
      recipientCount: recipients.length,
    })
  }
  return listed
}

/** The messages among the rows that have live recipients, each with at most `most` of them. */
function* shortened(rows: readonly MessageRow[], most: number): Read<ListedMessage[]> {
  const groupsOf = Map.groupBy(yield* rowsOf<LiveGroup>(liveGroupsOf(rows.map(([id]) => id))), ({ id }) => id)
  const listed: ListedMessage[] = []
  for (const row of rows) {
    const groups = groupsOf.get(row[0])
    if (groups === undefined) continue
    const [isActive, isDeferred] = [groups.some(({ state }) => state === 'leased'), groups.some((one) => one.isDeferred === 1)]
    listed.push({
      message: toListedMessage(row),
      queue: queueNameOf({ placement: placementOf(row), scheduled: row[10] === 1, isActive, isDeferred }),
      forcedExpire: row[8] === 1,
      recipients: (yield* rowsOf<RecipientRow>(arrays(firstLiveOf(row[0], most)))).map(toListedRecipient),
      recipientCount: groups.reduce((sum, { recipients }) => sum + recipients, 0),
      groups,
    })
  }
  return listed
}

const placementOf = (row: MessageRow): Placement => row[7] ?? 'queued'

const toListedMessage = (row: MessageRow): MessageSummary => ({
  id: row[0],
  createdAt: row[1],
  arrivedAt: row[2],
  sender: row[3],
  size: row[4],
  contentId: row[5],
  messageId: row[6] ?? undefined,
  notBefore: row[9] ?? undefined,
  scheduled: row[10] === 1,
  expires: row[11] ?? undefined,
  class: row[12] ?? undefined,
  share: row[13] ?? undefined,
  holdRequest: row[14] ?? undefined,
})

const toListedRecipient = (row: RecipientRow): ListedRecipient => ({
  id: row[0],
  address: row[3],
  destination: row[2],
  state: row[1] ?? 'waiting',
  orcpt: row[4] ?? undefined,
  dueAt: row[5],
  expiresAt: row[6],
  steps: row[7],
  attempts: row[8],
  last: readableStatus(row[9]),
})
