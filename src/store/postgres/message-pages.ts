/** Pages of messages with their live recipients. One statement reads both, two those of all mail (whole-listing.ts). */
import type { DestinationName, RecipientId, RecipientState } from '../../mail/message.ts'
import { conditionsIn, type QueueFilter } from '../message-conditions.ts'
import type { ListedMessage, ListedRecipient } from '../queue-reader.ts'
import { queueOf, type MessagePage } from '../sql/engine.ts'
import {
  CLOSED_DESTINATION,
  closedDestinations,
  listedBy,
  QUEUE_NAME,
  THEIRS,
  type ListedForm,
  type Selection,
} from '../sql/message-selection.ts'
import { each, none, rowsOf, statement, type Add, type Read } from '../sql/read.ts'
import { toListedMessage, toListedRecipient } from './listed-rows.ts'
import { POSTGRES } from './spelling.ts'
import { wholePage } from './whole-listing.ts'
import type { ListedRow } from './writing/rows.ts'

/** A live recipient as JSON. */
type LiveEntry = readonly [
  id: RecipientId,
  state: RecipientState,
  destination: DestinationName,
  address: string,
  orcpt: string | null,
  dueAt: number,
  expiresAt: number,
  steps: number,
  attempts: number,
  last: string | null,
]

/** A group of live recipients as JSON, with their number. */
type GroupEntry = readonly [
  state: RecipientState,
  destination: DestinationName,
  dueAt: number,
  attempts: number,
  expiresAt: number,
  recipients: number,
]

const LIVE_ENTRIES = `json_agg(
  json_build_array(r.id, r.state, r.destination, r.address, r.orcpt, r.due_at, r.expires_at, r.steps, r.attempts, r.last) order by r.id)`
const LIVE = `from recipient r where ${THEIRS} and r.settled_at is null`
const GROUPS = `(select json_agg(json_build_array(state, destination, due_at, attempts, expires_at, recipients)) from (
    select r.state, min(r.destination) as destination, min(r.due_at) as due_at, max(r.attempts) as attempts, max(r.expires_at) as expires_at,
      count(*) as recipients
    ${LIVE} group by r.state, ${CLOSED_DESTINATION}) g)`
const OF_MESSAGE =
  'message.id as message, created_at, arrived_at, sender, size, content_id, message_id, placement, forced_expire, not_before, scheduled, expires, class, share, hold_request'

/** Columns that a listing reads of a message, and its live recipients. With `most`, so many of them, the groups of all, and the queue. */
export const listedColumns =
  (most: number | undefined) =>
  (add: Add): string =>
    most === undefined
      ? `${OF_MESSAGE}, (select ${LIVE_ENTRIES} ${LIVE}) as live`
      : `${OF_MESSAGE}, (select ${LIVE_ENTRIES} from (select * ${LIVE} order by r.id limit ${add(most)}) r) as live,
          ${GROUPS} as live_groups, ${QUEUE_NAME} as queue`

type Row = ListedRow & {
  /** Live recipients; null when there are none. */
  readonly live: readonly ListedRecipient[] | null
  /** Absent in a page without a limit of recipients. */
  readonly live_groups?: readonly GroupEntry[]
  readonly queue?: ListedMessage['queue']
}

type AggregatedRow = Omit<Row, 'live'> & { readonly live: readonly LiveEntry[] | null }

function* matching(filter: QueueFilter, ids: Selection, form: ListedForm): Read<readonly Row[]> {
  const isWhole = 'after' in ids && form.recipients === undefined && conditionsIn(filter).length === 0
  const columns = listedColumns(form.recipients)
  const rows = isWhole ? yield* wholePage(ids, form) : null
  return rows ?? (yield* rowsOf<AggregatedRow>(listedBy({ filter, ids, columns }, form, POSTGRES))).map(withLive)
}

export function* messagePage(filter: QueueFilter, ids: Selection, form: ListedForm): Read<MessagePage> {
  const [rows, names] = yield* each<[readonly Row[], readonly { readonly name: DestinationName }[]]>([
    matching(filter, ids, form),
    form.recipients === undefined ? rowsOf(statement(() => closedDestinations)) : none(),
  ])
  const closed = new Set(names.map(({ name }) => name))
  const listed: ListedMessage[] = []
  for (const row of rows) {
    if (row.live === null) continue
    const queue = row.queue ?? queueOf({ placement: row.placement, scheduled: row.scheduled === true }, row.live, closed)
    const [message, recipients] = [toListedMessage(row.message, row), row.live]
    const one = { message, queue, forcedExpire: row.forced_expire, recipients }
    listed.push({ ...one, ...(row.live_groups === undefined ? { recipientCount: recipients.length } : summed(row.live_groups)) })
  }
  return { matched: rows.length, last: rows.at(-1)?.message, listed }
}

const withLive = ({ live, ...row }: AggregatedRow): Row => ({ ...row, live: live === null ? null : live.map(toLive) })

const summed = (entries: readonly GroupEntry[]): Pick<ListedMessage, 'recipientCount' | 'groups'> => ({
  recipientCount: entries.reduce((sum, [, , , , , recipients]) => sum + recipients, 0),
  groups: entries.map(([state, destination, dueAt, attempts, expiresAt]) => ({ state, destination, dueAt, attempts, expiresAt })),
})

const toLive = ([id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last]: LiveEntry): ListedRecipient =>
  toListedRecipient({ id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last })
