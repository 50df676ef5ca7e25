/**
 * Pages of all mail outside the trash. The server answers with one list per column. A text that has the separator of these lists itself makes
 * them ambiguous.
 */
import { messageOf, type MessageId, type Placement, type RecipientState } from '../../mail/message.ts'
import { toListedRecipient } from './listed-rows.ts'
import type { ListedRecipient } from '../queue-reader.ts'
import { messageIdOf, recipientRange } from '../sql/id-ranges.ts'
import type { ListedForm } from '../sql/message-selection.ts'
import { rowOf, statement, type Query, type Read } from '../sql/read.ts'
import type { IdRange } from '../sql/spelling.ts'
import {
  bigintAt,
  bigintList,
  bigintsIn,
  booleanAt,
  booleanList,
  intAt,
  intList,
  nullableList,
  nullablesIn,
  textList,
  textsIn,
} from './session/lists.ts'
import type { ListedRow } from './writing/rows.ts'

const MESSAGE_LISTS = [
  ...['message', 'created_at', 'arrived_at', 'size', 'content_id', 'not_before', 'expires'].map(bigintList),
  ...['sender', 'placement'].map(textList),
  ...['message_id', 'class', 'share', 'hold_request'].map(nullableList),
  ...['forced_expire', 'scheduled'].map(booleanList),
].join(', ')
const RECIPIENT_LISTS = [
  ...['id', 'due_at', 'expires_at'].map(bigintList),
  ...['steps', 'attempts'].map(intList),
  ...['state', 'destination', 'address'].map(textList),
  ...['orcpt', 'last'].map(nullableList),
].join(', ')

/** All messages of a range outside the trash, as lists in the order of their ids. `wholeRecipients` has their recipients. */
export const listedWhole = ({ after, through }: IdRange, { limit, newestFirst }: ListedForm): Query =>
  statement(
    (add) => `
      select ${MESSAGE_LISTS} from (
        select message.id as message, created_at, arrived_at, sender, size, content_id, message_id, class, share, hold_request, placement,
          forced_expire, coalesce(not_before, 0) as not_before, coalesce(scheduled, false) as scheduled, coalesce(expires, 0) as expires
        from message
        where message.id > ${add(after)} and message.id <= ${add(through)} and placement <> 'trash'
        order by message.id${newestFirst ? ' desc' : ''} limit ${add(limit)}) rows`,
  )

/**
 * Live recipients of the messages from one id to another, as lists in the order of their ids. A statement that finds the recipients of each
 * message, or makes a list for each, would take two or four times as long.
 */
export const wholeRecipients = (first: MessageId, last: MessageId): Query =>
  statement(
    (add) => `
      select ${RECIPIENT_LISTS} from (
        select r.id, state, destination, address, orcpt, due_at, expires_at, steps, attempts, last from recipient r
        where r.id ${recipientRange(`${add(first)}::bigint`, `${add(last)}::bigint`)} and r.settled_at is null
          and (state <> 'parked' or (select placement from message where message.id = ${messageIdOf('r.id')}) <> 'trash')
        order by r.id) rows`,
  )

interface MessageLists {
  readonly message: Buffer
  readonly created_at: Buffer
  readonly arrived_at: Buffer
  readonly sender: string
  readonly size: Buffer
  readonly content_id: Buffer
  readonly message_id: string
  readonly message_id_count: number
  readonly class: string
  readonly class_count: number
  readonly share: string
  readonly share_count: number
  readonly hold_request: string
  readonly hold_request_count: number
  readonly placement: string
  readonly forced_expire: Buffer
  /** 0 for none. */
  readonly not_before: Buffer
  readonly scheduled: Buffer
  /** 0 for none. */
  readonly expires: Buffer
}

interface RecipientLists {
  readonly id: Buffer
  readonly state: string
  readonly destination: string
  readonly address: string
  readonly orcpt: string
  readonly orcpt_count: number
  readonly due_at: Buffer
  readonly expires_at: Buffer
  readonly steps: Buffer
  readonly attempts: Buffer
  readonly last: string
  readonly last_count: number
}

/** Lists without rows are null. */
type OrNone<Lists> = { readonly [Name in keyof Lists]: Lists[Name] | null }
type WholeRow = ListedRow & { live: ListedRecipient[] | null }

