/** Writes the entries of the index by which messages are found, for new mail and for records that came from another queue. */
import { recipientId, type MessageId } from '../../../mail/message.ts'
import { decodeHistory } from '../../history-record.ts'
import { ADDRESSES_PER_ENTRY, entriesOf } from '../../search/search-terms.ts'
import { int8s, texts } from '../session/arrays.ts'
import * as sql from './search-queries.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'

/** Maximum number of messages per slice. A slice takes some milliseconds. */
const SLICE = 250

interface SearchedRow {
  readonly id: MessageId
  readonly sender: string
  readonly messageId: string | null
  readonly subject: string | null
  readonly addresses: readonly string[] | null
}

type Entries = readonly (readonly string[])[]

export class SearchIndex {
  indexMail: Send<'indexMail'> = (tx, calls) => ({ answers: Promise.all(calls.map(() => index(tx))), isLast: false })
}

async function index(tx: Transaction): Promise<{ readonly more: boolean }> {
  const taken = (await tx.query<{ message: MessageId }>(sql.takeUnindexed, [SLICE])).map(({ message }) => message)
  if (taken.length === 0) return { more: false }
  const [queued, gone] = await Promise.all([
    tx.query<SearchedRow>(sql.searchedMessages, [int8s(taken)]),
    tx.query<{ message: MessageId; record: string }>(sql.recordsOf, [int8s(taken)]),
  ])
  const entries = new Map<MessageId, Entries>()
  for (const { message: id, record } of gone) {
    const { message, recipients } = decodeHistory(id, record)
    const addresses = recipients.map(({ address }) => address)
    if (message.fromHeader !== undefined) entries.set(id, entriesOf(message, addresses))
  }
  for (const { id, sender, messageId, subject, addresses } of queued)
    entries.set(id, entriesOf({ sender, messageId: messageId ?? undefined, subject: subject ?? undefined }, addresses ?? []))
  const rows = [...entries].flatMap(([id, all]) =>
    all.map((terms, n) => ({ id: recipientId(id, n * ADDRESSES_PER_ENTRY), terms: JSON.stringify(terms) })),
  )
  await tx.query(sql.writeEntries, [int8s(rows.map(({ id }) => id)), texts(rows.map(({ terms }) => terms))])
  return { more: taken.length === SLICE }
}