const isSome = <Lists extends object>(lists: OrNone<Lists> | undefined, key: keyof Lists): lists is Lists =>
  lists !== undefined && lists[key] !== null

/**
 * Reads messages, and then the recipients of these. A message that is settled between the two statements has no live recipient. Other
 * changes between them, such as arrivals, do not change which messages the page has. Null for ambiguous lists.
 */
export function* wholePage(ids: IdRange, form: ListedForm): Read<readonly WholeRow[] | null> {
  const lists = yield* rowOf<OrNone<MessageLists>>(listedWhole(ids, form))
  if (!isSome(lists, 'message')) return []
  const ends = [bigintAt(lists.message, 0), bigintAt(lists.message, bigintsIn(lists.message) - 1)]
  const found = yield* rowOf<OrNone<RecipientLists>>(wholeRecipients(Math.min(...ends), Math.max(...ends)))
  const rows = messagesIn(lists)
  const live = isSome(found, 'id') ? recipientsIn(found) : []
  if (rows === null || live === null) return null
  assign(form.newestFirst ? rows.toReversed() : rows, live)
  return rows
}

/** Gives the messages their recipients. Both are in ascending order. */
function assign(rows: readonly WholeRow[], live: readonly ListedRecipient[]): void {
  let next = 0
  for (const row of rows)
    for (let one = live[next]; one !== undefined && messageOf(one.id) <= row.message; one = live[++next])
      if (messageOf(one.id) === row.message) (row.live ??= []).push(one)
}

/** Null for ambiguous lists. */
function messagesIn(lists: MessageLists): readonly WholeRow[] | null {
  const count = bigintsIn(lists.message)
  const [sender, placement] = [textsIn(lists.sender, count), textsIn(lists.placement, count)]
  const messageId = nullablesIn(lists.message_id, count, lists.message_id_count)
  const [ofClass, share] = [nullablesIn(lists.class, count, lists.class_count), nullablesIn(lists.share, count, lists.share_count)]
  const holdRequest = nullablesIn(lists.hold_request, count, lists.hold_request_count)
  if (sender === null || placement === null || messageId === null || ofClass === null || share === null || holdRequest === null) return null
  const rows: WholeRow[] = []
  for (let n = 0; n < count; n++)
    rows.push({
      message: bigintAt(lists.message, n),
      created_at: bigintAt(lists.created_at, n),
      arrived_at: bigintAt(lists.arrived_at, n),
      sender: sender[n]!,
      size: bigintAt(lists.size, n),
      content_id: bigintAt(lists.content_id, n),
      message_id: messageId[n]!,
      class: ofClass[n]!,
      share: share[n]!,
      hold_request: holdRequest[n]!,
      placement: placement[n]! as Placement,
      forced_expire: booleanAt(lists.forced_expire, n),
      not_before: bigintAt(lists.not_before, n) || null,
      scheduled: booleanAt(lists.scheduled, n),
      expires: bigintAt(lists.expires, n) || null,
      live: null,
    })
  return rows
}

/** Null for ambiguous lists. */
function recipientsIn(lists: RecipientLists): readonly ListedRecipient[] | null {
  const count = bigintsIn(lists.id)
  const [state, destination, address] = [textsIn(lists.state, count), textsIn(lists.destination, count), textsIn(lists.address, count)]
  const [orcpt, last] = [nullablesIn(lists.orcpt, count, lists.orcpt_count), nullablesIn(lists.last, count, lists.last_count)]
  if (state === null || destination === null || address === null || orcpt === null || last === null) return null
  const recipients: ListedRecipient[] = []
  for (let n = 0; n < count; n++)
    recipients.push(
      toListedRecipient({
        id: bigintAt(lists.id, n),
        state: state[n]! as RecipientState,
        destination: destination[n]!,
        address: address[n]!,
        orcpt: orcpt[n]!,
        due_at: bigintAt(lists.due_at, n),
        expires_at: bigintAt(lists.expires_at, n),
        steps: intAt(lists.steps, n),
        attempts: intAt(lists.attempts, n),
        last: last[n]!,
      }),
    )
  return recipients
}
